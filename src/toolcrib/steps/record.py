"""Outermost step: registers a call while it runs, and records it exactly once when it ends."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from time import perf_counter

from toolcrib.errors import problem
from toolcrib.interfaces import Handler, Outcome, Recorder, Stage
from toolcrib.model import Call, ObservedChannel, Origin, Result, Tool

_CLIENT_DISCONNECTED = Result(problem=problem("CANCELLED", "the client disconnected"))


@dataclass(frozen=True)
class Record:
    """Passes calls to the recorder, which never blocks."""

    recorder: Recorder
    wants: Callable[[Origin], bool] | None = None
    """Sampling decision for a call's trace; None if the incoming flags stay valid."""
    running: dict[str, tuple[Call, float]] | None = None
    """Registry of running calls by id, with their start by `perf_counter`; `recorder` removes them."""
    begun: Callable[[Call], None] | None = None
    """Writes the log line of a declared mutation before the call is sent."""

    def fit(self, tool: Tool) -> Stage:
        """Return the stage; every tool is recorded."""
        if tool.declared_mutation and self.begun is not None:
            stage: Stage = partial(_logged_before, self.begun, replace(self, running=None).fit_timing(tool))
        else:
            stage = self.fit_timing(tool)
        return stage if self.wants is None else partial(_with_sampling, self.wants, stage)

    def fit_timing(self, tool: Tool) -> Stage:
        """Return the stage that times calls to this tool; tools in this process never elicit input."""
        return self._record if tool.inside else self._record_with_channel

    async def _record(self, call: Call, proceed: Handler) -> Result:
        started = perf_counter()
        if self.running is not None:
            self.running[call.id] = call, started
        try:
            result = await proceed(call)
        except BaseException:  # only cancellation passes `recover`: record it and re-raise
            self.recorder.record(call, _CLIENT_DISCONNECTED, perf_counter() - started)
            raise
        self.recorder.record(call, result, perf_counter() - started)
        return result

    async def _record_with_channel(self, call: Call, proceed: Handler) -> Result:
        """Do the same without the time spent on elicitation, which is not the tool's."""
        channel = call.channel
        if channel is None or not channel.capabilities:
            return await self._record(call, proceed)
        stopwatch = _Stopwatch()
        if self.running is not None:
            self.running[call.id] = call, stopwatch.began
        timed_call = call.replace(channel=ObservedChannel(channel, stopwatch.stop, stopwatch.start))
        try:
            result = await proceed(timed_call)
        except BaseException:  # as above
            self.recorder.record(call, _CLIENT_DISCONNECTED, stopwatch.seconds, stopwatch.paused_seconds)
            raise
        self.recorder.record(call, result, stopwatch.seconds, stopwatch.paused_seconds)
        return result


async def _with_sampling(
    wants: Callable[[Origin], bool], stage: Stage, call: Call, proceed: Handler
) -> Result:
    """Set the sampled flag before the call proceeds, so that downstream servers decide alike."""
    sampled = wants(call.origin)
    return await stage(call.replace(origin=call.origin.replace(sampled=sampled)), proceed)


def _logged_before(begun: Callable[[Call], None], stage: Stage, call: Call, proceed: Handler) -> Outcome:
    """Write the log line of a call before anything of it is sent."""
    begun(call)
    return stage(call, proceed)


class _Stopwatch:
    """Counts the seconds since its creation, except those in which it is stopped."""

    def __init__(self) -> None:
        self._counted = 0.0
        self.began = perf_counter()
        self._since: float | None = self.began

    @property
    def seconds(self) -> float:
        """Seconds counted so far."""
        return self._counted if self._since is None else self._counted + perf_counter() - self._since

    @property
    def paused_seconds(self) -> float:
        """Seconds in which it was stopped."""
        return perf_counter() - self.began - self.seconds

    def stop(self) -> None:
        """Stop counting."""
        self._counted, self._since = self.seconds, None

    def start(self) -> None:
        """Resume counting."""
        self._since = perf_counter()
