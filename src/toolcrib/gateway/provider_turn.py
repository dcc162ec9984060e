"""Runs all tool calls of a provider message concurrently and returns exactly one reply for each."""

import asyncio
import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from math import inf
from typing import NamedTuple

import anyio

from toolcrib.errors import Refused, problem
from toolcrib.formats import provider
from toolcrib.gateway.call_options import oversized
from toolcrib.gateway.gateway import UNKNOWN_ORIGIN, Gateway
from toolcrib.gateway.multi_round_calls import MultiRoundCalls
from toolcrib.interfaces import ProviderCall, ProviderResult
from toolcrib.model import Caller, JsonObject, Origin, Problem, Progress, Report, Result
from toolcrib.schemas import too_deep

log = logging.getLogger(__name__)

MAX_RUNNING_CALLS = 128
"""Most concurrent calls of one connection; calls beyond it are refused with OVERLOADED."""
_MAX_CALLS_PER_MESSAGE = 2_048
"""Most calls in one message; a message with more is refused as a whole."""
_MAX_REMEMBERED_IDS = 1024
"""Most call ids that a connection remembers for deduplication; the oldest is evicted."""
_CLOSING_SECONDS = 5.0
"""How long cancelled calls are waited for, in seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnResult:
    """The replies to one provider message."""

    messages: list[JsonObject] = field(default_factory=list[JsonObject])
    """Messages in the provider's format, to be sent unchanged; empty where there is nothing to reply to."""
    silent: bool = False
    """Whether some tool requests that the assistant does not speak this time."""
    follow_ups: tuple[str, ...] = ()


class _TurnOptions(NamedTuple):
    """The options that all calls of a message share."""

    caller: Caller
    origin: Origin
    deadline: float | None
    report: Report | None
    key: str

    def of(self, asked: ProviderCall, place: int) -> "_TurnOptions":
        """Return the options for one call, with an idempotency key derived from the key of the message."""
        if not self.key:
            return self
        own = sha256(f"{self.key} {place} {asked.id}".encode("utf-8", "replace"))
        return self._replace(key=own.hexdigest())


@dataclass(eq=False, slots=True)
class _TurnCall:
    """One call of a message that is in progress."""

    asked: ProviderCall
    result: Result | None = None
    """The outcome; None while the call runs, and where it was cancelled."""
    task: "asyncio.Task[None] | None" = None
    unwanted: bool = False
    """Whether the provider has cancelled it and expects no reply."""


class ProviderConnection:
    """The calls of one provider connection, or of a single message, by the ids that the provider assigned.

    Calls run concurrently, each in its own task: a task group would cancel all of them as soon as one is
    cancelled. Calls that are not read-only are serialized per source, in the order of the message.
    """

    def __init__(
        self, gateway: Gateway, conversations: MultiRoundCalls, *, most_calls: int = MAX_RUNNING_CALLS
    ) -> None:
        self._gateway, self._conversations, self._most = gateway, conversations, most_calls
        self._errands: set[_TurnCall] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._known: dict[str, None] = {}
        self._lanes: dict[str, anyio.Lock] = {}

    @property
    def running(self) -> int:
        """The number of calls that run now."""
        return len(self._tasks)

    async def turn(
        self,
        message: JsonObject,
        format: str,
        caller: Caller,
        *,
        origin: Origin = UNKNOWN_ORIGIN,
        deadline: float | None = None,
        report: Report | None = None,
        idempotency_key: str = "",
    ) -> TurnResult:
        """Run every call of a message, and cancel the calls that it cancels.

        Raises `Refused` where the message as a whole is invalid; the error of a single call is in its reply.
        A call with an id that was seen before is skipped: some providers repeat a call. Progress of kind
        "waiting" is reported once per message. With an idempotency key, a repeated message has no second
        effect.
        """
        spoken = provider(format)
        calls, gone = calls_of(message, format)
        self.cancel(gone)
        shared = self._gateway.identified(origin.replace(provider=format))
        way = _TurnOptions(
            caller, shared, deadline, None if report is None else _one_waiting_report(report), idempotency_key
        )
        errands = [self._begin(asked, way.of(asked, place)) for place, asked in enumerate(self._fresh(calls))]
        self._errands.update(errands)
        try:
            await self._ended(errands)
        finally:
            self._errands.difference_update(errands)
        answers = [self._answered(each, shared) for each in errands if not each.unwanted]
        silent = any(each.result.voice.suppress for each in answers)
        said = [_without_speech(each) for each in answers] if silent else answers
        follow_ups = dict.fromkeys(text for each in answers for text in each.result.voice.follow_ups)
        messages = spoken.results(said) if said else []
        return TurnResult(messages=messages, silent=silent, follow_ups=tuple(follow_ups))

    def cancel(self, ids: Iterable[str]) -> None:
        """Cancel calls by their ids; they get no reply. An id that has not arrived yet will be skipped."""
        gone = {each for each in ids if each}
        self._remember(gone)
        for errand in self._errands:
            if errand.asked.id in gone:
                errand.unwanted = True
                if errand.task is not None:
                    errand.task.cancel()

    async def close(self) -> None:
        """Cancel every call, and wait a bounded time until they have ended."""
        await _cancel_and_wait(self._tasks)

    def _fresh(self, calls: Sequence[ProviderCall]) -> list[ProviderCall]:
        fresh = [each for each in calls if each.id not in self._known]
        self._remember(each.id for each in fresh if each.id)
        return fresh

    def _remember(self, ids: Iterable[str]) -> None:
        self._known.update(dict.fromkeys(ids))
        while len(self._known) > _MAX_REMEMBERED_IDS:
            del self._known[next(iter(self._known))]

    def _begin(self, asked: ProviderCall, way: _TurnOptions) -> _TurnCall:
        fault = asked.problem or self._too_many() or _argument_problem(asked.arguments)
        if fault is not None:
            return _TurnCall(asked, self._gateway.refusal(fault, way.origin))
        errand = _TurnCall(asked)
        errand.task = asyncio.get_running_loop().create_task(self._run(errand, way))
        self._tasks.add(errand.task)
        errand.task.add_done_callback(self._tasks.discard)
        return errand

    def _too_many(self) -> Problem | None:
        if len(self._tasks) < self._most:
            return None
        said = f"{self._most} calls run already, which is as many as one connection may; ask again later"
        return problem("OVERLOADED", said, retry_after=1.0)

    async def _run(self, errand: _TurnCall, way: _TurnOptions) -> None:
        try:
            errand.result = await self._made(errand.asked, way)
        except Exception:  # boundary: a bug in one call must not cost the others their replies
            log.exception("a call of %s failed unexpectedly", way.origin.provider)
            said = "the gateway failed; the operator has the details"
            errand.result = self._gateway.refusal(problem("EXECUTION_ERROR", said), way.origin)

    async def _made(self, asked: ProviderCall, way: _TurnOptions) -> Result:
        source = self._changes(asked.name, way.caller)
        if source is None:
            return await self._call(asked, way)
        lane = self._lanes.setdefault(source, anyio.Lock())
        try:
            if not await _acquire_before(lane, way.deadline):
                said = f"earlier calls to {source} took until the deadline; nothing was done"
                return self._gateway.refusal(problem("TIMEOUT", said), way.origin)
            try:
                return await self._call(asked, way)
            finally:
                lane.release()
        finally:
            if not lane.locked():
                self._lanes.pop(source, None)

    def _changes(self, name: str, caller: Caller) -> str | None:
        """Return the source that a call may modify; None where it needs no serialization."""
        try:
            tool = self._gateway.tool(name, caller)
        except Refused:
            return None
        return None if tool.read_only else tool.source

    async def _call(self, asked: ProviderCall, way: _TurnOptions) -> Result:
        return await self._conversations.run(
            asked.name,
            asked.arguments,
            way.caller,
            origin=way.origin,
            deadline=way.deadline,
            report=way.report,
            idempotency_key=way.key,
        )

    async def _ended(self, errands: Sequence[_TurnCall]) -> None:
        """Wait for all of the calls; cancels them when this task is cancelled (the client disconnected)."""
        tasks = {each.task for each in errands if each.task is not None}
        if not tasks:
            return
        try:
            await asyncio.wait(tasks)
        except BaseException:
            await _cancel_and_wait(tasks)
            raise

    def _answered(self, errand: _TurnCall, origin: Origin) -> ProviderResult:
        if errand.result is not None:
            return ProviderResult(asked=errand.asked, result=errand.result)
        fault = problem("CANCELLED", "the call was cancelled before it answered")
        return ProviderResult(asked=errand.asked, result=self._gateway.refusal(fault, origin))


async def _acquire_before(lane: anyio.Lock, deadline: float | None) -> bool:
    """Acquire the lock of a source before the deadline; True on success. A free lock is acquired at once."""
    if not lane.locked():
        lane.acquire_nowait()
        return True
    with anyio.CancelScope(deadline=inf if deadline is None else deadline) as waiting:
        await lane.acquire()
    return not waiting.cancelled_caught


async def _cancel_and_wait(tasks: Iterable["asyncio.Task[None]"]) -> None:
    running = [task for task in tasks if not task.done()]
    for task in running:
        task.cancel()
    if running:
        with anyio.CancelScope(shield=True):
            await asyncio.wait(running, timeout=_CLOSING_SECONDS)


def calls_of(message: JsonObject, format: str) -> tuple[tuple[ProviderCall, ...], tuple[str, ...]]:
    """Return the calls of a message and the ids that it cancels; raises `Refused` for an invalid message."""
    spoken = provider(format)
    calls, gone = spoken.calls(message), spoken.cancelled(message)
    if len(calls) > _MAX_CALLS_PER_MESSAGE:
        # Thousands of replies would block the event loop for all other clients.
        said = (
            f"the message asks for {len(calls):,} calls; {_MAX_CALLS_PER_MESSAGE:,} can be answered at once"
        )
        raise Refused("INVALID_REQUEST", said, path="message")
    return calls, gone


def _argument_problem(arguments: JsonObject) -> Problem | None:
    """Return the problem of arguments that exceed a limit.

    The checks of the message do not cover them: many providers send arguments as a JSON string.
    """
    found = too_deep(arguments)
    if found is not None:
        return problem("INVALID_ARGUMENTS", f"arguments {found}; send less", path="arguments")
    try:
        said = oversized(arguments)
    except TypeError as error:
        return problem("INVALID_ARGUMENTS", f"the arguments are no JSON: {error}", path="arguments")
    return None if said is None else problem("PAYLOAD_TOO_LARGE", said, path="arguments")


def _one_waiting_report(report: Report) -> Report:
    """Return a callback that drops "waiting" progress after the first, and passes on the rest."""
    said: list[Progress] = []

    async def told(progress: Progress) -> None:
        if progress.kind == "waiting":
            said.append(progress)
        if progress.kind != "waiting" or len(said) == 1:
            await report(progress)

    return told


def _without_speech(answered: ProviderResult) -> ProviderResult:
    voice = replace(answered.result.voice, suppress=True)
    return replace(answered, result=answered.result.replace(voice=voice))
