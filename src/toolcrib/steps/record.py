"""Outermost: every call is told of as it begins, and recorded exactly once as it ends, with its time."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from time import perf_counter

from toolcrib.errors import problem
from toolcrib.interfaces import Handler, Recorder, Stage
from toolcrib.model import Call, Origin, Overheard, Result, Tool

_GONE = Result(problem=problem("CANCELLED", "the caller went away"))


@dataclass(frozen=True)
class Record:
    """Tells the recorder, which never waits."""

    recorder: Recorder
    wants: Callable[[Origin], bool] | None = None
    """Decides whether a call's trace is kept; None where its flags are right as they came."""
    begun: Callable[[Call, float], None] | None = None
    """Told of every call as it begins, with the moment by `perf_counter`; None where nobody asks."""

    def fit(self, tool: Tool) -> Stage:
        """Every tool is recorded; what runs in this process never asks."""
        stage = self._record if tool.inside else self._record_talk
        return stage if self.wants is None else partial(_flagged, self.wants, stage)

    async def _record(self, call: Call, proceed: Handler) -> Result:
        started = perf_counter()
        if self.begun is not None:
            self.begun(call, started)
        try:
            result = await proceed(call)
        except BaseException:  # only cancellation gets past `recover`: note it and let it go on
            self.recorder.record(call, _GONE, perf_counter() - started)
            raise
        self.recorder.record(call, result, perf_counter() - started)
        return result

    async def _record_talk(self, call: Call, proceed: Handler) -> Result:
        """Do the same, leaving out the time in which the caller was asked: it says nothing of the tool."""
        channel = call.channel
        if channel is None or not channel.capabilities:
            return await self._record(call, proceed)
        watch = _Stopwatch()
        if self.begun is not None:
            self.begun(call, watch.began)
        heard = call.but(channel=Overheard(channel, watch.stop, watch.start))
        try:
            result = await proceed(heard)
        except BaseException:  # as above
            self.recorder.record(call, _GONE, watch.seconds, watch.waited)
            raise
        self.recorder.record(call, result, watch.seconds, watch.waited)
        return result


async def _flagged(wants: Callable[[Origin], bool], stage: Stage, call: Call, proceed: Handler) -> Result:
    """Say in the trace first whether it is kept, so that the servers a call reaches do as we do."""
    wanted = wants(call.origin)
    return await stage(call.but(origin=call.origin.but(sampled=wanted)), proceed)


class _Stopwatch:
    """Counts the seconds from when it is made, but for those in which it is stopped."""

    def __init__(self) -> None:
        self._counted = 0.0
        self.began = perf_counter()
        self._since: float | None = self.began

    @property
    def seconds(self) -> float:
        """What it has counted."""
        return self._counted if self._since is None else self._counted + perf_counter() - self._since

    @property
    def waited(self) -> float:
        """The seconds in which it was stopped."""
        return perf_counter() - self.began - self.seconds

    def stop(self) -> None:
        """Count no more."""
        self._counted, self._since = self.seconds, None

    def start(self) -> None:
        """Count on."""
        self._since = perf_counter()
