"""One plain key stores answers as fast as it can: its quota holds over HTTP, and others notice nothing."""

import pytest

from tests.doors import Doors, doors
from toolcrib import create_tool

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("E12", "I10")]

CONFIG = "idempotency: {bytes_per_principal: 8000, keys_per_principal: 6}\n"
DONE: list[int] = []


@create_tool(category="mutation")
async def fill(size: int) -> str:
    """Answer with so many characters."""
    DONE.append(size)
    return "x" * size


async def keyed(crib: Doors, number: int, key: str) -> tuple[int, str | None, str | None]:
    headers = {"idempotency-key": f"k{number}"}
    reply = await crib.call("fill", {"size": 3000}, key=key, headers=headers)
    code = None if reply.status == 200 else reply.code
    return reply.status, code, reply.headers.get("retry-after")


async def test_a_key_over_its_quota_is_told_so_and_others_are_not() -> None:
    DONE.clear()
    async with doors(CONFIG, tools=[fill]) as crib:
        eve, bob = await crib.key("eve"), await crib.key("bob")
        assert await keyed(crib, 0, bob) == (200, None, None)
        assert [(await keyed(crib, number, eve))[:2] for number in range(6)] == [(200, None)] * 6
        status, code, wait = await keyed(crib, 6, eve)
        assert (status, code) == (429, "RATE_LIMITED")
        assert wait is not None
        assert int(wait) > 0
        assert (await keyed(crib, 0, eve))[:2] == (410, "ANSWER_NOT_KEPT")
        assert (await keyed(crib, 5, eve))[:2] == (200, None)
        assert [(await keyed(crib, number, bob))[:2] for number in range(2)] == [(200, None)] * 2
    assert len(DONE) == 8
