"""One wait for an app to run, shared by all who need it: it ends once, well or with a problem."""

from math import inf

import anyio

from toolcrib.errors import Unavailable, problem
from toolcrib.model import Problem

PATIENCE = 1.0
"""How long the right connection may still take after a wrong one, once the webhook has been answered."""


class StartAttempt:
    """Begins when an app is asked to come, or is expected back."""

    def __init__(self) -> None:
        self.limit = anyio.CancelScope(deadline=inf)
        """Around whoever watches over it; what is known meanwhile brings its end nearer."""
        self.recalled = False
        """Whether one that was lost is being asked to come: if it is back already, it leaves to come anew."""
        self._done = anyio.Event()
        self._problem: Problem | None = None
        self._suspicion: Problem | None = None
        self._named = self._answered = False

    @property
    def open(self) -> bool:
        """Whether it has not ended."""
        return not self._done.is_set()

    def settle(self, found: Problem | None = None) -> None:
        """End it, once."""
        if self.open:
            self._problem = found
            self._done.set()

    async def ended(self) -> None:
        """Wait for its end, whatever that is."""
        await self._done.wait()

    async def wait(self) -> None:
        """Wait for the app to run; raise what is in the way."""
        await self._done.wait()
        if self._problem is not None:
            raise unavailable(self._problem)

    # What is learned on the way. None of it is final: who connects is known only once it has shown the key,
    # and a stranger must not be able to end what somebody else waits for.

    def suspect(self, found: Problem, *, named: bool) -> None:
        """Remember what will have been the reason if nothing better comes; `named` if it was surely meant."""
        if self._suspicion is None or (named and not self._named):
            self._suspicion, self._named = found, named
        self._hurry()

    def answered(self) -> None:
        """Take note that the app has taken the webhook."""
        self._answered = True
        self._hurry()

    def reason(self, otherwise: Problem) -> Problem:
        """Return the best reason there is for its failure."""
        return self._suspicion or otherwise

    def _hurry(self) -> None:
        if self._named and self._answered:
            self.limit.deadline = min(self.limit.deadline, anyio.current_time() + PATIENCE)


def refusal(stage: str, message: str, *, retryable: bool) -> Problem:
    """Say why an app could not be had."""
    return problem("APP_NOT_AVAILABLE", message, stage=stage, retryable=retryable)


def too_late(package: str, seconds: float) -> Problem:
    """Say that an app did not come in time."""
    message = f"{package} was asked to start and did not connect within {seconds:g} s; try again"
    return problem("TIMEOUT", message, stage="timeout")


def unavailable(found: Problem) -> Unavailable:
    """Make an error of a problem: each who waits needs one of its own."""
    return Unavailable(found.code, found.message, stage=found.stage, retryable=found.retryable)
