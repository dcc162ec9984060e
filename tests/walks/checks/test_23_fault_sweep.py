"""A fault at every await on the store, on shared state and on sources: each request ends, nothing leaks."""

import asyncio
import gc
import itertools
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from tests.doors import Reply
from tests.figures import figure
from tests.waiting import until
from tests.walks.checks.fault_points import (
    BACKGROUND,
    KINDS,
    POINTS,
    START_AND_STOP,
    UNUSED,
    Faults,
    counting,
    faults,
)
from tests.walks.checks.fault_requests import (
    DEADLINE_SECONDS,
    REQUESTS,
    Request,
    Swept,
    swept_gateway,
)
from tests.walks.checks.starvation import starved_seconds
from toolcrib.errors import CODES
from toolcrib.slots import Slots

__all__ = ["faults"]

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.slow,
    pytest.mark.check(23),
    pytest.mark.requirement("C4", "I5"),
    pytest.mark.skipif(sys.platform != "linux", reason="reads /proc"),
]

GRACE_SECONDS = 1.0
KINDS_PER_AWAIT = figure(1, len(KINDS))
"""How many kinds of faults are tried at each await; the short form takes the next kind at the next await."""


def children() -> int:
    """How many processes this one has started that have not been waited for."""
    return len(Path(f"/proc/self/task/{os.getpid()}/children").read_text().split())


def held() -> int:
    """How many slots of any kind are taken."""
    return sum(each.used for each in gc.get_objects() if isinstance(each, Slots))


def judge(request: Request, reply: Reply, what: str) -> None:
    """Check that the reply is a result, or an error with a code of the table."""
    if reply.headers.get("content-type", "").startswith("text/event-stream"):
        assert b"event: result" in reply.body or not request.is_call, what
    elif reply.status >= 400 and "jsonrpc" in reply.json:
        assert isinstance(reply.json["error"]["code"], int), (what, reply.body)
    elif reply.status >= 400:
        assert CODES[str(reply.code)].status == reply.status, (what, reply.body)
    else:
        assert 200 <= reply.status < 300, (what, reply.status)


async def send(faults: Faults, swept: Swept, request: Request, what: str, new: str) -> None:
    """Send a request and judge how it ends: with a reply in time, or as its task is cancelled."""
    token = counting.set(True)
    began, starved = anyio.current_time(), starved_seconds()
    reply = None
    try:
        with anyio.fail_after(30), anyio.CancelScope() as scope:
            faults.cancel = scope.cancel
            reply = await request.send(swept, new)
    finally:
        counting.reset(token)
    took = anyio.current_time() - began - (starved_seconds() - starved)
    assert took < DEADLINE_SECONDS + GRACE_SECONDS, (what, took)
    assert swept.crib.server.active == 0, what
    if reply is None:
        assert scope.cancel_called, what
    else:
        judge(request, reply, what)


def kinds_of(request: Request, point: str) -> list[str]:
    """Return the faults of an await; it hangs where the gateway has a limit for it, not the store alone."""
    bounded = request.is_call or point == "source.call"
    return [kind for kind in KINDS if bounded or kind != "hang"]


def chosen(request: Request, seen: list[str], first: int) -> Iterator[tuple[int, str]]:
    """Return the awaits of a request, each with the faults to try there."""
    for at, point in enumerate(seen):
        kinds = kinds_of(request, point)
        for number in range(min(KINDS_PER_AWAIT, len(kinds))):
            yield at, kinds[(first + at + number) % len(kinds)]


async def check_keys_end(swept: Swept) -> None:
    """Check that every call with a key ends when it is made again, once its ending is stored."""
    for again in swept.keyed:
        with anyio.fail_after(20):
            while (reply := await again()).code == "IN_PROGRESS":  # noqa: ASYNC110 - the store has no event
                await anyio.sleep(0.1)
        assert reply.code in {None, "TOOL_FAILED", "OUTCOME_UNKNOWN", "ANSWER_NOT_KEPT"}, reply.body


async def check_no_leak(swept: Swept, tasks: int, processes: int) -> None:
    """Check that calls work and that nothing is left of the requests that failed."""
    await swept.clean_up()
    swept.crib.house.console.servers.breaker.forget("books")
    assert (await swept.crib.call("books:append", {"op_id": "last"})).status == 200
    await until(lambda: len(asyncio.all_tasks()) <= tasks and swept.crib.server.active == 0, within=20)
    assert children() == processes
    assert held() == 0


async def test_fault_at_every_await_of_a_request(faults: Faults, tmp_path: Path) -> None:
    numbers = (f"n{number}" for number in itertools.count())
    seen: set[str] = set()
    awaits = tried = 0
    async with swept_gateway(tmp_path) as swept:
        tasks, processes = len(asyncio.all_tasks()), children()
        for name, request in REQUESTS.items():
            new = await request.prepare(swept, next(numbers))
            faults.arm(None)
            await send(faults, swept, request, name, new)
            seen.update(faults.seen)
            awaits += len(faults.seen)
            for at, kind in chosen(request, faults.seen, tried):
                new = await request.prepare(swept, next(numbers))
                faults.arm(at, kind)
                what = f"{name}: await {at} {kind}"
                await send(faults, swept, request, what, new)
                tried += 1
                assert faults.failed == tried, what
                faults.arm(None)
        await check_keys_end(swept)
        await check_no_leak(swept, tasks, processes)
    print(f"{len(REQUESTS)} kinds of requests, {awaits} awaits, {tried} faults: all ended, nothing leaked")
    assert seen == POINTS - BACKGROUND - START_AND_STOP - UNUSED


async def test_fault_at_every_await_of_one_method(faults: Faults, tmp_path: Path) -> None:
    numbers = (f"m{number}" for number in itertools.count())
    few = ("query", "cached", "mutation_with_key", "for_a_user", "server", "mcp")
    names = figure(few, tuple(REQUESTS))
    async with swept_gateway(tmp_path) as swept:
        tasks, processes = len(asyncio.all_tasks()), children()
        points = sorted(POINTS - START_AND_STOP - {"store.watch"})
        for point, name in itertools.product(points, names):
            request = REQUESTS[name]
            new = await request.prepare(swept, next(numbers))
            faults.arm_method(point)
            await send(faults, swept, request, f"{name} without {point}", new)
            faults.arm_method("")
        await check_no_leak(swept, tasks, processes)
    print(f"{len(points)} methods, each out of order while {len(names)} kinds of requests were made")
