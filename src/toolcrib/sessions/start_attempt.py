"""One attempt to start or reconnect an app, shared by all waiters: it settles once."""

from math import inf

import anyio

from toolcrib.errors import Unavailable, problem
from toolcrib.model import Problem

PATIENCE = 1.0
"""Seconds the right connection may still take after a failed one, once the webhook has responded."""


class StartAttempt:
    """Created when an app is requested to connect, or is expected to reconnect."""

    def __init__(self) -> None:
        self.limit = anyio.CancelScope(deadline=inf)
        """Scope around the timeout of the attempt; evidence of a failure shortens its deadline."""
        self.recalled = False
        """Whether a lost app's webhook is in flight; an app that is back by then releases and reconnects."""
        self._done = anyio.Event()
        self._problem: Problem | None = None
        self._suspicion: Problem | None = None
        self._named = self._answered = False

    @property
    def open(self) -> bool:
        """Whether the attempt has not settled."""
        return not self._done.is_set()

    def settle(self, found: Problem | None = None) -> None:
        """Settle the attempt, with an error or without; only the first call counts."""
        if self.open:
            self._problem = found
            self._done.set()

    async def ended(self) -> None:
        """Wait until the attempt has settled, whatever the result."""
        await self._done.wait()

    async def wait(self) -> None:
        """Wait until the app runs; raise the error of a failed attempt."""
        await self._done.wait()
        if self._problem is not None:
            raise unavailable(self._problem)

    # Evidence collected during the attempt. None of it is final: a connection is unauthenticated until it
    # has sent the key, and an unauthenticated client must not be able to fail the attempt for its waiters.

    def suspect(self, found: Problem, *, named: bool) -> None:
        """Record a probable cause, used if the attempt fails; `named` if the connection named this app."""
        if self._suspicion is None or (named and not self._named):
            self._suspicion, self._named = found, named
        self._hurry()

    def answered(self) -> None:
        """Record that the app has responded to the webhook."""
        self._answered = True
        self._hurry()

    def reason(self, otherwise: Problem) -> Problem:
        """Return the recorded cause, or else the given problem."""
        return self._suspicion or otherwise

    def _hurry(self) -> None:
        if self._named and self._answered:
            self.limit.deadline = min(self.limit.deadline, anyio.current_time() + PATIENCE)


def refusal(stage: str, message: str, *, retryable: bool) -> Problem:
    """Return the problem of an app that is not available."""
    return problem("APP_NOT_AVAILABLE", message, stage=stage, retryable=retryable)


def too_late(package: str, seconds: float) -> Problem:
    """Return the problem of an app that did not connect in time."""
    message = f"{package} was asked to start and did not connect within {seconds:g} s; try again"
    return problem("TIMEOUT", message, stage="timeout")


def unavailable(found: Problem) -> Unavailable:
    """Build an exception from a problem: each waiter must raise its own instance."""
    return Unavailable(found.code, found.message, stage=found.stage, retryable=found.retryable)
