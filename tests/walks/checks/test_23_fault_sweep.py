"""A fault at every await on the store, on shared state and on sources: each request ends, nothing leaks."""

import asyncio
import gc
import itertools
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import pytest

from tests.figures import figure
from tests.gateways import Reply
from tests.waiting import until
from tests.walks.app_host import host_with_apps
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
    APP,
    REQUESTS,
    Request,
    Swept,
    app_calls,
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
MAX_TRIES = 5
NOT_YET = {"IN_PROGRESS", "OVERLOADED", "TIMEOUT"}
"""How a call under a key is answered whose ending is not stored yet, or which meets its deadline."""
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


def kinds_of(request: Request, point: str) -> list[str]:
    """Return the faults of an await; it hangs where the gateway has a limit for it, not the store alone."""
    bounded = request.is_call or point == "source.call"
    return [kind for kind in KINDS if bounded or kind != "hang"]


def chosen(request: Request, seen: list[str], first: int) -> Iterator[tuple[tuple[str, int], str]]:
    """Return the awaits of a request, by name and number, each with the faults to try there."""
    for at, point in enumerate(seen):
        kinds = kinds_of(request, point)
        for number in range(min(KINDS_PER_AWAIT, len(kinds))):
            yield (point, seen[:at].count(point)), kinds[(first + at + number) % len(kinds)]


def running() -> list[str]:
    """Name what each task runs."""
    return sorted(repr(each.get_coro()) for each in asyncio.all_tasks())


async def check_keys_end(swept: Swept) -> None:
    """Check that every call with a key ends when it is made again, once its ending is stored."""
    for again in swept.keyed:
        with anyio.fail_after(20):
            while (reply := await again()).code in NOT_YET:  # noqa: ASYNC110 - the store has no event
                await anyio.sleep(0.1)
        assert reply.code in {None, "TOOL_FAILED", "OUTCOME_UNKNOWN", "ANSWER_NOT_KEPT"}, reply.body


async def check_no_leak(swept: Swept, tasks: int, processes: int) -> None:
    """Check that calls work and that nothing is left of the requests that failed."""
    await swept.clean_up()
    swept.gateway.runtime.console.servers.breaker.forget("books")
    assert (await swept.gateway.call("books:append", {"op_id": "last"})).status == 200
    try:
        await until(lambda: len(asyncio.all_tasks()) <= tasks and swept.gateway.server.active == 0, within=20)
    except TimeoutError:
        pytest.fail(f"{tasks} tasks before, now {running()}")
    assert children() == processes
    assert held() == 0


@dataclass
class Sweep:
    """Sends requests with faults to a gateway, and judges how they end."""

    faults: Faults
    swept: Swept
    numbers: Iterator[int] = field(default_factory=itertools.count)

    async def prepare(self, request: Request) -> str:
        """Prepare a request, and return its new name."""
        return await request.prepare(self.swept, f"n{next(self.numbers)}")

    async def send(self, request: Request, what: str, new: str) -> None:
        """Send a request and judge how it ends: with a reply in time, or as its task is cancelled."""
        token = counting.set(True)
        began, starved = anyio.current_time(), starved_seconds()
        reply = None
        try:
            with anyio.fail_after(30), anyio.CancelScope() as scope:
                self.faults.cancel = scope.cancel
                reply = await request.send(self.swept, new)
        finally:
            counting.reset(token)
        took = anyio.current_time() - began - (starved_seconds() - starved)
        assert took < request.seconds + GRACE_SECONDS, (what, took)
        assert self.swept.gateway.server.active == 0, what
        if reply is None:
            assert scope.cancel_called, what
        else:
            judge(request, reply, what)

    async def fail_at(self, request: Request, name: str, at: tuple[str, int], kind: str) -> bool:
        """Send a request with a fault at one await, again where it did not get there; whether it did."""
        failed, what = self.faults.failed, f"{name}: {at} {kind}"
        for _ in range(MAX_TRIES):
            new = await self.prepare(request)
            self.faults.arm(at, kind)
            await self.send(request, what, new)
            self.faults.arm(None)
            if self.faults.failed > failed:
                return True
        return False

    async def run(self, name: str, request: Request) -> list[str]:
        """Send a request without a fault, then with faults at each await; at which awaits it failed.

        A cache that has just expired, or a deadline, makes an await that the next request does not make:
        the caller checks that each method failed in some request.
        """
        new = await self.prepare(request)
        self.faults.arm(None)
        await self.send(request, name, new)
        seen = self.faults.seen
        faults = [*chosen(request, seen, self.faults.failed)]
        return [at[0] for at, kind in faults if await self.fail_at(request, name, at, kind)]


async def test_fault_at_every_await_of_a_request(faults: Faults, tmp_path: Path) -> None:
    seen: list[str] = []
    async with swept_gateway(tmp_path) as swept:
        tasks, processes = len(asyncio.all_tasks()), children()
        sweep = Sweep(faults, swept)
        for name, request in REQUESTS.items():
            seen += await sweep.run(name, request)
        await check_keys_end(swept)
        await check_no_leak(swept, tasks, processes)
    print(f"{len(REQUESTS)} kinds of requests, {len(seen)} awaits, {faults.failed} faults: all ended")
    assert set(seen) == POINTS - BACKGROUND - START_AND_STOP - UNUSED


async def test_fault_at_every_await_of_an_app_call(faults: Faults) -> None:
    before = held()  # a test that failed may still hold its gateway
    async with host_with_apps(APP) as (host, _):
        swept = Swept(host.gateway, host.gateway)
        sweep = Sweep(faults, swept)
        for name, request in app_calls(APP).items():
            assert "source.call" in await sweep.run(name, request)
        assert (await host.call(f"{APP}:note")).status == 200
        await swept.must("DELETE", "/api/users/ann/session")
        await until(lambda: swept.gateway.runtime.sessions.running() == 0)
    assert held() == before
    print(f"calls of an app, running and stopped: {faults.failed} faults, all ended")


async def test_fault_at_every_await_of_one_method(faults: Faults, tmp_path: Path) -> None:
    few = ("query", "cached", "mutation_with_key", "for_a_user", "server", "mcp")
    names = figure(few, tuple(REQUESTS))
    async with swept_gateway(tmp_path) as swept:
        tasks, processes = len(asyncio.all_tasks()), children()
        points = sorted(POINTS - START_AND_STOP - {"store.watch"})
        sweep = Sweep(faults, swept)
        for point, name in itertools.product(points, names):
            new = await sweep.prepare(REQUESTS[name])
            faults.arm_method(point)
            await sweep.send(REQUESTS[name], f"{name} without {point}", new)
            faults.arm_method("")
        await check_no_leak(swept, tasks, processes)
    print(f"{len(points)} methods, each out of order while {len(names)} kinds of requests were made")
