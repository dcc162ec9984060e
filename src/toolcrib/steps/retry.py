"""A call that failed is tried again where nothing was sent, or where repeating it changes nothing."""

from collections.abc import Collection
from dataclasses import dataclass, field
from random import uniform

import anyio

from toolcrib.errors import Lost, Refused, ToolcribError, Unavailable
from toolcrib.interfaces import Handler, Stage
from toolcrib.model import Call, Result, Tool

_PASSING = ("NETWORK_ERROR", "HTTP_ERROR", "HANDLER_ERROR")


@dataclass
class _Budget:
    """What one source has left for retries; a source in trouble must not get twice the calls."""

    tokens: float


@dataclass(frozen=True)
class Retry:
    """Goes by the operator's and the author's word on a tool, never by what an external server claims."""

    most: int = 2
    pause: float = 0.05
    """The longest pause before the first retry, in seconds; it doubles, and chance picks one below it."""
    share: float = 0.1
    """What each call adds to its source's budget; a retry takes 1."""
    budget: float = 10.0
    patience: float = 1.0
    """The longest time to wait for a source that says when to come back."""
    _budgets: dict[str, _Budget] = field(default_factory=dict[str, _Budget], init=False, repr=False)

    def fit(self, tool: Tool) -> Stage | None:
        """Left out for functions that must not be repeated; the tools of a source share its budget."""
        if tool.family == "core" or (tool.family == "function" and not tool.repeatable):
            return None
        budget = self._budgets.setdefault(tool.source, _Budget(self.budget))

        async def retry(call: Call, proceed: Handler) -> Result:
            budget.tokens = min(budget.tokens + self.share, self.budget)
            try:
                return await proceed(call)
            except ToolcribError as error:
                if not _harmless(error, tool):
                    raise
                first = error
            return await self._again(call, proceed, first, budget)

        return retry

    def retain(self, sources: Collection[str]) -> None:
        """Drop the budgets of all other sources."""
        for gone in self._budgets.keys() - set(sources):
            del self._budgets[gone]

    async def _again(self, call: Call, proceed: Handler, first: ToolcribError, budget: _Budget) -> Result:
        """Try again, as often and as long as that may be; else the last error that tells of a real try."""
        told = error = first
        for number in range(self.most):
            pause = self._pause(error, number)
            if pause is None or budget.tokens < 1 or not _in_time(call, pause):
                break
            budget.tokens -= 1
            await anyio.sleep(pause)
            try:
                return await proceed(call)
            except ToolcribError as again:
                error = again
            if not isinstance(error, Unavailable | Refused):
                told = error
            if not (_harmless(error, call.tool) or _restarting(error, told)):
                break
        raise told

    def _pause(self, error: ToolcribError, number: int) -> float | None:
        """How long to wait before the next try; None where that is too long."""
        chance = uniform(0, self.pause * 2**number)  # noqa: S311 - spreads retries, hides nothing
        wait = error.problem.retry_after or 0.0
        return None if wait > self.patience else wait + chance


def _harmless(error: ToolcribError, tool: Tool) -> bool:
    """Whether a call may be repeated after this error."""
    code = error.problem.code
    if code == "NETWORK_ERROR" and isinstance(error, Unavailable):
        return True
    if not tool.repeatable:
        return False
    if code == "SOURCE_DOWN":
        return isinstance(error, Lost)
    return code in _PASSING and error.problem.retryable


def _restarting(error: ToolcribError, told: ToolcribError) -> bool:
    """Whether a source that was lost under this call says that it is about to be back."""
    down = isinstance(error, Unavailable) and error.problem.code == "SOURCE_DOWN"
    return down and not isinstance(told, Unavailable) and error.problem.retry_after is not None


def _in_time(call: Call, pause: float) -> bool:
    return call.deadline is None or anyio.current_time() + pause < call.deadline
