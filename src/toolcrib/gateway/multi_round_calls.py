"""Multi-round calls: return `input_required` with signed state; the client retries with answers."""

import asyncio
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error
from collections.abc import Callable
from functools import cached_property, partial
from hashlib import sha256
from hmac import compare_digest, digest
from math import ceil
from secrets import token_urlsafe
from time import time
from typing import NamedTuple, Protocol, Unpack, cast

import anyio
import orjson

from toolcrib.errors import Broken, Refused, ToolcribError, problem
from toolcrib.gateway.call_options import CallOptions
from toolcrib.gateway.suspended_calls import (
    NotifyOnlyChannel,
    SendLog,
    SuspendedCall,
    SuspensionLimits,
    accepts_questions,
)
from toolcrib.model import Ask, Caller, Json, JsonObject, Origin, Problem, Report, Result, Tool

# --- HMAC-signed opaque state, bound to the caller and the call, with an expiry time ---

MAX_STATE_BYTES = 64 * 1024
"""Maximum size of a signed payload, in bytes."""
_SIGNATURE_BYTES, _EXPIRY_BYTES = 32, 8
"""Bytes of the HMAC-SHA256 signature and of the expiry time."""
_MAX_STATE_CHARACTERS = (MAX_STATE_BYTES + _SIGNATURE_BYTES + _EXPIRY_BYTES) * 4 // 3 + 1
"""A longer state is refused before it is decoded."""


class StateSigner:
    """Signs and verifies state. Every holder of the key can verify it: replicas, or a restarted process.

    The payload is signed, not encrypted: it was returned to this caller anyway.
    """

    def __init__(self, key: Callable[[], bytes], now: Callable[[], float] = time) -> None:
        self._make_key, self._now = key, now

    def sign(self, kind: str, payload: str, binding: bytes, seconds: float) -> str:
        """Return signed state as base64url; valid for the same kind and binding, for `seconds`."""
        encoded = payload.encode(errors="surrogatepass")
        if len(encoded) > MAX_STATE_BYTES:
            message = (
                f"the source's state has {len(encoded)} bytes, which exceeds the limit of {MAX_STATE_BYTES}"
            )
            raise Broken("RESULT_TOO_LARGE", message)
        body = ceil(self._now() + seconds).to_bytes(_EXPIRY_BYTES, "big") + encoded
        return _base64url(self._signature(kind, binding, body) + body)

    def verify(self, kind: str, text: str, binding: bytes) -> str:
        """Return the payload; every invalid state is refused with the same message."""
        raw = _decoded_state(text)
        signature, body = raw[:_SIGNATURE_BYTES], raw[_SIGNATURE_BYTES:]
        if len(body) < _EXPIRY_BYTES or not compare_digest(signature, self._signature(kind, binding, body)):
            raise invalid_state()
        if int.from_bytes(body[:_EXPIRY_BYTES], "big") < self._now():
            raise invalid_state()
        return body[_EXPIRY_BYTES:].decode(errors="surrogatepass")

    @cached_property
    def _key(self) -> bytes:
        return self._make_key()

    def _signature(self, kind: str, binding: bytes, body: bytes) -> bytes:
        return digest(self._key, b"%b\0%b%b" % (kind.encode(), sha256(binding).digest(), body), "sha256")


def bound_to(caller: Caller, what: str, arguments: JsonObject) -> bytes:
    """Return the binding of a state: the principal in its context, what it called, and the arguments."""
    who = (caller.id, caller.user, caller.context)
    return orjson.dumps((who, what, arguments), option=orjson.OPT_SORT_KEYS)


def invalid_state() -> Refused:
    """Return the refusal of a state; it does not reveal the reason."""
    message = "this state is invalid: used already, expired, or of another call; call again without it"
    return Refused("INVALID_REQUEST", message, path="state")


def _base64url(raw: bytes) -> str:
    return urlsafe_b64encode(raw).rstrip(b"=").decode()


def _decoded_state(text: str) -> bytes:
    """Decode base64url, canonical encodings only; the decoder would ignore invalid characters."""
    if not text.isascii() or len(text) > _MAX_STATE_CHARACTERS:
        raise invalid_state()
    try:
        raw = urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except Error:
        raise invalid_state() from None
    if _base64url(raw) != text:
        raise invalid_state()
    return raw


# --- Multi-round calls: returns `input_required` with signed state; the client retries with answers ---

STATE_SECONDS = 24 * 3600.0
"""Validity of signed state from a source, in seconds; the client stores it, so it uses no memory here."""

_STATE_KIND = "call"
"""The kind that the signature of a state covers, so that states of other methods are refused."""
_TICKET_PREFIX, _SOURCE_STATE_PREFIX = "p", "s"
"""First character of a payload: the ticket of a parked call, or the state of a source."""
_CLOSING_SECONDS = 5.0
"""How long `close` waits for cancelled calls, in seconds."""


class ClientRequest(NamedTuple):
    """One request of a client: a new call, or a retry that resumes one."""

    name: str
    arguments: JsonObject
    caller: Caller
    origin: Origin
    deadline: float | None
    answers: JsonObject
    report: Report | None
    meta: JsonObject | None
    level: str | None
    log: SendLog | None
    key: str

    def binding(self, tool: Tool) -> bytes:
        """Return the bytes that bind a state to this caller, tool and arguments."""
        return bound_to(self.caller, tool.name, self.arguments)


class ToolCaller(Protocol):
    """The part of `Gateway` that runs the calls of `MultiRoundCalls`."""

    state_signer: StateSigner

    async def call(
        self, name: str, arguments: JsonObject | None, caller: Caller, **options: Unpack[CallOptions]
    ) -> Result: ...
    def tool(self, name: str, caller: Caller) -> Tool: ...
    def identified(self, origin: Origin) -> Origin: ...
    def refusal(self, problem: Problem, origin: Origin) -> Result: ...
    def completed(self, result: Result, tool: Tool, origin: Origin, seconds: float) -> Result: ...


class MultiRoundCalls:
    """Parks suspended calls and finds them again by a signed state; signs the state that sources return."""

    def __init__(self, gateway: ToolCaller, limits: SuspensionLimits) -> None:
        self._gateway, self._limits = gateway, limits

    async def close(self) -> None:
        """Cancel every call that is parked or runs, and wait a bounded time until they have ended."""
        suspended_calls = tuple(self._limits.calls)
        for suspended in suspended_calls:
            suspended.cancel()
        running = [suspended.task for suspended in suspended_calls if not suspended.task.done()]
        if running:
            with anyio.CancelScope(shield=True):
                await asyncio.wait(running, timeout=_CLOSING_SECONDS)

    async def run(
        self, request: ClientRequest, capabilities: JsonObject, state: str, result: Result | None
    ) -> Result:
        """Run a call that may ask questions, or resume a suspended one.

        `result` is the outcome where the call has run already, without a channel.
        """
        try:
            if not (capabilities or state):
                return self._with_signed_state(result or await self._call(request, ""), request)
            return await self._run_with_channel(request, capabilities, state)
        except ToolcribError as error:
            return self._gateway.refusal(error.problem, request.origin)

    async def _run_with_channel(self, request: ClientRequest, capabilities: JsonObject, state: str) -> Result:
        payload = ""
        if state:
            binding = request.binding(self._gateway.tool(request.name, request.caller))
            payload = self._gateway.state_signer.verify(_STATE_KIND, state, binding)
        if payload.startswith(_TICKET_PREFIX):
            return await self._resume(payload[1:], request)
        tool = self._tool_with_questions(request) if accepts_questions(capabilities) else None
        if tool is None:
            return self._with_signed_state(await self._call(request, payload[1:]), request)
        return await self._begin(request, tool, capabilities, payload[1:])

    # --- calls without a channel for questions ---

    async def _call(
        self, request: ClientRequest, state: str, suspended: SuspendedCall | None = None
    ) -> Result:
        log_channel = None
        if request.log is not None:
            log_channel = NotifyOnlyChannel(request.caller, request.level, request.log)
        return await self._gateway.call(
            request.name,
            request.arguments,
            request.caller,
            origin=request.origin if suspended is None else suspended.origin,
            deadline=request.deadline,
            answers=request.answers,
            state=state,
            idempotency_key=request.key,
            report=request.report if suspended is None or request.report is None else suspended.report,
            channel=suspended or log_channel,
            meta=request.meta or {},
        )

    def _with_signed_state(self, result: Result, request: ClientRequest) -> Result:
        """Sign the state that a source returned along with its questions."""
        ask = result.ask
        if ask is None or not ask.state:
            return result
        binding = request.binding(self._gateway.tool(request.name, request.caller))
        state = self._gateway.state_signer.sign(
            _STATE_KIND, _SOURCE_STATE_PREFIX + ask.state, binding, STATE_SECONDS
        )
        return result.replace(ask=Ask(questions=ask.questions, state=state))

    def _tool_with_questions(self, request: ClientRequest) -> Tool | None:
        """Return the tool if it may send requests to the caller.

        None for an in-process tool, which has no way to send one, and for a tool that this caller cannot
        call.
        """
        try:
            tool = self._gateway.tool(request.name, request.caller)
        except Refused:
            return None
        return None if tool.inside else tool

    # --- calls that can be suspended ---

    async def _begin(
        self, request: ClientRequest, tool: Tool, capabilities: JsonObject, state: str
    ) -> Result:
        origin = self._gateway.identified(request.origin)
        limits = self._limits
        suspended = SuspendedCall(tool, request.caller, origin, capabilities=capabilities, limits=limits)
        suspended.attend(request.report, request.level, request.log)
        suspended.start(partial(self._call, request, state, suspended))
        return await self._wait_for_result(suspended, request)

    async def _wait_for_result(self, suspended: SuspendedCall, request: ClientRequest) -> Result:
        """Wait for the result or the next question and return it; cancels the call when cancelled itself."""
        try:
            await suspended.wait_for_change()
        except BaseException:
            suspended.cancel()
            raise
        if suspended.ended:
            if suspended.result is None:
                return self._completed(suspended, _interrupted_result(suspended.tool))
            return self._with_signed_state(suspended.result, request)
        suspended.park(token_urlsafe(16), self._limits.parked_seconds)
        return self._question_result(suspended, request)

    def _question_result(self, suspended: SuspendedCall, request: ClientRequest) -> Result:
        payload, binding = _TICKET_PREFIX + suspended.ticket, request.binding(suspended.tool)
        seconds = suspended.remaining_seconds
        state = self._gateway.state_signer.sign(_STATE_KIND, payload, binding, seconds)
        return self._completed(suspended, Result(ask=Ask(questions=suspended.questions(), state=state)))

    def _completed(self, suspended: SuspendedCall, result: Result) -> Result:
        return self._gateway.completed(result, suspended.tool, suspended.origin, suspended.seconds)

    async def _resume(self, ticket: str, request: ClientRequest) -> Result:
        """Resume a parked call; where an answer is missing, return all pending questions again."""
        suspended = self._limits.parked.get(ticket)
        if suspended is None or not suspended.remaining_seconds:
            raise invalid_state()
        answers = {
            name: _checked_answer(name, request.answers.get(name)) for name in suspended.pending_names()
        }
        received = {name: answer for name, answer in answers.items() if answer is not None}
        if len(received) < len(answers):
            return self._question_result(suspended, request)
        suspended.attend(request.report, request.level, request.log)
        suspended.resume(received, request.deadline)
        return await self._wait_for_result(suspended, request)


def _checked_answer(name: str, answer: Json) -> JsonObject | None:
    if answer is not None and not isinstance(answer, dict):
        path = f"answers.{name}"
        raise Refused("INVALID_REQUEST", f"{path} must be an object, as its question requires", path=path)
    return cast("JsonObject | None", answer)


def _interrupted_result(tool: Tool) -> Result:
    message = f"{tool.name} was cancelled before it returned a result"
    if tool.read_only or tool.idempotent:
        return Result(problem=problem("TIMEOUT", f"{message}; it is safe to try again"))
    message = f"{message}; it may have taken effect, so check before trying again"
    return Result(problem=problem("OUTCOME_UNKNOWN", message))
