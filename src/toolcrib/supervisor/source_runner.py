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

_STARTING_RETRY_AFTER_SECONDS = 1.0
"""Retry-After of calls while a source is starting."""
_MIN_RETRY_AFTER_SECONDS = 0.05
"""Lower bound of Retry-After while a source is down."""
_DEMAND_TIMEOUT_SECONDS = 1.0
"""For a call that waits for the probe of an unreachable server."""


class SourceRunner:
    """Runs one instance of a source, one run at a time. The active instance for an id publishes its tools."""

    def __init__(
        self, source: Source, upkeep: Upkeep, environment: RunnerEnvironment, remembered: Offer | None = None
    ) -> None:
        self.id, self.source, self.upkeep, self._environment = source.id, source, upkeep, environment
        known = remembered if remembered is not None and remembered.tools else None
        self.state: State = "asleep" if upkeep.lazy and known else "starting"
        self.since = time()
        self.serving = False
        """Whether calls are accepted; the only flag the call path reads."""
        self.in_flight = InFlightCalls()
        self.settled = anyio.Event()
        self.restarts = 0
        self.call: Handler = self._guarded if source.mortal else source.call
        self.published = PublishedTools(
            self.id, environment.sink, environment.call_later, grace=upkeep.grace, remembered=known
        )
        self._only_discovering = upkeep.lazy and known is None
        self._error: str | None = None
        self._error_at = 0.0
        self._retiring = False
        self._tracks_calls = upkeep.idle is not None
        """Whether the end of a call must be recorded (idle timeout or retirement)."""
        self._scope, self._run_scope = anyio.CancelScope(), anyio.CancelScope()
        self._link = RunLink(self)
        self._start_requested, self._attempt_over = anyio.Event(), anyio.Event()
        self._waiting = 0
        self._is_down = False
        self._reconnect = (
            Reconnect(source, environment.unreachable) if isinstance(source, ReachableSource) else None
        )
        """Set for sources that connect to a server which this process does not run."""
        self._backoff = Backoff(upkeep, environment.crash_loop_delay, self._reconnect)
        self._retry_at = inf
        self._last_call = 0.0
        self._idle_timer: anyio.CancelScope | None = None
        if self.state == "asleep":
            self.settled.set()

    # --- operations ---

    async def run(self) -> None:
        """Run the source in a restart loop until it is retired and its last call has ended."""
        try:
            with self._scope:
                while True:
                    await self._wait_for_start()
                    await checkpoint()
                    if await self._is_reachable():
                        await self._run_once()
        finally:
            self._end()

    def activate(self, previous: "SourceRunner | None" = None) -> None:
        """Become the active instance for the id, in place of an older one; publish the tools known so far."""
        if previous is not None:
            self.restarts += previous.restarts
        self.published.activate(previous and previous.published, healthy=self.state in ("up", "asleep"))
        if self.state in ("down", "crash_loop", "stopped"):
            self.published.degrade()

    def retire(self) -> None:
        """Drain: refuse new calls, let the running ones finish, then stop for good."""
        self._retiring, self._tracks_calls, self.serving = True, True, False
        self.published.deactivate()
        self._cancel_idle_timer()
        self.settled.set()
        self._attempt_over.set()
        if not self.in_flight:
            self._scope.cancel()

    async def wake(self) -> None:
        """Start the source now unless it is starting already; return once it is up or has failed."""
        self._waiting += 1
        try:
            if self.state not in ("starting", "up"):
                self._start_now()
            await self._attempt_over.wait()
        finally:
            self._waiting -= 1

    async def probe_for_call(self) -> bool:
        """Trigger a probe of an unreachable server for a call; return False if none was due or would help.

        Returns when the result is known, or after a second.
        """
        reconnect = self._reconnect
        probed = self.state == "down" and self._backoff.unreachable
        if reconnect is None or not probed or not reconnect.claim_probe(_now()):
            return False
        probe_done = reconnect.probe_done
        self._start_requested.set()
        with anyio.move_on_after(_DEMAND_TIMEOUT_SECONDS):
            await probe_done.wait()
        return True

    async def test(self) -> str | None:
        """Check the source if it is up, start it otherwise; return the error of a failed check."""
        if self.state != "up":
            self._backoff.reset()
            await self.wake()
            return None
        try:
            await self.source.check()
        except Exception as error:  # noqa: BLE001 - the boundary: whatever a source raises is its answer
            self._record_error(reason(error))
            return self._error
        return None

    def unavailable(self) -> Unavailable:
        """Return the error for calls that cannot run now, with Retry-After if the source will be retried."""
        if self.state in ("down", "crash_loop"):
            retry_after = max(self._retry_at - _now(), _MIN_RETRY_AFTER_SECONDS)
            will_retry = "is not running and will be started again"
            if self._reconnect is not None:
                will_retry = "cannot be reached and will be tried again"
            condition = will_retry if self.state == "down" else "keeps failing"
            message = f"{self.id} {condition}; nothing was done"
            return Unavailable("SOURCE_DOWN", message, retry_after=round(retry_after, 3))
        if self.state == "stopped":
            message = f"{self.id} is stopped until an operator starts it; nothing was done"
            return Unavailable("SOURCE_DOWN", message)
        message = f"{self.id} is not running yet; nothing was done, try again shortly"
        return Unavailable("SOURCE_DOWN", message, retry_after=_STARTING_RETRY_AFTER_SECONDS)

    def describe(self, extra: Mapping[str, Any]) -> SourceState:
        """Return the state of the source for operators."""
        details = {**self.source.details(), **extra}
        if self._error is not None:
            details["last_error_at"] = self._error_at
        return SourceState(
            id=self.id,
            state=self.state,
            family=self.source.family,
            tools=self.published.tools,
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
        in_flight = self.in_flight
        entry = InFlightCall(call, cast("asyncio.Task[object]", asyncio.current_task()))
        in_flight.add(entry)
        try:
            result = await self.source.call(call)
            self._backoff.answered = True
            return result
        except asyncio.CancelledError:
            if entry.is_cancelled():
                raise
            # Either our own cancellation, or one raised inside the source: it has abandoned the awaited
            # response.
            raise lost(call.tool) from None
        finally:
            in_flight.discard(entry)
            if entry.cancellations:
                entry.uncancel()
            if self._tracks_calls:
                self._call_ended()

    def _call_ended(self) -> None:
        self._last_call = _now()
        if self._retiring and not self.in_flight:
            self._scope.cancel()

    # --- restart loop ---

    async def _wait_for_start(self) -> None:
        """Wait until the next start is due or requested."""
        if self.state == "starting":
            return
        self._start_requested = anyio.Event()
        timed = self.state in ("down", "crash_loop") and not self._retiring
        with anyio.CancelScope(deadline=self._retry_at if timed else inf):
            await self._start_requested.wait()

    async def _is_reachable(self) -> bool:
        """Whether to start a run: a server that this process does not run must first accept a connection."""
        reconnect = self._reconnect
        if reconnect is None:
            return True
        error = await outcome(reconnect.probe(_now()))
        if error is None:
            return True
        self._run_failed(reason(error), unreachable=isinstance(error, ServerUnreachable))
        reconnect.finish_probe()
        return False

    async def _run_once(self) -> None:
        # Only a run after a failure counts as a restart; waking an idle source does not.
        self.restarts += self._is_down
        self._is_down = False
        if self.state != "crash_loop":
            self._set_starting()
        if self._reconnect is not None:
            self._reconnect.finish_probe()
        link = self._link = RunLink(self)
        error, unreachable = "", False
        with anyio.CancelScope() as self._run_scope:
            error, unreachable = await self._run_to_end(link)
        link.active = False
        self._cancel_idle_timer()
        if not self._run_scope.cancel_called:
            self._run_failed(error, unreachable=unreachable)
        elif error:
            log.warning("%s did not stop in good order: %s", self.id, error)

    async def _run_to_end(self, link: RunLink) -> tuple[str, bool]:
        """Run the source to its end; return the reason, and whether its server is merely unreachable."""
        error = await outcome(self.source.run(link))
        if error is None:
            return "it stopped", False
        self._backoff.misbehaved = isinstance(error, ServerMisbehaved)
        return reason(error), self._reconnect is not None and isinstance(error, ServerUnreachable)

    def _start_now(self) -> None:
        """Start without a delay; a run that lost its server is abandoned."""
        if self._is_down:
            self._link.active = False
            self._run_scope.cancel()
        self._set_starting()
        self._start_requested.set()

    def _set_starting(self) -> None:
        self._set_state("starting")
        if self._attempt_over.is_set():
            self._attempt_over = anyio.Event()

    def came_up(self, offer: Offer) -> None:
        """Publish what the source offers; called again whenever the offer changes."""
        if self._retiring:
            return
        if self.state != "up":
            level = logging.INFO if self.source.mortal else logging.DEBUG
            log.log(level, "%s is up with %d tools", self.id, len(offer.tools))
            self._backoff.came_up(_now())
            self._is_down = False
            self._set_state("up")
            if self._reconnect is not None and self._reconnect.in_progress:
                self._reconnect.end()
                self._environment.reconnected(self.id)
            if self._environment.resource_updates.wanted(self.id):
                self._environment.resource_updates.subscribe(self.source)
        self.published.publish(offer)
        self._settle()
        # A lazy source that was started only to learn its tools sleeps again, unless callers wait for it.
        discovered, self._only_discovering = self._only_discovering, False
        if discovered and not self._waiting:
            self._fall_asleep()
        elif self.upkeep.idle is not None and self._idle_timer is None:
            self._last_call = _now()
            self._start_idle_timer(self.upkeep.idle)

    def resource_updated(self, uri: str) -> None:
        """Forward a resource update, unless the instance is retiring."""
        if not self._retiring:
            self._environment.resource_updates.updated(self.id, uri)

    def connection_lost(self, reason: str) -> None:
        """Handle a lost server connection; the run itself may still reconnect."""
        self._retry_at = _now() + self._backoff.connection_lost(_now())
        self._go_down(reason, "crash_loop" if self.state == "crash_loop" else "down")

    def _run_failed(self, reason: str, *, unreachable: bool) -> None:
        state, delay = self._backoff.failed(_now(), unreachable=unreachable)
        self._retry_at = _now() + delay
        self._go_down(reason, state if self.upkeep.restart else "stopped")

    def _go_down(self, reason: str, state: State) -> None:
        if not self._is_down:
            self._report(reason)
        if self._reconnect is not None:
            self._reconnect.begin(_now(), probed=state == "down" and self._backoff.unreachable)
        self._is_down = True
        self._set_state(state)
        self._cancel_idle_timer()
        self.in_flight.cancel()
        self._settle()
        self.published.degrade()

    def _report(self, reason: str) -> None:
        """Log why the source is down; an outage of a server is logged once, not for every probe."""
        reconnect, level = self._reconnect, logging.WARNING
        if reconnect is not None:
            level = logging.DEBUG if reconnect.reported else level
            reconnect.reported = True
        log.log(level, "%s is down: %s", self.id, reason)
        self._record_error(reason)

    def _record_error(self, error: str) -> None:
        self._error, self._error_at = error, time()

    def _settle(self) -> None:
        self.settled.set()
        self._attempt_over.set()
        self._environment.on_change(self)

    def _set_state(self, state: State) -> None:
        if state != self.state:
            self.state, self.since = state, time()
        self.serving = state == "up"

    def _end(self) -> None:
        self._link.active = False
        if self._reconnect is not None:
            self._reconnect.end()
        self._set_state("stopped")
        self.published.deactivate()
        self._cancel_idle_timer()
        self.in_flight.cancel()
        self.settled.set()
        self._attempt_over.set()

    # --- idle timeout ---

    def _start_idle_timer(self, seconds: float) -> None:
        self._idle_timer = self._environment.call_later(seconds, self._stop_if_idle)

    def _stop_if_idle(self) -> None:
        """Stop the source if it is idle: no running calls, waiters or subscriptions, and no recent call."""
        idle = cast("float", self.upkeep.idle)
        left = self._last_call + idle - _now()
        if self.in_flight or self._waiting or self._environment.resource_updates.wanted(self.id):
            self._start_idle_timer(idle)
        elif left > 0:
            self._start_idle_timer(left)
        else:
            self._fall_asleep()

    def _fall_asleep(self) -> None:
        log.info("%s goes to sleep until it is called", self.id)
        self._link.active = False
        self._cancel_idle_timer()
        self._backoff.end_run(_now())
        self._set_state("asleep")
        self._run_scope.cancel()

    def _cancel_idle_timer(self) -> None:
        if self._idle_timer is not None:
            self._idle_timer.cancel()
            self._idle_timer = None


def _now() -> float:
    """Return the event loop's clock, which cancel-scope deadlines use too."""
    return asyncio.get_running_loop().time()
