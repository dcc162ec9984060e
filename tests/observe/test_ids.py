"""Ids are made well and fast."""

from uuid import UUID

from toolcrib.observe import new_id


def test_ids_are_distinct_uuids() -> None:
    ids = {new_id() for _ in range(10_000)}
    assert len(ids) == 10_000
    assert {UUID(one).version for one in ids} == {4}
    assert all(str(UUID(one)) == one for one in ids)
