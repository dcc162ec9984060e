"""Circuit breaker per source: after repeated failures calls fail fast until a probe succeeds."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Literal

import anyio

from toolcrib.errors import Broken, Failed, Lost, ToolcribError, Unavailable
from toolcrib.interfaces import Handler, Stage
from toolcrib.model import Call, ObservedChannel, Result, Tool

BreakerState = Literal["closed", "open", "half_open"]
Verdict = Literal["good", "bad", "neither"]

_SOURCE_FAULT_CODES = frozenset({"NETWORK_ERROR", "HTTP_ERROR", "TIMEOUT", "OUTCOME_UNKNOWN"})
_PRINCIPALS_FOR_EVERYONE = 2
"""With failed calls of this many principals, the breaker holds for everyone."""
_SAME_FAILURE_SECONDS = 0.05
"""Failures within this many seconds count as one: a crash fails all running calls at the same time."""


@dataclass(frozen=True)
class Breaker:
    """Counts failures of the source; not refusals by a tool, nor calls that never reached the source."""

    failures: int = 10
    """Consecutive failures that open the breaker."""
    open_seconds: float = 5.0
    """Seconds it stays open at first; doubles with every failed probe, up to `max_open_seconds`."""
    max_open_seconds: float = 60.0
    clock: Callable[[], float] = anyio.current_time
    _circuits: dict[str, "_Circuit"] = field(default_factory=dict[str, "_Circuit"], init=False, repr=False)

    def fit(self, tool: Tool) -> Stage | None:
        """Return the stage, None for tools in this process; the tools of a source share a breaker."""
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
        """Close and reset the breaker of a source that was replaced or reconnected."""
        circuit = self._circuits.get(source)
        if circuit is not None:
            circuit.close()

    def retain(self, sources: Collection[str]) -> None:
        """Drop the breakers of all other sources."""
        for source in self._circuits.keys() - set(sources):
            del self._circuits[source]

    def states(self) -> Mapping[str, BreakerState]:
        """Return the state of each source's breaker."""
        return {source: circuit.state for source, circuit in self._circuits.items()}


class _Circuit:
    """The breaker of one source."""

    def __init__(self, source: str, settings: Breaker) -> None:
        self.source, self._settings = source, settings
        self.state: BreakerState = "closed"
        self.failed = 0
        self._failed_at = float("-inf")
        self._open_seconds = settings.open_seconds
        self._open_until = 0.0
        self._probe: Call | None = None
        self._failing_principals: set[str] = set()
        """Principals with failed calls since the last success."""

    def concerns(self, call: Call) -> bool:
        """Whether an open breaker applies to a call; failures of one principal affect no other one."""
        return len(self._failing_principals) != 1 or call.caller.principal in self._failing_principals

    def judge(self, error: ToolcribError, call: Call) -> Verdict:
        """Classify an error as good, bad or neither; an app that did not start concerns only one user."""
        if error.problem.stage is not None:
            return "neither"
        if isinstance(error, Lost) or error.problem.code in _SOURCE_FAULT_CODES:
            past_deadline = call.deadline is not None and self._settings.clock() >= call.deadline
            return "neither" if past_deadline else "bad"
        return "good" if isinstance(error, Failed | Broken) else "neither"

    def count(self, verdict: Verdict, call: Call, *, closed: bool = True) -> None:
        """Count a call that was no probe; `closed` is the breaker's state when the call began.

        A call that began before the breaker opened changes nothing. A call admitted while it is open, as
        only another principal's calls failed, closes it or makes it apply to everyone.
        """
        if verdict == "good":
            self._count_success(closed=closed)
        if verdict != "bad":
            return
        if len(self._failing_principals) < _PRINCIPALS_FOR_EVERYONE:
            self._failing_principals.add(call.caller.principal)
        if self.state != "closed":
            return
        now = self._settings.clock()
        if now - self._failed_at < _SAME_FAILURE_SECONDS:
            return
        self._failed_at = now
        self.failed += 1
        if self.failed >= self._settings.failures:
            self._open()

    def _count_success(self, *, closed: bool) -> None:
        self.failed = 0
        if self.state == "closed":
            self._failing_principals.clear()
        elif self.state == "open" and not closed:
            self.close()

    async def probe(self, call: Call, proceed: Handler) -> Result:
        """Admit one call when the open period is over, and close or reopen by its outcome."""
        now = self._settings.clock()
        if self._probe is not None or now < self._open_until:
            message = f"{self.source} failed repeatedly, so its circuit breaker is open; nothing was done"
            retry_after = round(max(self._open_until - now, 0.1), 3)
            raise Unavailable("SOURCE_DOWN", message, retry_after=retry_after)
        self.state, self._probe = "half_open", call
        verdict: Verdict = "neither"
        try:
            # The first elicitation concludes the probe: a source that sends one works.
            channel = call.channel and ObservedChannel(call.channel, lambda: self._conclude(call, "good"))
            result = await proceed(call if channel is None else call.replace(channel=channel))
            verdict = "good"
            return result
        except ToolcribError as error:
            verdict = self.judge(error, call)
            raise
        finally:
            self._conclude(call, verdict)

    def _conclude(self, call: Call, verdict: Verdict) -> None:
        if self._probe is not call:
            self.count(verdict, call)
            return
        self._probe = None
        if verdict == "good":
            self.close()
        elif verdict == "bad":
            self._open_seconds = min(self._open_seconds * 2, self._settings.max_open_seconds)
            self._open()

    def close(self) -> None:
        """Close the breaker and reset its counts."""
        self.state, self.failed, self._open_seconds = "closed", 0, self._settings.open_seconds
        self._failing_principals.clear()

    def _open(self) -> None:
        self.state = "open"
        self._open_until = self._settings.clock() + self._open_seconds
