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
from typing import NamedTuple, cast

import anyio
import orjson

from toolcrib.errors import Broken, Refused, ToolcribError, problem
from toolcrib.gateway.call_options import CallOptions
from toolcrib.gateway.gateway import UNKNOWN_ORIGIN, Gateway
from toolcrib.gateway.suspended_calls import (
    EMPTY_OBJECT,
    NotifyOnlyChannel,
    SendLog,
    SuspendedCall,
    SuspensionLimits,
    accepts_questions,
)
from toolcrib.model import Ask, Caller, Json, JsonObject, Origin, Report, Result, Tool

# --- HMAC-signed opaque state, bound to the caller and the call, with an expiry time ---

MAX_STATE_BYTES = 64 * 1024
"""Largest payload that is signed, in bytes."""
_SIGNATURE_BYTES, _EXPIRY_BYTES = 32, 8
"""Bytes of the HMAC-SHA256 signature and of the expiry time."""
_MAX_STATE_CHARACTERS = (MAX_STATE_BYTES + _SIGNATURE_BYTES + _EXPIRY_BYTES) * 4 // 3 + 1
"""Longest state that is decoded, in characters of base64url."""


class StateSigner:
    """Signs and verifies state. Every holder of the key can verify it: replicas, or a restarted process.

    The payload is signed, not encrypted: it was returned to this caller anyway.
    """

    def __init__(self, key: Callable[[], bytes], now: Callable[[], float] = time) -> None:
        self._make_key, self._now = key, now

    def close(self, kind: str, payload: str, bound: bytes, seconds: float) -> str:
        """Return signed state as base64url; valid for the same kind and binding, for `seconds`."""
        said = payload.encode(errors="surrogatepass")
        if len(said) > MAX_STATE_BYTES:
            cap = f"the state has {len(said)} bytes, the cap is {MAX_STATE_BYTES}"
            raise Broken("RESULT_TOO_LARGE", f"what asks gives more to remember than is passed on: {cap}")
        body = ceil(self._now() + seconds).to_bytes(_EXPIRY_BYTES, "big") + said
        return _base64url(self._signature(kind, bound, body) + body)

    def open(self, kind: str, text: str, bound: bytes) -> str:
        """Return the payload; every invalid state is refused with the same message."""
        raw = _decoded_state(text)
        signature, body = raw[:_SIGNATURE_BYTES], raw[_SIGNATURE_BYTES:]
        if len(body) < _EXPIRY_BYTES or not compare_digest(signature, self._signature(kind, bound, body)):
            raise invalid_state()
        if int.from_bytes(body[:_EXPIRY_BYTES], "big") < self._now():
            raise invalid_state()
        return body[_EXPIRY_BYTES:].decode(errors="surrogatepass")

    @cached_property
    def _key(self) -> bytes:
        return self._make_key()

    def _signature(self, kind: str, bound: bytes, body: bytes) -> bytes:
        return digest(self._key, b"%b\0%b%b" % (kind.encode(), sha256(bound).digest(), body), "sha256")


def bound_to(caller: Caller, what: str, arguments: JsonObject) -> bytes:
    """Return the binding of a state: the principal in its context, what it called, and the arguments."""
    who = (caller.id, caller.user, caller.context)
    return orjson.dumps((who, what, arguments), option=orjson.OPT_SORT_KEYS)


def invalid_state() -> Refused:
    """Return the refusal of a state; it does not reveal the reason."""
    message = "this state is of no use: it is used up, too old, or of another call; call again without it"
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

PARKED_SECONDS = 600.0
"""How long a suspended call stays parked, in seconds."""
STATE_SECONDS = 24 * 3600.0
"""Validity of signed state from a source, in seconds; the client stores it, so it uses no memory here."""

_STATE_KIND = "call"
"""The kind that the signature of a state covers, so that states of other methods are refused."""
_TICKET_PREFIX, _SOURCE_STATE_PREFIX = "p", "s"
"""First character of a payload: the ticket of a parked call, or the state of a source."""
_CLOSING_SECONDS = 5.0
"""How long `close` waits for cancelled calls, in seconds."""


class _ClientRequest(NamedTuple):
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

    def bound(self, tool: Tool) -> bytes:
        """Return the bytes that bind a state to this caller, tool and arguments."""
        return bound_to(self.caller, tool.name, self.arguments)


class MultiRoundCalls:
    """Parks suspended calls and finds them again by a signed state; signs the state that sources return."""

    def __init__(
        self, gateway: Gateway, seal: StateSigner, *, places: SuspensionLimits, wait: float = PARKED_SECONDS
    ) -> None:
        self.seal = seal
        self._gateway, self._places, self._wait = gateway, places, wait

    @property
    def parked(self) -> int:
        """The number of calls that wait for a retry of their caller."""
        return self._places.waiting()

    async def close(self) -> None:
        """Cancel every call that is parked or runs, and wait a bounded time until they have ended."""
        talks = tuple(self._places.talks)
        for talk in talks:
            talk.drop()
        running = [talk.task for talk in talks if not talk.task.done()]
        if running:
            with anyio.CancelScope(shield=True):
                await asyncio.wait(running, timeout=_CLOSING_SECONDS)

    async def converse(
        self,
        name: str,
        arguments: JsonObject | None,
        caller: Caller,
        *,
        origin: Origin = UNKNOWN_ORIGIN,
        deadline: float | None = None,
        capabilities: JsonObject = EMPTY_OBJECT,
        answers: JsonObject | None = None,
        state: str = "",
        idempotency_key: str = "",
        report: Report | None = None,
        meta: JsonObject | None = None,
        level: str | None = None,
        log: SendLog | None = None,
    ) -> Result:
        """Run one call, or resume a suspended one. Never raises except on cancellation.

        `capabilities` are the caller's MCP client capabilities (elicitation, sampling, roots). Where the
        result has an `ask`, the caller repeats the same call with its state and with the answers by their
        names.
        """
        result: Result | None = None
        if not (capabilities or state or answers or log):
            # Fast path: a caller without capabilities and log stream needs no channel.
            options = CallOptions(origin=origin, deadline=deadline, report=report, meta=meta or EMPTY_OBJECT)
            options["idempotency_key"] = idempotency_key
            result = await self._gateway.call(name, arguments, caller, **options)
            if result.ask is None:
                return result
        given, said = arguments or EMPTY_OBJECT, answers or EMPTY_OBJECT
        asked = _ClientRequest(
            name, given, caller, origin, deadline, said, report, meta, level, log, idempotency_key
        )
        try:
            if not (capabilities or state):
                return self._passed(result or await self._call(asked, ""), asked)
            return await self._carry_out(asked, capabilities, state)
        except ToolcribError as error:
            return self._gateway.refusal(error.problem, origin)

    async def _carry_out(self, asked: _ClientRequest, capabilities: JsonObject, state: str) -> Result:
        opened = self._opened(asked, state) if state else ""
        if opened.startswith(_TICKET_PREFIX):
            return await self._resume(opened[1:], asked)
        tool = self._asking_tool(asked) if accepts_questions(capabilities) else None
        if tool is None:
            return self._passed(await self._call(asked, opened[1:]), asked)
        return await self._begin(asked, tool, capabilities, opened[1:])

    # --- calls without a channel for questions ---

    async def _call(self, asked: _ClientRequest, state: str, talk: SuspendedCall | None = None) -> Result:
        whisper = None if asked.log is None else NotifyOnlyChannel(asked.caller, asked.level, asked.log)
        return await self._gateway.call(
            asked.name,
            asked.arguments,
            asked.caller,
            origin=asked.origin if talk is None else talk.origin,
            deadline=asked.deadline,
            answers=asked.answers,
            state=state,
            idempotency_key=asked.key,
            report=talk.report if talk is not None and asked.report is not None else asked.report,
            channel=talk or whisper,
            meta=asked.meta or {},
        )

    def _passed(self, result: Result, asked: _ClientRequest) -> Result:
        """Sign the state that a source returned along with its questions."""
        ask = result.ask
        if ask is None or not ask.state:
            return result
        bound = asked.bound(self._gateway.tool(asked.name, asked.caller))
        state = self.seal.close(_STATE_KIND, _SOURCE_STATE_PREFIX + ask.state, bound, STATE_SECONDS)
        return result.replace(ask=Ask(questions=ask.questions, state=state))

    def _opened(self, asked: _ClientRequest, state: str) -> str:
        return self.seal.open(_STATE_KIND, state, asked.bound(self._gateway.tool(asked.name, asked.caller)))

    def _asking_tool(self, asked: _ClientRequest) -> Tool | None:
        """Return the tool if it may send requests to the caller.

        None for an in-process tool, which has no way to send one, and for a tool that this caller cannot
        call.
        """
        try:
            tool = self._gateway.tool(asked.name, asked.caller)
        except Refused:
            return None
        return None if tool.inside else tool

    # --- calls that can be suspended ---

    async def _begin(self, asked: _ClientRequest, tool: Tool, capabilities: JsonObject, state: str) -> Result:
        origin = self._gateway.identified(asked.origin)
        talk = SuspendedCall(tool, asked.caller, origin, capabilities=capabilities, places=self._places)
        talk.attend(asked.report, asked.level, asked.log)
        talk.start(partial(self._call, asked, state, talk))
        return await self._attended(talk, asked)

    async def _attended(self, talk: SuspendedCall, asked: _ClientRequest) -> Result:
        """Wait for the result or the next question and return it; cancels the call when cancelled itself."""
        try:
            await talk.turn()
        except BaseException:
            talk.drop()
            raise
        if talk.over:
            result = talk.result
            return (
                self._said(talk, _interrupted_result(talk.tool))
                if result is None
                else self._passed(result, asked)
            )
        talk.park(token_urlsafe(16), self._wait)
        return self._question(talk, asked)

    def _question(self, talk: SuspendedCall, asked: _ClientRequest) -> Result:
        state = self.seal.close(_STATE_KIND, _TICKET_PREFIX + talk.ticket, asked.bound(talk.tool), talk.left)
        return self._said(talk, Result(ask=Ask(questions=talk.questions(), state=state)))

    def _said(self, talk: SuspendedCall, result: Result) -> Result:
        return self._gateway.completed(result, talk.tool, talk.origin, talk.seconds)

    async def _resume(self, ticket: str, asked: _ClientRequest) -> Result:
        """Resume a parked call; where an answer is missing, return all pending questions again."""
        talk = self._places.parked.get(ticket)
        if talk is None or not talk.left:
            raise invalid_state()
        answers = {name: _checked_answer(name, asked.answers.get(name)) for name in talk.asked()}
        given = {name: answer for name, answer in answers.items() if answer is not None}
        if len(given) < len(answers):
            return self._question(talk, asked)
        talk.attend(asked.report, asked.level, asked.log)
        talk.resume(given, asked.deadline)
        return await self._attended(talk, asked)


def _checked_answer(name: str, given: Json) -> JsonObject | None:
    if given is not None and not isinstance(given, dict):
        path = f"answers.{name}"
        raise Refused("INVALID_REQUEST", f"{path} must be an object, as its question asks for", path=path)
    return cast("JsonObject | None", given)


def _interrupted_result(tool: Tool) -> Result:
    said = f"{tool.name} was cut short before it answered"
    if tool.read_only or tool.idempotent:
        return Result(problem=problem("TIMEOUT", f"{said}; it is safe to try again"))
    said = f"{said}; it may have taken effect, so check before trying again"
    return Result(problem=problem("OUTCOME_UNKNOWN", said))
