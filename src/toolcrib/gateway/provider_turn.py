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
from toolcrib.gateway.model_hints import ModelHints
from toolcrib.interfaces import Provider, ProviderCall, ProviderResult
from toolcrib.model import Caller, JsonObject, Origin, Problem, Progress, Report, Result
from toolcrib.schemas import too_deep

log = logging.getLogger(__name__)

MAX_RUNNING_CALLS = 128
"""Limit of concurrent calls of one connection; further ones are refused with OVERLOADED."""
_MAX_CALLS_PER_MESSAGE = 2_048
"""A message with more calls is refused as a whole."""
_MAX_REMEMBERED_IDS = 1024
"""Call ids that a connection remembers for deduplication; the oldest is evicted."""
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

    def for_call(self, call: ProviderCall, position: int) -> "_TurnOptions":
        """Return the options for one call, with an idempotency key derived from the key of the message."""
        if not self.key:
            return self
        own = sha256(f"{self.key} {position} {call.id}".encode("utf-8", "replace"))
        return self._replace(key=own.hexdigest())


@dataclass(eq=False, slots=True)
class _TurnCall:
    """One call of a message that is in progress."""

    call: ProviderCall
    result: Result | None = None
    """The outcome; None while the call runs, and where it was cancelled."""
    task: "asyncio.Task[None] | None" = None
    cancelled: bool = False
    """Whether the provider has cancelled it and expects no reply."""


class ProviderConnection:
    """The calls of one provider connection, or of a single message, by the ids that the provider assigned.

    Calls run concurrently, each in its own task: a task group would cancel all of them as soon as one is
    cancelled. Calls that are not read-only are serialized per source, in the order of the message.
    """

    def __init__(self, gateway: Gateway, *, max_running_calls: int = MAX_RUNNING_CALLS) -> None:
        self._gateway, self._max_running_calls = gateway, max_running_calls
        self._hints = ModelHints(gateway)
        self._turn_calls: set[_TurnCall] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._seen_ids: dict[str, None] = {}
        self._source_locks: dict[str, anyio.Lock] = {}

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
        provider_format = provider(format)
        calls, cancelled_ids = calls_of(message, format)
        self.cancel(cancelled_ids)
        shared_origin = self._gateway.identified(origin.replace(provider=format))
        options = _TurnOptions(
            caller,
            shared_origin,
            deadline,
            None if report is None else _one_waiting_report(report),
            idempotency_key,
        )
        turn_calls = [
            self._begin(call, options.for_call(call, position))
            for position, call in enumerate(self._without_repeats(calls))
        ]
        self._turn_calls.update(turn_calls)
        try:
            await self._wait_for(turn_calls)
        finally:
            self._turn_calls.difference_update(turn_calls)
        replies = [self._reply(each, options) for each in turn_calls if not each.cancelled]
        return _turn_result(replies, provider_format)

    def cancel(self, ids: Iterable[str]) -> None:
        """Cancel calls by their ids; they get no reply. An id that has not arrived yet will be skipped."""
        cancelled_ids = {each for each in ids if each}
        self._remember(cancelled_ids)
        for turn_call in self._turn_calls:
            if turn_call.call.id in cancelled_ids:
                turn_call.cancelled = True
                if turn_call.task is not None:
                    turn_call.task.cancel()

    async def close(self) -> None:
        """Cancel every call, and wait a bounded time until they have ended."""
        await _cancel_and_wait(self._tasks)

    def _without_repeats(self, calls: Sequence[ProviderCall]) -> list[ProviderCall]:
        new_calls = [each for each in calls if each.id not in self._seen_ids]
        self._remember(each.id for each in new_calls if each.id)
        return new_calls

    def _remember(self, ids: Iterable[str]) -> None:
        self._seen_ids.update(dict.fromkeys(ids))
        while len(self._seen_ids) > _MAX_REMEMBERED_IDS:
            del self._seen_ids[next(iter(self._seen_ids))]

    def _begin(self, call: ProviderCall, options: _TurnOptions) -> _TurnCall:
        call_problem = call.problem or self._too_many() or _argument_problem(call.arguments)
        if call_problem is not None:
            return _TurnCall(call, self._gateway.refusal(call_problem, options.origin))
        turn_call = _TurnCall(call)
        turn_call.task = asyncio.get_running_loop().create_task(self._run(turn_call, options))
        self._tasks.add(turn_call.task)
        turn_call.task.add_done_callback(self._tasks.discard)
        return turn_call

    def _too_many(self) -> Problem | None:
        if len(self._tasks) < self._max_running_calls:
            return None
        message = (
            f"{self._max_running_calls} calls of this connection are running, which is the limit; try later"
        )
        return problem("OVERLOADED", message, retry_after=1.0)

    async def _run(self, turn_call: _TurnCall, options: _TurnOptions) -> None:
        try:
            turn_call.result = await self._run_in_order(turn_call.call, options)
        except Exception:  # boundary: a bug in one call must not cost the others their replies
            log.exception("a call of %s failed unexpectedly", options.origin.provider)
            message = "the gateway failed; the operator has the details"
            turn_call.result = self._gateway.refusal(problem("EXECUTION_ERROR", message), options.origin)

    async def _run_in_order(self, call: ProviderCall, options: _TurnOptions) -> Result:
        source = self._modified_source(call.name, options.caller)
        if source is None:
            return await self._call(call, options)
        source_lock = self._source_locks.setdefault(source, anyio.Lock())
        try:
            if not await _acquire_before(source_lock, options.deadline):
                message = f"earlier calls to {source} ran until the deadline; nothing was done"
                return self._gateway.refusal(problem("TIMEOUT", message), options.origin)
            try:
                return await self._call(call, options)
            finally:
                source_lock.release()
        finally:
            if not source_lock.locked():
                self._source_locks.pop(source, None)

    def _modified_source(self, name: str, caller: Caller) -> str | None:
        """Return the source that a call may modify; None where it needs no serialization."""
        try:
            tool = self._gateway.tool(name, caller)
        except Refused:
            return None
        return None if tool.read_only else tool.source

    async def _call(self, call: ProviderCall, options: _TurnOptions) -> Result:
        return await self._gateway.call_with_questions(
            call.name,
            call.arguments,
            options.caller,
            origin=options.origin,
            deadline=options.deadline,
            report=options.report,
            idempotency_key=options.key,
        )

    async def _wait_for(self, turn_calls: Sequence[_TurnCall]) -> None:
        """Wait for all of the calls; cancels them when this task is cancelled (the client disconnected)."""
        tasks = {each.task for each in turn_calls if each.task is not None}
        if not tasks:
            return
        try:
            await asyncio.wait(tasks)
        except BaseException:
            await _cancel_and_wait(tasks)
            raise

    def _reply(self, turn_call: _TurnCall, options: _TurnOptions) -> ProviderResult:
        result = turn_call.result
        if result is None:
            call_problem = problem("CANCELLED", "the call was cancelled before it returned a result")
            result = self._gateway.refusal(call_problem, options.origin)
        shown = self._hints.for_provider(result, options.caller, options.origin.provider or "")
        return ProviderResult(call=turn_call.call, result=shown.result, hints=shown.hints)


async def _acquire_before(source_lock: anyio.Lock, deadline: float | None) -> bool:
    """Acquire the lock of a source before the deadline; True on success. A free lock is acquired at once."""
    if not source_lock.locked():
        source_lock.acquire_nowait()
        return True
    with anyio.CancelScope(deadline=inf if deadline is None else deadline) as waiting:
        await source_lock.acquire()
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
    provider_format = provider(format)
    calls, cancelled_ids = provider_format.calls(message), provider_format.cancelled(message)
    if len(calls) > _MAX_CALLS_PER_MESSAGE:
        # Thousands of replies would block the event loop for all other clients.
        excess = f"{len(calls):,} calls, which exceeds the limit of {_MAX_CALLS_PER_MESSAGE:,}"
        raise Refused("INVALID_REQUEST", f"the message has {excess}", path="message")
    return calls, cancelled_ids


def _argument_problem(arguments: JsonObject) -> Problem | None:
    """Return the problem of arguments that exceed a limit.

    The checks of the message do not cover them: many providers send arguments as a JSON string.
    """
    found = too_deep(arguments)
    if found is not None:
        return problem("INVALID_ARGUMENTS", f"arguments {found}; send less", path="arguments")
    try:
        message = oversized(arguments)
    except TypeError as error:
        return problem("INVALID_ARGUMENTS", f"the arguments are not JSON: {error}", path="arguments")
    return None if message is None else problem("PAYLOAD_TOO_LARGE", message, path="arguments")


def _one_waiting_report(report: Report) -> Report:
    """Return a callback that drops "waiting" progress after the first, and passes on the rest."""
    reported: list[Progress] = []

    async def filtered(progress: Progress) -> None:
        if progress.kind == "waiting":
            reported.append(progress)
        if progress.kind != "waiting" or len(reported) == 1:
            await report(progress)

    return filtered


def _turn_result(replies: list[ProviderResult], provider_format: Provider) -> TurnResult:
    silent = any(each.result.voice.suppress for each in replies)
    if silent:
        replies = [_without_speech(each) for each in replies]
    follow_ups = dict.fromkeys(text for each in replies for text in each.result.voice.follow_ups)
    messages = provider_format.results(replies) if replies else []
    return TurnResult(messages=messages, silent=silent, follow_ups=tuple(follow_ups))


def _without_speech(reply: ProviderResult) -> ProviderResult:
    voice = replace(reply.result.voice, suppress=True)
    return replace(reply, result=reply.result.replace(voice=voice))
