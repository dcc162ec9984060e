"""Outermost: every call is recorded exactly once, with how it ended and how long it took."""

from dataclasses import dataclass
from time import perf_counter

from toolcrib.errors import problem
from toolcrib.interfaces import Handler, Recorder, Stage
from toolcrib.model import Call, Result, Tool


@dataclass(frozen=True)
class Record:
    """Tells the recorder, which never waits."""

    recorder: Recorder

    def fit(self, tool: Tool) -> Stage:
        """Every tool is recorded."""
        del tool
        return self._record

    async def _record(self, call: Call, proceed: Handler) -> Result:
        started = perf_counter()
        try:
            result = await proceed(call)
        except BaseException:  # only cancellation gets past `recover`: note it and let it go on
            gone = Result(problem=problem("CANCELLED", "the caller went away"))
            self.recorder.record(call, gone, perf_counter() - started)
            raise
        self.recorder.record(call, result, perf_counter() - started)
        return result
