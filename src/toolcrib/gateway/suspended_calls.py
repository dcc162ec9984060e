"""A call suspended for user input: its task outlives the HTTP request and is resumed by a later one."""

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field
from math import inf
from time import perf_counter
from typing import NamedTuple

from toolcrib.mcp.jsonrpc import INVALID_PARAMS, METHOD_NOT_FOUND, NO_ANSWER
from toolcrib.mcp.methods import ELICIT
from toolcrib.mcp.revisions import CAPABILITY_OF_REQUEST, RELAYS
from toolcrib.model import Caller, Json, JsonObject, Origin, Progress, Report, Result, Tool, Unanswered
from toolcrib.slots import DEFAULT_SHARE, Slots

log = logging.getLogger(__name__)

EMPTY_OBJECT: JsonObject = {}

SendLog = Callable[[JsonObject], Awaitable[None]]
"""Sends a log message; takes the parameters of `notifications/message`."""

MAX_PENDING_QUESTIONS = 16
PARKED_SECONDS = 600.0
"""How long a suspended call stays parked, in seconds."""


def accepts_questions(capabilities: Collection[str]) -> bool:
    """Whether a client declared a capability for a server-initiated request."""
    return any(capability in capabilities for capability in RELAYS)


class NotifyOnlyChannel:
    """The channel of a caller that accepts notifications and no requests."""

    alone = False

    def __init__(
        self,
        caller: Caller,
        level: str | None = None,
        send_log: SendLog | None = None,
        *,
        capabilities: JsonObject = EMPTY_OBJECT,
    ) -> None:
        self.owner = f"{caller.id}\n{caller.context}"
        self.level, self.capabilities = level, capabilities
        self._send_log = send_log

    async def ask(self, method: str, params: JsonObject) -> JsonObject:
        """Refuse every request: the client has not declared the capability."""
        del params
        raise _not_declared(method)

    async def log(self, params: JsonObject) -> None:
        """Send a log message to the attached request, if any."""
        if self._send_log is not None:
            await self._send_log(params)


@dataclass
class SuspensionLimits:
    """Limits of suspended calls: in all, per principal, and per caller."""

    max_calls: int = 1000
    per_caller: int = 16
    share: float = DEFAULT_SHARE
    parked_seconds: float = PARKED_SECONDS
    calls: "set[SuspendedCall]" = field(default_factory=set["SuspendedCall"])
    """Every call that runs, or has ended and was not fetched yet."""
    parked: "dict[str, SuspendedCall]" = field(default_factory=dict[str, "SuspendedCall"])
    """The calls that wait for a retry, by ticket."""
    _by_caller: Counter[str] = field(default_factory=Counter[str])
    _slots: Slots = field(init=False)

    def __post_init__(self) -> None:
        """Create the slots from `max_calls` and `share`."""
        self._slots = Slots(self.max_calls, self.share)

    @property
    def used_slots(self) -> int:
        """The number of calls that have sent a question and have not been released."""
        return self._slots.used

    def waiting(self) -> int:
        """Return the number of calls that wait for a retry of their caller."""
        return len(self.parked)

    def take(self, caller: Caller) -> None:
        """Take a slot, or raise `Unanswered`; suspended calls are never evicted for a new one."""
        if self._by_caller[caller.id] >= self.per_caller:
            message = (
                f"{self.per_caller} calls of this caller wait for answers, which is the limit; answer one"
            )
            raise Unanswered(NO_ANSWER, message)
        if not self._slots.take(caller.principal):
            raise Unanswered(NO_ANSWER, "too many calls wait for answers; try again later")
        self._by_caller[caller.id] += 1

    def release(self, caller: Caller) -> None:
        """Release a slot."""
        self._by_caller[caller.id] -= 1
        if not self._by_caller[caller.id]:
            del self._by_caller[caller.id]
        self._slots.release(caller.principal)


class _Question(NamedTuple):
    """One pending question. Its future resolves to None where the call ends without an answer."""

    request: JsonObject
    answer: "asyncio.Future[JsonObject | None]"

    def resolve(self, answer: JsonObject | None) -> None:
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
        limits: SuspensionLimits,
    ) -> None:
        super().__init__(caller, capabilities=capabilities)
        self.tool, self.caller, self.origin = tool, caller, origin
        self.ticket = ""
        """The id by which a retry finds this call; empty while a request attends it."""
        self.ended = False
        self.result: Result | None = None
        """The outcome; None where the call was cancelled."""
        self._limits, self._has_slot = limits, False
        self._pending: dict[str, _Question] = {}
        self._sent_names: frozenset[str] = frozenset()
        self._question_count = 0
        self._report: Report | None = None
        self._started = perf_counter()
        self._loop = asyncio.get_running_loop()
        self._changed: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._until = inf

    # --- used by the call, from any task ---

    async def ask(self, method: str, params: JsonObject) -> JsonObject:
        """Send a request to the client; wait until a retry brings the response."""
        self._check(method, params)
        if not self._has_slot:
            self._limits.take(self.caller)
            self._has_slot = True
        self._question_count += 1
        name = f"q{self._question_count}"
        question = _Question({"method": method, "params": params}, self._loop.create_future())
        self._pending[name] = question
        self._notify()
        try:
            answer = await question.answer
        finally:
            self._pending.pop(name, None)
        if answer is None:
            raise Unanswered(NO_ANSWER, "the call ended before the client answered")
        return answer

    async def report(self, progress: Progress) -> None:
        """Send progress to the attached request, if any."""
        if self._report is not None:
            await self._report(progress)

    def _check(self, method: str, params: JsonObject) -> None:
        declared_modes: Json = self.capabilities.get(CAPABILITY_OF_REQUEST.get(method, ""))
        if not isinstance(declared_modes, dict):
            raise _not_declared(method)
        mode: Json = params.get("mode", "form") if method == ELICIT else None
        if mode is not None and mode not in (declared_modes if "url" in declared_modes else ("form",)):
            raise Unanswered(INVALID_PARAMS, f"this client does not support elicitation by {str(mode)[:100]}")
        if self.ended:
            raise Unanswered(NO_ANSWER, "the call has ended, so there is no client to ask")
        if len(self._pending) >= MAX_PENDING_QUESTIONS:
            raise Unanswered(
                NO_ANSWER, f"this call has {MAX_PENDING_QUESTIONS} pending questions, which is the limit"
            )

    # --- its task ---

    def start(self, call: Callable[[], Awaitable[Result]]) -> None:
        """Start the task of the call."""
        self._limits.calls.add(self)
        self.task = self._loop.create_task(self._run(call))
        self.task.add_done_callback(self._end)  # a task cancelled before its start runs no `finally`

    def cancel(self) -> None:
        """Cancel the call, in whatever state it is; its result is discarded."""
        self._unpark()
        if self.ended:
            self._discard()
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
        if self.ended:
            return
        self.ended = True
        for question in self._pending.values():
            question.resolve(None)
        self._pending.clear()
        self._notify()
        if not self.ticket:
            self._discard()

    def _discard(self) -> None:
        self._set_timer(inf)
        self._limits.calls.discard(self)
        if self._has_slot:
            self._has_slot = False
            self._limits.release(self.caller)

    def _notify(self) -> None:
        if self._changed is not None and not self._changed.done():
            self._changed.set_result(None)

    def _set_timer(self, until: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._until = until
        self._timer = None if until == inf else self._loop.call_at(until, self.cancel)

    def _unpark(self) -> None:
        self._limits.parked.pop(self.ticket, None)
        self.ticket = ""

    # --- the request that attends it ---

    def attend(self, report: Report | None, level: str | None, send_log: SendLog | None) -> None:
        """Route progress and log messages to this request from now on."""
        self._report, self.level, self._send_log = report, level, send_log

    async def wait_for_change(self) -> None:
        """Wait until the call has ended or has a pending question."""
        while not (self.ended or self._pending):
            self._changed = self._loop.create_future()
            await self._changed

    def park(self, ticket: str, seconds: float) -> None:
        """Wait for a retry with this ticket; after the timeout, cancel the call or discard its result."""
        self.ticket = ticket
        self._limits.parked[ticket] = self
        self.attend(None, self.level, None)
        self._set_timer(self._loop.time() + seconds)

    def questions(self) -> dict[str, JsonObject]:
        """Return the pending questions by their names, and remember which were sent."""
        self._sent_names = frozenset(self._pending)
        return {name: question.request for name, question in self._pending.items()}

    def pending_names(self) -> tuple[str, ...]:
        """Return the names of the sent questions that are still pending; a source may cancel some."""
        return tuple(name for name in self._pending if name in self._sent_names)

    def resume(self, answers: Mapping[str, JsonObject], deadline: float | None) -> None:
        """Continue with these answers, until the deadline of the request that brought them."""
        self._unpark()
        if self.ended:
            self._discard()
            return
        self._set_timer(inf if deadline is None else deadline)
        for name, answer in answers.items():
            self._pending.pop(name).resolve(answer)

    @property
    def remaining_seconds(self) -> float:
        """The seconds until the parked call times out."""
        return max(0.0, self._until - self._loop.time())

    @property
    def seconds(self) -> float:
        """The seconds since the call began."""
        return perf_counter() - self._started


def _not_declared(method: str) -> Unanswered:
    return Unanswered(METHOD_NOT_FOUND, f"this client did not declare the capability for {method[:100]}")
