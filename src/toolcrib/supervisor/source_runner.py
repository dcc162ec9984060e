"""Lifecycle of one source instance: start, restart with backoff, idle stop, drain, retire."""

import asyncio
import logging
from collections.abc import Mapping
from math import inf
from time import time
from typing import Any, cast

import anyio
from anyio.lowlevel import checkpoint

from toolcrib.errors import Unavailable
from toolcrib.interfaces import (
    Handler,
    Offer,
    ReachableSource,
    ServerMisbehaved,
    ServerUnreachable,
    Source,
    SourceState,
    State,
    Upkeep,
)
from toolcrib.model import Call, Result
from toolcrib.supervisor.backoff import Backoff, Reconnect, outcome, reason
from toolcrib.supervisor.runner_environment import (
    InFlightCall,
    InFlightCalls,
    PublishedTools,
    RunLink,
    RunnerEnvironment,
    lost,
)

log = logging.getLogger(__name__)

_SHORTLY = 1.0
"""Seconds; Retry-After of calls while a source is starting."""
# Seconds; lower bound of Retry-After while a source is down.
_SOONEST = 0.05
_DEMAND_SECONDS = 1.0
"""Seconds; how long a call waits for the probe of an unreachable server."""


class SourceRunner:
    """Runs one instance of a source, one run at a time. The active instance for an id publishes its tools."""

    def __init__(
        self, source: Source, upkeep: Upkeep, home: RunnerEnvironment, remembered: Offer | None = None
    ) -> None:
        self.id, self.source, self.upkeep, self._home = source.id, source, upkeep, home
        known = remembered if remembered is not None and remembered.tools else None
        self.state: State = "asleep" if upkeep.lazy and known else "starting"
        self.since = time()
        self.serving = False
        """Whether calls are accepted; the only flag the call path reads."""
        self.flights = InFlightCalls()
        self.settled = anyio.Event()
        self.restarts = 0
        self.call: Handler = self._guarded if source.mortal else source.call
        self.display = PublishedTools(self.id, home.shelf, home.later, grace=upkeep.grace, remembered=known)
        self._learning = upkeep.lazy and known is None
        self._error: str | None = None
        self._error_at = 0.0
        self._retiring = False
        self._watchful = upkeep.idle is not None
        """Whether the end of a call must be recorded (idle timeout or retirement)."""
        self._scope, self._run_scope = anyio.CancelScope(), anyio.CancelScope()
        self._link = RunLink(self)
        self._stir, self._turn = anyio.Event(), anyio.Event()
        self._waiting = 0
        self._dead = False
        self._reconnect = Reconnect(source, home.away) if isinstance(source, ReachableSource) else None
        """Set for sources that connect to a server which this process does not run."""
        self._backoff = Backoff(upkeep, home.patience, self._reconnect)
        self._again_at = inf
        self._last_call = 0.0
        self._dozing: anyio.CancelScope | None = None
        if self.state == "asleep":
            self.settled.set()

    # --- operations ---

    async def keep(self) -> None:
        """Run the source in a restart loop until it is retired and its last call has ended."""
        try:
            with self._scope:
                while True:
                    await self._rest()
                    await checkpoint()
                    if await self._reached():
                        await self._run()
        finally:
            self._end()

    def place(self, before: "SourceRunner | None" = None) -> None:
        """Become the active instance for the id, in place of an older one; publish the tools known so far."""
        if before is not None:
            self.restarts += before.restarts
        self.display.place(before and before.display, sound=self.state in ("up", "asleep"))
        if self.state in ("down", "crash_loop", "stopped"):
            self.display.dim()

    def retire(self) -> None:
        """Drain: refuse new calls, let the running ones finish, then stop for good."""
        self._retiring, self._watchful, self.serving = True, True, False
        self.display.leave()
        self._stop_dozing()
        self.settled.set()
        self._turn.set()
        if not self.flights:
            self._scope.cancel()

    async def rouse(self) -> None:
        """Start the source now unless it is starting already; return once it is up or has failed."""
        self._waiting += 1
        try:
            if self.state not in ("starting", "up"):
                self._start_now()
            await self._turn.wait()
        finally:
            self._waiting -= 1

    async def demand(self) -> bool:
        """Trigger a probe of an unreachable server for a call; return False if none was due or would help.

        Returns when the result is known, or after a second.
        """
        reconnect = self._reconnect
        if (
            reconnect is None
            or self.state != "down"
            or not self._backoff.away
            or not reconnect.demand(_now())
        ):
            return False
        tried = reconnect.tried
        self._stir.set()
        with anyio.move_on_after(_DEMAND_SECONDS):
            await tried.wait()
        return True

    async def test(self) -> str | None:
        """Check the source if it is up, start it otherwise; return the error of a failed check."""
        if self.state != "up":
            self._backoff.forgive()
            await self.rouse()
            return None
        try:
            await self.source.check()
        except Exception as error:  # noqa: BLE001 - the boundary: whatever a source raises is its answer
            self._note(reason(error))
            return self._error
        return None

    def unavailable(self) -> Unavailable:
        """Return the error for calls that cannot run now, with Retry-After if the source will be retried."""
        if self.state in ("down", "crash_loop"):
            again = max(self._again_at - _now(), _SOONEST)
            again_soon = "is not running and will be started again"
            if self._reconnect is not None:
                again_soon = "cannot be reached and will be tried again"
            said = again_soon if self.state == "down" else "keeps failing"
            return Unavailable(
                "SOURCE_DOWN", f"{self.id} {said}; nothing was done", retry_after=round(again, 3)
            )
        if self.state == "stopped":
            message = f"{self.id} is stopped until an operator starts it; nothing was done"
            return Unavailable("SOURCE_DOWN", message)
        message = f"{self.id} is not running yet; nothing was done, try again shortly"
        return Unavailable("SOURCE_DOWN", message, retry_after=_SHORTLY)

    def describe(self, more: Mapping[str, Any]) -> SourceState:
        """Return the state of the source for operators."""
        details = {**self.source.details(), **more}
        if self._error is not None:
            details["last_error_at"] = self._error_at
        return SourceState(
            id=self.id,
            state=self.state,
            family=self.source.family,
            tools=self.display.tools,
            restarts=self.restarts,
            last_error=self._error,
            since=self.since,
            details=details,
        )

    # --- calls ---

    async def _guarded(self, call: Call) -> Result:
        """Run a call; fail it at once if the source dies."""
        if not self.serving:
            raise self.unavailable()
        flights = self.flights
        flight = InFlightCall(call, cast("asyncio.Task[object]", asyncio.current_task()))
        flights.add(flight)
        try:
            result = await self.source.call(call)
            self._backoff.answered = True
            return result
        except asyncio.CancelledError:
            if flight.is_cancelled():
                raise
            # Either our own cancellation, or one raised inside the source: it has abandoned the awaited
            # response.
            raise lost(call.tool) from None
        finally:
            flights.discard(flight)
            if flight.told:
                flight.take_back()
            if self._watchful:
                self._landed()

    def _landed(self) -> None:
        self._last_call = _now()
        if self._retiring and not self.flights:
            self._scope.cancel()

    # --- restart loop ---

    async def _rest(self) -> None:
        """Wait until the next start is due or requested."""
        if self.state == "starting":
            return
        self._stir = anyio.Event()
        timed = self.state in ("down", "crash_loop") and not self._retiring
        with anyio.CancelScope(deadline=self._again_at if timed else inf):
            await self._stir.wait()

    async def _reached(self) -> bool:
        """Whether to start a run: a server that this process does not run must first accept a connection."""
        reconnect = self._reconnect
        if reconnect is None:
            return True
        error = await outcome(reconnect.probe(_now()))
        if error is None:
            return True
        self._died(reason(error), away=isinstance(error, ServerUnreachable))
        reconnect.concluded()
        return False

    async def _run(self) -> None:
        # Only a run after a failure counts as a restart; waking an idle source does not.
        self.restarts += self._dead
        self._dead = False
        if self.state != "crash_loop":
            self._starting()
        if self._reconnect is not None:
            self._reconnect.concluded()
        link = self._link = RunLink(self)
        died, away = "", False
        with anyio.CancelScope() as self._run_scope:
            died, away = await self._lived(link)
        link.held = False
        self._stop_dozing()
        if not self._run_scope.cancel_called:
            self._died(died, away=away)
        elif died:
            log.warning("%s did not stop in good order: %s", self.id, died)

    async def _lived(self, link: RunLink) -> tuple[str, bool]:
        """Run the source to its end; return the reason, and whether its server is merely unreachable."""
        error = await outcome(self.source.run(link))
        if error is None:
            return "it stopped", False
        self._backoff.misbehaved = isinstance(error, ServerMisbehaved)
        return reason(error), self._reconnect is not None and isinstance(error, ServerUnreachable)

    def _start_now(self) -> None:
        """Start without a delay; a run that lost its server is abandoned."""
        if self._dead:
            self._link.held = False
            self._run_scope.cancel()
        self._starting()
        self._stir.set()

    def _starting(self) -> None:
        self._move("starting")
        if self._turn.is_set():
            self._turn = anyio.Event()

    def came_up(self, offer: Offer) -> None:
        """Publish what the source offers; called again whenever the offer changes."""
        if self._retiring:
            return
        if self.state != "up":
            level = logging.INFO if self.source.mortal else logging.DEBUG
            log.log(level, "%s is up with %d tools", self.id, len(offer.tools))
            self._backoff.came_up(_now())
            self._dead = False
            self._move("up")
            if self._reconnect is not None and self._reconnect.lasting:
                self._reconnect.end()
                self._home.reconnected(self.id)
            if self._home.news.wanted(self.id):
                self._home.news.agree(self.source)
        self.display.show(offer)
        self._settle()
        # A lazy source that was started only to learn its tools sleeps again, unless callers wait for it.
        learnt, self._learning = self._learning, False
        if learnt and not self._waiting:
            self._sleep()
        elif self.upkeep.idle is not None and self._dozing is None:
            self._last_call = _now()
            self._doze_later(self.upkeep.idle)

    def was_updated(self, uri: str) -> None:
        """Forward a resource update, unless the instance is retiring."""
        if not self._retiring:
            self._home.news.updated(self.id, uri)

    def was_lost(self, reason: str) -> None:
        """Handle a lost server connection; the run itself may still reconnect."""
        self._again_at = _now() + self._backoff.lost(_now())
        self._go_down(reason, "crash_loop" if self.state == "crash_loop" else "down")

    def _died(self, reason: str, *, away: bool) -> None:
        state, pause = self._backoff.died(_now(), away=away)
        self._again_at = _now() + pause
        self._go_down(reason, state if self.upkeep.restart else "stopped")

    def _go_down(self, reason: str, state: State) -> None:
        if not self._dead:
            self._report(reason)
        if self._reconnect is not None:
            self._reconnect.begin(_now(), probed=state == "down" and self._backoff.away)
        self._dead = True
        self._move(state)
        self._stop_dozing()
        self.flights.end()
        self._settle()
        self.display.dim()

    def _report(self, reason: str) -> None:
        """Log why the source is down; an outage of a server is logged once, not for every probe."""
        reconnect, level = self._reconnect, logging.WARNING
        if reconnect is not None:
            level = logging.DEBUG if reconnect.reported else level
            reconnect.reported = True
        log.log(level, "%s is down: %s", self.id, reason)
        self._note(reason)

    def _note(self, error: str) -> None:
        self._error, self._error_at = error, time()

    def _settle(self) -> None:
        self.settled.set()
        self._turn.set()
        self._home.hear(self)

    def _move(self, state: State) -> None:
        if state != self.state:
            self.state, self.since = state, time()
        self.serving = state == "up"

    def _end(self) -> None:
        self._link.held = False
        if self._reconnect is not None:
            self._reconnect.end()
        self._move("stopped")
        self.display.leave()
        self._stop_dozing()
        self.flights.end()
        self.settled.set()
        self._turn.set()

    # --- idle timeout ---

    def _doze_later(self, seconds: float) -> None:
        self._dozing = self._home.later(seconds, self._doze)

    def _doze(self) -> None:
        """Stop the source if it is idle: no running calls, waiters or subscriptions, and no recent call."""
        idle = cast("float", self.upkeep.idle)
        left = self._last_call + idle - _now()
        if self.flights or self._waiting or self._home.news.wanted(self.id):
            self._doze_later(idle)
        elif left > 0:
            self._doze_later(left)
        else:
            self._sleep()

    def _sleep(self) -> None:
        log.info("%s goes to sleep until it is called", self.id)
        self._link.held = False
        self._stop_dozing()
        self._backoff.lapse(_now())
        self._move("asleep")
        self._run_scope.cancel()

    def _stop_dozing(self) -> None:
        if self._dozing is not None:
            self._dozing.cancel()
            self._dozing = None


def _now() -> float:
    """Return the event loop's clock, which cancel-scope deadlines use too."""
    return asyncio.get_running_loop().time()
