"""One instance of a source, from its first start to its end: run, restarted, put to sleep, retired."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import inf
from random import uniform
from time import time
from typing import Any, cast

import anyio
from anyio.lowlevel import checkpoint

from toolcrib.errors import Unavailable
from toolcrib.interfaces import Handler, Offer, Source, SourceState, State, Upkeep
from toolcrib.model import Call, Result
from toolcrib.supervisor.display import Display, Later
from toolcrib.supervisor.flights import Flight, Flights, lost
from toolcrib.supervisor.news import News
from toolcrib.supervisor.reasons import one_line, reason
from toolcrib.supervisor.shelf import Shelf

log = logging.getLogger(__name__)

LONGEST_PAUSE = 30.0
_SHORTLY = 1.0
"""When to ask again for a source that is just starting, in seconds."""
_SOONEST = 0.05
_MOST_DOUBLINGS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Home:
    """What a life has around it: where its tools are shown, who hears of its changes, how patient all are."""

    shelf: Shelf
    later: Later
    hear: "Callable[[Life], None]"
    """Told when it has settled, and whenever it goes down."""
    patience: float
    """The pause between two tries of a source in a crash loop."""
    news: News
    """What of its resources others follow, and who hears of these."""


class _Link:
    """What one run of a source holds on to; it means nothing any more once that run is given up."""

    def __init__(self, life: "Life") -> None:
        self._life, self.held = life, True

    def up(self, offer: Offer) -> None:
        if self.held:
            self._life.came_up(offer)

    def down(self, reason: str) -> None:
        if self.held:
            self._life.was_lost(one_line(reason))

    def updated(self, uri: str) -> None:
        if self.held:
            self._life.was_updated(uri)


class Life:
    """Runs one instance, one run at a time. Whoever holds its id is *placed*: its tools are on the shelf."""

    def __init__(self, source: Source, upkeep: Upkeep, home: Home, remembered: Offer | None = None) -> None:
        self.id, self.source, self.upkeep, self._home = source.id, source, upkeep, home
        known = remembered if remembered is not None and remembered.tools else None
        self.state: State = "asleep" if upkeep.lazy and known else "starting"
        self.since = time()
        self.serving = False
        """Whether calls may come: the one thing they look at."""
        self.flights = Flights()
        self.settled = anyio.Event()
        self.restarts = 0
        self.call: Handler = self._guarded if source.mortal else source.call
        self.display = Display(self.id, home.shelf, home.later, grace=upkeep.grace, remembered=known)
        self._learning = upkeep.lazy and known is None
        self._error: str | None = None
        self._error_at = 0.0
        self._retiring = False
        self._watchful = upkeep.idle is not None
        """Whether anyone wants to know when a call has ended."""
        self._scope, self._run_scope = anyio.CancelScope(), anyio.CancelScope()
        self._link = _Link(self)
        self._stir, self._turn = anyio.Event(), anyio.Event()
        self._waiting = 0
        self._deaths, self._dead = 0, False
        self._up_at: float | None = None
        self._again_at = inf
        self._last_call = 0.0
        self._dozing: anyio.CancelScope | None = None
        if self.state == "asleep":
            self.settled.set()

    # --- what others may do with it ---

    async def keep(self) -> None:
        """Run the source, again and again, until it is retired and its last call has ended."""
        try:
            with self._scope:
                while True:
                    await self._rest()
                    await checkpoint()
                    await self._run()
        finally:
            self._end()

    def place(self, before: "Life | None" = None) -> None:
        """Hold the id from now on, in place of an older instance; show what is known of the tools."""
        if before is not None:
            self.restarts += before.restarts
        self.display.place(before and before.display, sound=self.state in ("up", "asleep"))
        if self.state in ("down", "crash_loop", "stopped"):
            self.display.dim()

    def retire(self) -> None:
        """Take no more calls, finish those there are, then stop for good."""
        self._retiring, self._watchful, self.serving = True, True, False
        self.display.leave()
        self._stop_dozing()
        self.settled.set()
        self._turn.set()
        if not self.flights:
            self._scope.cancel()

    async def rouse(self) -> None:
        """Start it now if it is not starting already; return when that has worked, or has not."""
        self._waiting += 1
        try:
            if self.state not in ("starting", "up"):
                self._start_now()
            await self._turn.wait()
        finally:
            self._waiting -= 1

    async def test(self) -> str | None:
        """Ask a running one for something real, start any other; what is wrong, where asking went wrong."""
        if self.state != "up":
            self._deaths = 0
            await self.rouse()
            return None
        try:
            await self.source.check()
        except Exception as error:  # noqa: BLE001 - the boundary: whatever a source raises is its answer
            self._note(reason(error))
            return self._error
        return None

    def unavailable(self) -> Unavailable:
        """Say why there can be no call now, and when to ask again."""
        if self.state in ("down", "crash_loop"):
            again = max(self._again_at - _now(), _SOONEST)
            said = "is not running and will be started again" if self.state == "down" else "keeps failing"
            return Unavailable(
                "SOURCE_DOWN", f"{self.id} {said}; nothing was done", retry_after=round(again, 3)
            )
        if self.state == "stopped":
            message = f"{self.id} is stopped until an operator starts it; nothing was done"
            return Unavailable("SOURCE_DOWN", message)
        message = f"{self.id} is not running yet; nothing was done, try again shortly"
        return Unavailable("SOURCE_DOWN", message, retry_after=_SHORTLY)

    def describe(self, more: Mapping[str, Any]) -> SourceState:
        """Say how the source is doing."""
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
        """Carry out a call, but give up the moment the source dies."""
        if not self.serving:
            raise self.unavailable()
        flights = self.flights
        flight = Flight(call, cast("asyncio.Task[object]", asyncio.current_task()))
        flights.add(flight)
        try:
            return await self.source.call(call)
        except asyncio.CancelledError:
            if flight.is_cancelled():
                raise
            # Told by us, or by nobody: then the source itself has given up what it waited for.
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

    # --- one run after the other ---

    async def _rest(self) -> None:
        """Wait for the time of the next try, or for whoever wants it started now."""
        if self.state == "starting":
            return
        self._stir = anyio.Event()
        timed = self.state in ("down", "crash_loop") and not self._retiring
        with anyio.CancelScope(deadline=self._again_at if timed else inf):
            await self._stir.wait()

    async def _run(self) -> None:
        self.restarts += self._dead
        self._dead = False
        if self.state != "crash_loop":
            self._starting()
        link = self._link = _Link(self)
        died = ""
        with anyio.CancelScope() as self._run_scope:
            died = await self._lived(link)
        link.held = False
        self._stop_dozing()
        if not self._run_scope.cancel_called:
            self._died(died)
        elif died:
            log.warning("%s did not stop in good order: %s", self.id, died)

    async def _lived(self, link: _Link) -> str:
        """Run the source until it dies; say of what."""
        try:
            await self.source.run(link)
        except Exception as error:  # noqa: BLE001 - the boundary: whatever a source raises is its death
            return reason(error)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            return "it broke off from within"
        return "it stopped"

    def _start_now(self) -> None:
        """Start without a pause; a run that has lost its server is given up for it."""
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
        """Show what the source offers; again whenever that changes."""
        if self._retiring:
            return
        if self.state != "up":
            level = logging.INFO if self.source.mortal else logging.DEBUG
            log.log(level, "%s is up with %d tools", self.id, len(offer.tools))
            self._up_at = _now()
            self._dead = False
            self._move("up")
            if self._home.news.wanted(self.id):
                self._home.news.agree(self.source)
        self.display.show(offer)
        self._settle()
        learnt, self._learning = self._learning, False
        if learnt and not self._waiting:
            self._sleep()
        elif self.upkeep.idle is not None and self._dozing is None:
            self._last_call = _now()
            self._doze_later(self.upkeep.idle)

    def was_updated(self, uri: str) -> None:
        """Pass on that a resource has changed."""
        if not self._retiring:
            self._home.news.updated(self.id, uri)

    def was_lost(self, reason: str) -> None:
        """The source has lost its server, and may yet find it again."""
        self._again_at = _now() + self.upkeep.backoff
        self._lapse()
        self._go_down(reason, "crash_loop" if self.state == "crash_loop" else "down")

    def _died(self, reason: str) -> None:
        self._lapse()
        self._deaths += 1
        state: State = "down" if self._deaths <= self.upkeep.most_restarts else "crash_loop"
        pause = self._home.patience
        if state == "down":
            doubled = self.upkeep.backoff * 2 ** min(self._deaths - 1, _MOST_DOUBLINGS)
            pause = min(doubled, LONGEST_PAUSE) * uniform(0.5, 1.0)  # noqa: S311 - spreads restarts, hides nothing
        self._again_at = _now() + pause
        self._go_down(reason, state if self.upkeep.restart else "stopped")

    def _lapse(self) -> None:
        """A run that was up for long enough makes the earlier deaths forgotten."""
        stable = max(1.0, 10 * self.upkeep.backoff)
        if self._up_at is not None and _now() - self._up_at >= stable:
            self._deaths = 0
        self._up_at = None

    def _go_down(self, reason: str, state: State) -> None:
        if not self._dead:
            log.warning("%s is down: %s", self.id, reason)
            self._note(reason)
        self._dead = True
        self._move(state)
        self._stop_dozing()
        self.flights.end()
        self._settle()
        self.display.dim()

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
        self._move("stopped")
        self.display.leave()
        self._stop_dozing()
        self.flights.end()
        self.settled.set()
        self._turn.set()

    # --- what happens after a while ---

    def _doze_later(self, seconds: float) -> None:
        self._dozing = self._home.later(seconds, self._doze)

    def _doze(self) -> None:
        """Go to sleep unless there is, or was lately, something to do."""
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
        self._lapse()
        self._move("asleep")
        self._run_scope.cancel()

    def _stop_dozing(self) -> None:
        if self._dozing is not None:
            self._dozing.cancel()
            self._dozing = None


def _now() -> float:
    """The loop's own clock, which is also that of deadlines."""
    return asyncio.get_running_loop().time()
