"""Calls, starts, stops, lost connections and strange apps in any order: no wrong way, no leak, no hang."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from itertools import pairwise
from typing import Any

import anyio
import pytest
from anyio.lowlevel import checkpoint
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from tests.sessions.app_host import NOW, USER, AppHost, MemorySocket, app_host
from tests.simulated_clock import SimulatedClockLoop
from toolcrib.apps import messages
from toolcrib.egress.response import NoConnection
from toolcrib.errors import Refused, Unavailable
from toolcrib.sessions.app_state import TRANSITIONS

PACKAGES = ("org.example.a", "org.example.b")
packages = st.sampled_from(PACKAGES)
manners = st.sampled_from(["connects", "late", "stays away", "fails", "unreachable", "wrong key", "shy"])
KNOWN = {str(state): ways for state, ways in TRANSITIONS.items()}
LONGEST = 3.0 + 5.0 + 10.0
"""A farewell, a grace period and an activation: no call waits longer."""


class Machine(RuleBasedStateMachine):
    """One user, two standard apps, and a clock of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = SimulatedClockLoop()
        self.upset: list[dict[str, Any]] = []
        self.loop.set_exception_handler(lambda _, context: self.upset.append(context))
        self.calls: list[asyncio.Task[None]] = []
        self.caused = 0
        self.over = anyio.Event()
        self.host: AppHost
        self.hosting = self.loop.create_task(self._live())
        self.drive(anyio.sleep(0.1))

    async def _live(self) -> None:
        async with app_host(grace=5.0, activation=10.0, idle=60.0) as self.host:
            for package in PACKAGES:
                self.host.add(package, app_type="standard")
            await self.over.wait()

    def drive(self, work: Coroutine[Any, Any, object]) -> None:
        self.loop.run_until_complete(work)

    def begin(self, work: Callable[[], Awaitable[bool | None]]) -> None:
        self.calls.append(self.loop.create_task(self._call(work)))
        self.drive(checkpoint())

    async def _call(self, work: Callable[[], Awaitable[bool | None]]) -> None:
        with suppress(Unavailable, Refused):
            self.caused += await work() is True

    def sockets(self, package: str) -> list[MemorySocket]:
        """Return the open connections of an app that were let in."""
        mine = [each for each in self.host.sockets if each.closed is None and each.told]
        return [each for each in mine if each.told[0].get("sessionId") == f"{USER}-{package}"]

    # --- what may happen ---

    @rule(manner=manners)
    def behave(self, manner: str) -> None:
        async def answer(request: dict[str, Any]) -> int:
            if manner == "unreachable":
                raise NoConnection("gone")
            if manner == "fails":
                return 500
            if manner == "late":
                await anyio.sleep(7.0)
            if manner in ("connects", "late"):
                await self.host.connect(request["sessionId"])
            elif manner == "wrong key":
                await self.host.connect(request["sessionId"], key="a guess")
            elif manner == "shy":
                self.host.silent().leave()
            return 200

        self.host.answer = answer

    @rule(package=packages)
    def call(self, package: str) -> None:
        self.begin(lambda: self.host.ready(package))

    @rule(package=packages)
    def start(self, package: str) -> None:
        self.begin(lambda: self.host.sessions.start(USER, package))

    @rule(package=packages)
    def stop(self, package: str) -> None:
        self.begin(lambda: self._stopped(self.host.sessions.stop(USER, package)))

    async def _stopped(self, stopping: Awaitable[bool]) -> None:
        await stopping

    @rule()
    def end(self) -> None:
        self.begin(lambda: self.host.sessions.end(USER))

    @rule(number=st.integers(0, 20))
    def cancel(self, number: int) -> None:
        if self.calls:
            self.calls[number % len(self.calls)].cancel()
            self.drive(checkpoint())

    @rule(package=packages)
    def hang_up(self, package: str) -> None:
        for socket in self.sockets(package):
            socket.leave()
        self.drive(anyio.sleep(0.01))

    @rule(package=packages, release=st.booleans())
    def speak(self, package: str, release: bool) -> None:
        session = f"{USER}-{package}"
        for socket in self.sockets(package):
            if release:
                socket.says(messages.ownership_release(session, package, reason="user_logout", now=NOW))
            else:
                socket.says(messages.foreground_request(session, package, now=NOW))
        self.drive(anyio.sleep(0.01))

    @rule(package=packages)
    def come_unasked(self, package: str) -> None:
        self.drive(self.host.connect(f"{USER}-{package}"))

    @rule(seconds=st.sampled_from([0.0, 0.1, 1.0, 4.9, 10.0, 70.0]))
    def wait(self, seconds: float) -> None:
        self.drive(anyio.sleep(seconds))

    # --- what must always be so ---

    def paths(self) -> dict[str, list[str]]:
        """Return the states each app has been through."""
        self.drive(anyio.sleep(0.001))
        told = [event.data for event in self.host.events if event.kind == "app"]
        moves = [each for each in told if (each["state"], each.get("reason")) != ("running", "foreground")]
        return {name: [each["state"] for each in moves if each["packageName"] == name] for name in PACKAGES}

    @invariant()
    def every_change_is_one_of_the_ways(self) -> None:
        for path in self.paths().values():
            for before, after in pairwise(["stopped", *path]):
                assert after in KNOWN[before]

    @invariant()
    def what_is_told_is_what_is(self) -> None:
        for package, path in self.paths().items():
            assert self.host.state(package) == (path[-1] if path else "stopped")

    @invariant()
    def one_that_runs_has_one_connection_and_others_have_none(self) -> None:
        for package in PACKAGES:
            runs = self.host.state(package) == "running"
            open_ones = [each for each in self.sockets(package) if not each.left]
            assert len(open_ones) == (1 if runs else 0)

    @invariant()
    def one_at_most_is_in_the_foreground(self) -> None:
        states = self.host.sessions.states(USER).values()
        assert sum(state.foreground for state in states) <= 1

    @invariant()
    def nobody_is_asked_more_often_than_needed(self) -> None:
        moves = [state for path in self.paths().values() for state in path]
        begun = moves.count("connecting")
        assert self.caused <= begun
        assert len(self.host.requests()) <= 2 * begun + moves.count("resurrecting")

    # --- how it ends ---

    def teardown(self) -> None:
        try:
            self.drive(anyio.sleep(LONGEST))
            assert [call for call in self.calls if not call.done()] == []
            self.over.set()
            self.loop.run_until_complete(self.hosting)
            assert self.host.sessions.users() == 0
            assert [task for task in asyncio.all_tasks(self.loop) if not task.done()] == []
            assert self.upset == []
        finally:
            self.loop.close()


@pytest.mark.slow
@pytest.mark.requirement("D7", "D8", "D9")
def test_app_state_machine_invariants() -> None:
    run_state_machine_as_test(Machine, settings=settings(max_examples=150, stateful_step_count=30))
