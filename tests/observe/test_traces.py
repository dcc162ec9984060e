"""Trace ids are read strictly, and ids are made well and fast."""

from uuid import UUID

import pytest

from toolcrib.observe import Trace, new_id, new_trace, parse, trace_uuid

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = "00f067aa0ba902b7"


@pytest.mark.requirement("E14")
@pytest.mark.parametrize(
    "header, sampled",
    [
        (f"00-{TRACE}-{PARENT}-01", True),
        (f"00-{TRACE}-{PARENT}-00", False),
        (f"00-{TRACE}-{PARENT}-03", True),
        (f" 00-{TRACE}-{PARENT}-01 ", True),
        (f"cc-{TRACE}-{PARENT}-01-what-the-future-brings", True),
    ],
)
def test_a_traceparent_is_read(header: str, sampled: bool) -> None:
    assert parse(header) == Trace(TRACE, PARENT, sampled)


@pytest.mark.parametrize(
    "header",
    [
        "",
        "nonsense",
        f"ff-{TRACE}-{PARENT}-01",
        f"00-{TRACE}-{PARENT}-01-more",
        f"00-{'0' * 32}-{PARENT}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE.upper()}-{PARENT}-01",
        f"00-{TRACE[:-1]}-{PARENT}-01",
        f"00-{TRACE}-{PARENT}-1",
        f"00-{TRACE}-{PARENT}-01\n00",
    ],
)
def test_what_is_no_traceparent_is_ignored(header: str) -> None:
    assert parse(header) is None


def test_ids_are_distinct_uuids() -> None:
    ids = {new_id() for _ in range(10_000)}
    assert len(ids) == 10_000
    assert {UUID(one).version for one in ids} == {4}
    assert all(str(UUID(one)) == one for one in ids)


def test_traces_are_distinct_and_never_zero() -> None:
    traces = {new_trace() for _ in range(10_000)}
    assert len(traces) == 10_000
    assert all(parse(f"00-{trace}-{PARENT}-00") for trace in traces)


def test_a_trace_can_be_written_as_a_uuid() -> None:
    assert trace_uuid(TRACE) == "4bf92f35-77b3-4da6-a3ce-929d0e0e4736"
    assert UUID(trace_uuid(TRACE)).hex == TRACE
