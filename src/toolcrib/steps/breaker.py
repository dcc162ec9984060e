"""A source that only fails is given a rest: calls are answered at once until one of them gets through."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Literal

import anyio

from toolcrib.errors import Broken, Failed, Lost, ToolcribError, Unavailable
from toolcrib.interfaces import Handler, Stage
from toolcrib.model import Call, ObservedChannel, Result, Tool

BreakerState = Literal["closed", "open", "half_open"]
Verdict = Literal["good", "bad", "neither"]

_AT_FAULT = frozenset({"NETWORK_ERROR", "HTTP_ERROR", "TIMEOUT", "OUTCOME_UNKNOWN"})
_ENOUGH_PRINCIPALS = 2
"""Where calls of so many principals fail, it is the source that fails."""
_TOGETHER = 0.05
"""Failures so close to each other, in seconds, have one cause: a death ends all running calls at once."""


@dataclass(frozen=True)
class Breaker:
    """Counts what the source is to blame for, not what a tool refuses nor what never reached it."""

    failures: int = 10
    """So many in a row open it."""
    rest: float = 5.0
    """How long it is open at first; it doubles with every probe that fails."""
    longest_rest: float = 60.0
    clock: Callable[[], float] = anyio.current_time
    _circuits: dict[str, "_Circuit"] = field(default_factory=dict[str, "_Circuit"], init=False, repr=False)

    def fit(self, tool: Tool) -> Stage | None:
        """Left out for what runs in this process; the tools of a source share its breaker."""
        if tool.inside:
            return None
        circuit = self._circuits.setdefault(tool.source, _Circuit(tool.source, self))

        async def breaker(call: Call, proceed: Handler) -> Result:
            closed = circuit.state == "closed"
            if not closed and circuit.concerns(call):
                return await circuit.probe(call, proceed)
            try:
                result = await proceed(call)
            except ToolcribError as error:
                circuit.count(circuit.judge(error, call), call, closed=closed)
                raise
            if circuit.failed or not closed:
                circuit.count("good", call, closed=closed)
            return result

        return breaker

    def forget(self, source: str) -> None:
        """Begin afresh with a source that is not what it was."""
        circuit = self._circuits.get(source)
        if circuit is not None:
            circuit.close()

    def retain(self, sources: Collection[str]) -> None:
        """Drop the breakers of all other sources."""
        for gone in self._circuits.keys() - set(sources):
            del self._circuits[gone]

    def states(self) -> Mapping[str, BreakerState]:
        """Say how the breaker of each source stands."""
        return {source: circuit.state for source, circuit in self._circuits.items()}


class _Circuit:
    """The breaker of one source."""

    def __init__(self, source: str, settings: Breaker) -> None:
        self.source, self._settings = source, settings
        self.state: BreakerState = "closed"
        self.failed = 0
        self._failed_at = float("-inf")
        self._rest = settings.rest
        self._until = 0.0
        self._probing: Call | None = None
        self._failing: set[str] = set()
        """Whose calls failed since the last good one."""

    def concerns(self, call: Call) -> bool:
        """Whether an open breaker holds for a call: failures of one principal alone say little to others."""
        return len(self._failing) != 1 or call.caller.principal in self._failing

    def judge(self, error: ToolcribError, call: Call) -> Verdict:
        """Say what an error tells of the source; that an app did not start is between it and one user."""
        if error.problem.stage is not None:
            return "neither"
        if isinstance(error, Lost) or error.problem.code in _AT_FAULT:
            hurried = call.deadline is not None and self._settings.clock() >= call.deadline
            return "neither" if hurried else "bad"
        return "good" if isinstance(error, Failed | Broken) else "neither"

    def count(self, verdict: Verdict, call: Call, *, closed: bool = True) -> None:
        """Count a call that was no probe; `closed` says how the breaker was when the call began.

        One that began before the breaker opened says nothing new. One that was let through although it is
        open, as another principal's calls opened it, closes it or makes it hold for everyone.
        """
        if verdict == "good":
            self._answered(closed=closed)
        if verdict != "bad":
            return
        if len(self._failing) < _ENOUGH_PRINCIPALS:
            self._failing.add(call.caller.principal)
        if self.state != "closed":
            return
        now = self._settings.clock()
        if now - self._failed_at < _TOGETHER:
            return
        self._failed_at = now
        self.failed += 1
        if self.failed >= self._settings.failures:
            self._open()

    def _answered(self, *, closed: bool) -> None:
        self.failed = 0
        if self.state == "closed":
            self._failing.clear()
        elif self.state == "open" and not closed:
            self.close()

    async def probe(self, call: Call, proceed: Handler) -> Result:
        """Let one call through when the rest is over, and go by what becomes of it."""
        now = self._settings.clock()
        if self._probing is not None or now < self._until:
            raise self._refusal(now)
        self.state, self._probing = "half_open", call
        verdict: Verdict = "neither"
        try:
            result = await proceed(self._listening(call))
            verdict = "good"
            return result
        except ToolcribError as error:
            verdict = self.judge(error, call)
            raise
        finally:
            self._conclude(call, verdict)

    def _listening(self, call: Call) -> Call:
        """A source that asks something is well: others need not wait until somebody has answered it."""
        if call.channel is None:
            return call
        return call.replace(channel=ObservedChannel(call.channel, lambda: self._conclude(call, "good")))

    def _conclude(self, call: Call, verdict: Verdict) -> None:
        if self._probing is not call:
            self.count(verdict, call)
            return
        self._probing = None
        if verdict == "good":
            self.close()
        elif verdict == "bad":
            self._rest = min(self._rest * 2, self._settings.longest_rest)
            self._open()

    def close(self) -> None:
        """Let calls through and count from nothing."""
        self.state, self.failed, self._rest = "closed", 0, self._settings.rest
        self._failing.clear()

    def _open(self) -> None:
        self.state = "open"
        self._until = self._settings.clock() + self._rest

    def _refusal(self, now: float) -> Unavailable:
        message = f"{self.source} has failed too often in a row and is given a rest; nothing was done"
        return Unavailable("SOURCE_DOWN", message, retry_after=round(max(self._until - now, 0.1), 3))
