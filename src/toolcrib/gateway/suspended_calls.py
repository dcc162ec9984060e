"""A call suspended for user input: its task outlives the HTTP request and is resumed by a later one."""

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

EMPTY_OBJECT: JsonObject = {}

SendLog = Callable[[JsonObject], Awaitable[None]]
"""Sends a log message; takes the parameters of `notifications/message`."""

MAX_PENDING_QUESTIONS = 16
"""Most pending questions of one call."""
_CAPABILITY_OF_METHOD = {
    "elicitation/create": "elicitation",
    "sampling/createMessage": "sampling",
    "roots/list": "roots",
}
"""The client capability that each server-initiated request needs."""
_METHOD_NOT_FOUND, _INVALID_PARAMS, _NO_ANSWER = -32601, -32602, -32000


def accepts_questions(capabilities: Collection[str]) -> bool:
    """Whether a client declared a capability for a server-initiated request."""
    return any(each in capabilities for each in _CAPABILITY_OF_METHOD.values())


class NotifyOnlyChannel:
    """The channel of a caller that accepts notifications and no requests."""

    alone = False

    def __init__(
        self,
        caller: Caller,
        level: str | None = None,
        tell: SendLog | None = None,
        *,
        capabilities: JsonObject = EMPTY_OBJECT,
    ) -> None:
        self.owner = f"{caller.id}\n{caller.context}"
        self.level, self.capabilities = level, capabilities
        self._tell = tell

    async def ask(self, method: str, params: JsonObject) -> JsonObject:
        """Refuse every request: the client has not declared the capability."""
        del params
        raise _not_declared(method)

    async def log(self, params: JsonObject) -> None:
        """Send a log message to the attached request, if any."""
        if self._tell is not None:
            await self._tell(params)


@dataclass
class SuspensionLimits:
    """Limits of suspended calls: in all, per principal, and per caller."""

    most: int = 1000
    per_caller: int = 16
    share: float = DEFAULT_SHARE
    talks: "set[SuspendedCall]" = field(default_factory=set["SuspendedCall"])
    """Every call that runs, or has ended and was not fetched yet."""
    parked: "dict[str, SuspendedCall]" = field(default_factory=dict[str, "SuspendedCall"])
    """The calls that wait for a retry, by ticket."""
    _of: Counter[str] = field(default_factory=Counter[str])
    _slots: Slots = field(init=False)

    def __post_init__(self) -> None:
        """Create the slots from `most` and `share`."""
        self._slots = Slots(self.most, self.share)

    @property
    def taken(self) -> int:
        """The number of calls that have sent a question and have not been released."""
        return self._slots.used

    def waiting(self) -> int:
        """Return the number of calls that wait for a retry of their caller."""
        return len(self.parked)

    def take(self, caller: Caller) -> None:
        """Take a slot, or raise `Unanswered`; suspended calls are never evicted for a new one."""
        if self._of[caller.id] >= self.per_caller:
            said = f"{self.per_caller} calls of this caller wait for answers already; answer one of them"
            raise Unanswered(_NO_ANSWER, said)
        if not self._slots.take(caller.principal):
            raise Unanswered(_NO_ANSWER, "too many calls wait for answers already; try again later")
        self._of[caller.id] += 1

    def leave(self, caller: Caller) -> None:
        """Release a slot."""
        self._of[caller.id] -= 1
        if not self._of[caller.id]:
            del self._of[caller.id]
        self._slots.release(caller.principal)


class _Question(NamedTuple):
    """One pending question. Its future resolves to None where the call ends without an answer."""

    spelled: JsonObject
    answer: "asyncio.Future[JsonObject | None]"

    def settle(self, answer: JsonObject | None) -> None:
        """Resolve the future, unless it was cancelled."""
        if not self.answer.done():
            self.answer.set_result(answer)


class SuspendedCall(NotifyOnlyChannel):
    """The channel of such a call, and its task: attended by a request, or parked between two requests.

    It takes a slot with its first question, and releases it when it has ended and its result was fetched. The
    task is a plain asyncio task: a task group and a cancel scope would cost as much as the call, and a task
    group ends when one of its tasks is cancelled, as the limits of an attempt do. `MultiRoundCalls.close`
    waits for all of them.
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
        """The id by which a retry finds this call; empty while a request attends it."""
        self.over = False
        self.result: Result | None = None
        """The outcome; None where the call was cancelled."""
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

    # --- used by the call, from any task ---

    async def ask(self, method: str, params: JsonObject) -> JsonObject:
        """Send a request to the client; wait until a retry brings the response."""
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
        """Send progress to the attached request, if any."""
        if self._report is not None:
            await self._report(progress)

    def _check(self, method: str, params: JsonObject) -> None:
        declared: Json = self.capabilities.get(_CAPABILITY_OF_METHOD.get(method, ""))
        if not isinstance(declared, dict):
            raise _not_declared(method)
        mode: Json = params.get("mode", "form") if method == "elicitation/create" else None
        if mode is not None and mode not in (declared if "url" in declared else ("form",)):
            raise Unanswered(_INVALID_PARAMS, f"this caller cannot be asked by {str(mode)[:100]}")
        if self.over:
            raise Unanswered(_NO_ANSWER, "the call has ended, and nobody is there to be asked")
        if len(self._waiting) >= MAX_PENDING_QUESTIONS:
            raise Unanswered(_NO_ANSWER, f"{MAX_PENDING_QUESTIONS} questions of this call wait already")

    # --- its task ---

    def start(self, call: Callable[[], Awaitable[Result]]) -> None:
        """Start the task of the call."""
        self._places.talks.add(self)
        self.task = self._loop.create_task(self._run(call))
        self.task.add_done_callback(self._end)  # a task cancelled before its start runs no `finally`

    def drop(self) -> None:
        """Cancel the call, in whatever state it is; its result is discarded."""
        self._unpark()
        if self.over:
            self._leave()
        else:
            self.task.cancel()

    async def _run(self, call: Callable[[], Awaitable[Result]]) -> None:
        try:
            self.result = await call()
        except Exception:  # boundary: no request may be attached that could report the bug
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

    def attend(self, report: Report | None, level: str | None, tell: SendLog | None) -> None:
        """Route progress and log messages to this request from now on."""
        self._report, self.level, self._tell = report, level, tell

    async def turn(self) -> None:
        """Wait until the call has ended or has a pending question."""
        while not (self.over or self._waiting):
            self._news = self._loop.create_future()
            await self._news

    def park(self, ticket: str, seconds: float) -> None:
        """Wait for a retry with this ticket; after the timeout, cancel the call or discard its result."""
        self.ticket = ticket
        self._places.parked[ticket] = self
        self.attend(None, self.level, None)
        self._set_timer(self._loop.time() + seconds)

    def questions(self) -> dict[str, JsonObject]:
        """Return the pending questions by their names, and remember which were sent."""
        self._handed_out = frozenset(self._waiting)
        return {name: question.spelled for name, question in self._waiting.items()}

    def asked(self) -> tuple[str, ...]:
        """Return the names of the sent questions that are still pending; a source may cancel some."""
        return tuple(name for name in self._waiting if name in self._handed_out)

    def resume(self, answers: Mapping[str, JsonObject], deadline: float | None) -> None:
        """Continue with these answers, until the deadline of the request that brought them."""
        self._unpark()
        if self.over:
            self._leave()
            return
        self._set_timer(inf if deadline is None else deadline)
        for name, answer in answers.items():
            self._waiting.pop(name).settle(answer)

    @property
    def left(self) -> float:
        """The seconds until the parked call times out."""
        return max(0.0, self._until - self._loop.time())

    @property
    def seconds(self) -> float:
        """The seconds since the call began."""
        return perf_counter() - self._started


def _not_declared(method: str) -> Unanswered:
    return Unanswered(_METHOD_NOT_FOUND, f"this caller cannot be asked {method[:100]}: it did not say it can")
