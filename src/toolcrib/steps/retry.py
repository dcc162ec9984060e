"""Retries failed calls with exponential backoff and jitter, if nothing was sent or repeating is safe."""

from collections.abc import Collection
from dataclasses import dataclass, field
from math import inf
from random import uniform

import anyio

from toolcrib.errors import Lost, Refused, ToolcribError, Unavailable
from toolcrib.interfaces import Handler, Stage
from toolcrib.model import Call, Result, Tool

_TRANSIENT_CODES = ("NETWORK_ERROR", "HTTP_ERROR", "HANDLER_ERROR")


@dataclass
class _Budget:
    """Retry budget of one source (token bucket): retries must not double the load of a failing source."""

    tokens: float


@dataclass(frozen=True)
class Retry:
    """Relies on what operator and author declare of a tool, never on claims of an external server."""

    max_retries: int = 2
    first_delay: float = 0.05
    """Maximum seconds before the first retry; doubles per retry, with full jitter."""
    tokens_per_call: float = 0.1
    """Tokens each call adds to its source's budget; a retry takes 1."""
    budget: float = 10.0
    max_retry_after: float = 1.0
    """Maximum Retry-After that is waited for, in seconds."""
    _budgets: dict[str, _Budget] = field(default_factory=dict[str, _Budget], init=False, repr=False)

    def fit(self, tool: Tool) -> Stage | None:
        """Return the stage, None for non-repeatable functions; the tools of a source share a budget."""
        if tool.family == "core" or (tool.family == "function" and not tool.repeatable):
            return None
        budget = self._budgets.setdefault(tool.source, _Budget(self.budget))

        async def retry(call: Call, proceed: Handler) -> Result:
            budget.tokens = min(budget.tokens + self.tokens_per_call, self.budget)
            try:
                return await proceed(call)
            except ToolcribError as error:
                if not _is_repeatable(error, tool):
                    raise
                first_error = error
            return await self._retry(call, proceed, first_error, budget)

        return retry

    def retain(self, sources: Collection[str]) -> None:
        """Drop the budgets of all other sources."""
        for source in self._budgets.keys() - set(sources):
            del self._budgets[source]

    async def _retry(
        self, call: Call, proceed: Handler, first_error: ToolcribError, budget: _Budget
    ) -> Result:
        """Retry within the limits; else raise the last error of an attempt that reached the source."""
        reported = error = first_error
        for attempt in range(self.max_retries):
            delay = self._next_delay(error, attempt)
            latest = inf if call.deadline is None else call.deadline
            if delay is None or budget.tokens < 1 or anyio.current_time() + delay >= latest:
                break
            budget.tokens -= 1
            await anyio.sleep(delay)
            try:
                return await proceed(call)
            except ToolcribError as retry_error:
                error = retry_error
            if not isinstance(error, Unavailable | Refused):
                reported = error
            if not (_is_repeatable(error, call.tool) or _is_restarting(error, reported)):
                break
        raise reported

    def _next_delay(self, error: ToolcribError, attempt: int) -> float | None:
        """Return the seconds before the next attempt; None if the source's Retry-After is too long."""
        jitter = uniform(0, self.first_delay * 2**attempt)  # noqa: S311 - jitter, no security use
        retry_after = error.problem.retry_after or 0.0
        return None if retry_after > self.max_retry_after else retry_after + jitter


def _is_repeatable(error: ToolcribError, tool: Tool) -> bool:
    """Whether a call may be repeated after this error."""
    code = error.problem.code
    if code == "NETWORK_ERROR" and isinstance(error, Unavailable):
        return True
    if not tool.repeatable:
        return False
    if code == "SOURCE_DOWN":
        return isinstance(error, Lost)
    return code in _TRANSIENT_CODES and error.problem.retryable


def _is_restarting(error: ToolcribError, reported: ToolcribError) -> bool:
    """Whether a source that was lost during this call reports that it is restarting."""
    down = isinstance(error, Unavailable) and error.problem.code == "SOURCE_DOWN"
    return down and not isinstance(reported, Unavailable) and error.problem.retry_after is not None
