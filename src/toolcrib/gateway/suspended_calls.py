"""One call that may ask its caller something: it outlives the request that made it, and waits for another."""

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field
from math import inf
from time import perf_counter
from typing import NamedTuple

from toolcrib.model import Caller, Json, JsonObject, Origin, Progress, Report, Result, Tool, Unanswered
from toolcrib.slots import DEFAULT_SHARE, Slots

log = logging.getLogger(__name__)

NOTHING: JsonObject = {}

Tell = Callable[[JsonObject], Awaitable[None]]
"""Passes on a log message, as the parameters of `notifications/message`."""

MOST_QUESTIONS = 16
"""How many questions of one call may wait at once."""
_ASKED_BY = {
    "elicitation/create": "elicitation",
    "sampling/createMessage": "sampling",
    "roots/list": "roots",
}
_METHOD_NOT_FOUND, _INVALID_PARAMS, _NO_ANSWER = -32601, -32602, -32000


def can_be_asked(capabilities: Collection[str]) -> bool:
    """Whether a caller declared anything it could be asked for."""
    return any(each in capabilities for each in _ASKED_BY.values())


class NotifyOnlyChannel:
    """The channel of a caller that can be told things and asked nothing."""

    alone = False

    def __init__(
        self,
        caller: Caller,
        level: str | None = None,
        tell: Tell | None = None,
        *,
        capabilities: JsonObject = NOTHING,
    ) -> None:
        self.owner = f"{caller.id}\n{caller.context}"
        self.level, self.capabilities = level, capabilities
        self._tell = tell

    async def ask(self, method: str, params: JsonObject) -> JsonObject:
        """Refuse to ask what the caller has not said it can answer."""
        del params
        raise _not_declared(method)

    async def log(self, params: JsonObject) -> None:
        """Tell whoever listens now."""
        if self._tell is not None:
            await self._tell(params)


@dataclass
class SuspensionLimits:
    """Limits of calls that wait for their callers: in all, of one principal, and of one caller."""

    most: int = 1000
    per_caller: int = 16
    share: float = DEFAULT_SHARE
    talks: "set[SuspendedCall]" = field(default_factory=set["SuspendedCall"])
    """Every call that runs, or has ended and was not fetched."""
    parked: "dict[str, SuspendedCall]" = field(default_factory=dict[str, "SuspendedCall"])
    """Those that wait, by what a request that comes back shows."""
    _of: Counter[str] = field(default_factory=Counter[str])
    _slots: Slots = field(init=False)

    def __post_init__(self) -> None:
        """Divide what there is."""
        self._slots = Slots(self.most, self.share)

    @property
    def taken(self) -> int:
        """How many calls have asked something and have not ended."""
        return self._slots.used

    def waiting(self) -> int:
        """How many calls wait for a caller to come back."""
        return len(self.parked)

    def take(self, caller: Caller) -> None:
        """Take a place, or say that there is none: those who wait are not thrown out."""
        if self._of[caller.id] >= self.per_caller:
            said = f"{self.per_caller} calls of this caller wait for answers already; answer one of them"
            raise Unanswered(_NO_ANSWER, said)
        if not self._slots.take(caller.principal):
            raise Unanswered(_NO_ANSWER, "too many calls wait for answers already; try again later")
        self._of[caller.id] += 1

    def leave(self, caller: Caller) -> None:
        """Give a place back."""
        self._of[caller.id] -= 1
        if not self._of[caller.id]:
            del self._of[caller.id]
        self._slots.release(caller.principal)


class _Question(NamedTuple):
    """One that waits. Its answer comes as None where nobody will give one."""

    spelled: JsonObject
    answer: "asyncio.Future[JsonObject | None]"

    def settle(self, answer: JsonObject | None) -> None:
        """Give the answer to whoever asked, unless it has just given up."""
        if not self.answer.done():
            self.answer.set_result(answer)


class SuspendedCall(NotifyOnlyChannel):
    """The channel of such a call, and its task: attended by a request, or parked between two of them.

    It takes a place with its first question, and gives it back when it has ended and was fetched. The task
    is a bare one: a group and a scope would cost as much as the call, and a group ends when somebody cancels
    one task of it, as the limits of a try do. `Conversations.close` waits for them all.
    """

    alone = True

    def __init__(
        self,
        tool: Tool,
        caller: Caller,
        origin: Origin,
        *,
        capabilities: JsonObject,
        places: SuspensionLimits,
    ) -> None:
        super().__init__(caller, capabilities=capabilities)
        self.tool, self.caller, self.origin = tool, caller, origin
        self.ticket = ""
        """What a request that comes back shows; empty while one is here."""
        self.over = False
        self.result: Result | None = None
        """How it ended; None where it was cut short."""
        self._places, self._placed = places, False
        self._waiting: dict[str, _Question] = {}
        self._handed_out: frozenset[str] = frozenset()
        self._numbered = 0
        self._report: Report | None = None
        self._started = perf_counter()
        self._loop = asyncio.get_running_loop()
        self._news: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._until = inf

    # --- what the call does, in whatever task ---

    async def ask(self, method: str, params: JsonObject) -> JsonObject:
        """Wait until a request has brought the answer."""
        self._check(method, params)
        if not self._placed:
            self._places.take(self.caller)
            self._placed = True
        self._numbered += 1
        name = f"q{self._numbered}"
        question = _Question({"method": method, "params": params}, self._loop.create_future())
        self._waiting[name] = question
        self._wake()
        try:
            answer = await question.answer
        finally:
            self._waiting.pop(name, None)
        if answer is None:
            raise Unanswered(_NO_ANSWER, "the call ended before anybody answered")
        return answer

    async def report(self, progress: Progress) -> None:
        """Tell whoever listens now."""
        if self._report is not None:
            await self._report(progress)

    def _check(self, method: str, params: JsonObject) -> None:
        declared: Json = self.capabilities.get(_ASKED_BY.get(method, ""))
        if not isinstance(declared, dict):
            raise _not_declared(method)
        mode: Json = params.get("mode", "form") if method == "elicitation/create" else None
        if mode is not None and mode not in (declared if "url" in declared else ("form",)):
            raise Unanswered(_INVALID_PARAMS, f"this caller cannot be asked by {str(mode)[:100]}")
        if self.over:
            raise Unanswered(_NO_ANSWER, "the call has ended, and nobody is there to be asked")
        if len(self._waiting) >= MOST_QUESTIONS:
            raise Unanswered(_NO_ANSWER, f"{MOST_QUESTIONS} questions of this call wait already")

    # --- its task ---

    def start(self, call: Callable[[], Awaitable[Result]]) -> None:
        """Carry out the call."""
        self._places.talks.add(self)
        self.task = self._loop.create_task(self._run(call))
        self.task.add_done_callback(self._end)  # one that is cancelled before it begins never ends itself

    def drop(self) -> None:
        """End the call, wherever it is; what came of it is not kept."""
        self._unpark()
        if self.over:
            self._leave()
        else:
            self.task.cancel()

    async def _run(self, call: Callable[[], Awaitable[Result]]) -> None:
        try:
            self.result = await call()
        except Exception:  # boundary: nobody may be there to hear of a fault of ours
            log.exception("%s failed unexpectedly", self.tool.name)
        finally:
            self._end()

    def _end(self, _task: object = None) -> None:
        if self.over:
            return
        self.over = True
        for question in self._waiting.values():
            question.settle(None)
        self._waiting.clear()
        self._wake()
        if not self.ticket:
            self._leave()

    def _leave(self) -> None:
        self._set_timer(inf)
        self._places.talks.discard(self)
        if self._placed:
            self._placed = False
            self._places.leave(self.caller)

    def _wake(self) -> None:
        if self._news is not None and not self._news.done():
            self._news.set_result(None)

    def _set_timer(self, until: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._until = until
        self._timer = None if until == inf else self._loop.call_at(until, self.drop)

    def _unpark(self) -> None:
        self._places.parked.pop(self.ticket, None)
        self.ticket = ""

    # --- the request that attends it ---

    def attend(self, report: Report | None, level: str | None, tell: Tell | None) -> None:
        """Say things to this request from now on."""
        self._report, self.level, self._tell = report, level, tell

    async def turn(self) -> None:
        """Wait until the call has ended, or asks."""
        while not (self.over or self._waiting):
            self._news = self._loop.create_future()
            await self._news

    def park(self, ticket: str, seconds: float) -> None:
        """Wait for a request that shows the ticket; so long, then end the call and forget its result."""
        self.ticket = ticket
        self._places.parked[ticket] = self
        self.attend(None, self.level, None)
        self._set_timer(self._loop.time() + seconds)

    def questions(self) -> dict[str, JsonObject]:
        """Hand out what waits for an answer now, by the names it is asked under."""
        self._handed_out = frozenset(self._waiting)
        return {name: question.spelled for name, question in self._waiting.items()}

    def asked(self) -> tuple[str, ...]:
        """Name what was handed out and still waits; the source may have thought better of the rest."""
        return tuple(name for name in self._waiting if name in self._handed_out)

    def resume(self, answers: Mapping[str, JsonObject], deadline: float | None) -> None:
        """Go on with these answers, until the deadline of who brought them."""
        self._unpark()
        if self.over:
            self._leave()
            return
        self._set_timer(inf if deadline is None else deadline)
        for name, answer in answers.items():
            self._waiting.pop(name).settle(answer)

    @property
    def left(self) -> float:
        """How many seconds it stays parked."""
        return max(0.0, self._until - self._loop.time())

    @property
    def seconds(self) -> float:
        """How long it has taken so far."""
        return perf_counter() - self._started


def _not_declared(method: str) -> Unanswered:
    return Unanswered(_METHOD_NOT_FOUND, f"this caller cannot be asked {method[:100]}: it did not say it can")
