"""Bridges elicitation across protocol eras, for tool calls and for fetches of resources and prompts.

A client with a session gets a server-initiated request on the stream of its own request. A client without one
gets `input_required` and retries with the answers; the gateway suspends a tool call until then.
"""

from collections.abc import Awaitable
from dataclasses import replace
from functools import partial
from typing import Any, cast

import orjson

from toolcrib.errors import Refused, problem
from toolcrib.frontends.mcp.request import McpRequest, Peer, ProtocolError, ResponseChannel, SessionLink
from toolcrib.gateway import CallOptions, Gateway, Run, bound_to, idempotency_key
from toolcrib.mcp.jsonrpc import INVALID_PARAMS, INVALID_REQUEST, encode_notification
from toolcrib.mcp.meta import (
    CORRELATION_KEY,
    GATEWAYS_KEY,
    IDEMPOTENCY_KEY,
    LEVEL_KEY,
    MAX_GATEWAYS,
    PROGRESS_TOKEN,
    PROTOCOL_PREFIX,
    REQUEST_KEYS,
    TRACEPARENT,
    gateways_in,
)
from toolcrib.mcp.methods import LOG_MESSAGE, PROGRESS
from toolcrib.mcp.revisions import LOG_LEVELS
from toolcrib.model import Ask, Caller, JsonObject, Progress, Report, Result, Unanswered

MOST_ROUNDS = 10
"""Most rounds of questions of one call; a source that never stops is refused after them."""
STATE_SECONDS = 600.0
"""How long a client may take to retry with its answers, in seconds."""

_STEP = 0.001
"""Added to the last progress number where a new one would not increase it."""
_LONGEST_TOKEN = 256
"""Longest progress token, in characters: it is repeated in every notification, and a tool may send many."""
_ROUND = frozenset({"inputResponses", "requestState", "_meta"})
"""Parameters that differ between the rounds of one request."""
_OURS = frozenset({PROGRESS_TOKEN, TRACEPARENT, CORRELATION_KEY, IDEMPOTENCY_KEY})
"""Keys of `_meta` that the gateway consumes itself."""
_NOTHING: JsonObject = {}


class ElicitationBridge:
    """Runs calls and fetches with a channel for questions that fits the client's era."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    async def call(self, asked: McpRequest, name: str, arguments: JsonObject | None) -> Result:
        """Call a tool."""
        peer, meta = asked.peer, asked.meta
        if GATEWAYS_KEY in meta:
            self._refuse_loop(meta)
        key = (
            idempotency_key(meta[IDEMPOTENCY_KEY], f"_meta.{IDEMPOTENCY_KEY}")
            if IDEMPOTENCY_KEY in meta
            else ""
        )
        if peer.session is not None:
            run = partial(_called, self._gateway, name, arguments, peer.caller, key=key)
            return await self._in_session(asked, peer.session, run)
        level: str | None = meta.get(LEVEL_KEY)
        answers, state = _answers(asked.params)
        return await self._gateway.call_with_questions(
            name,
            arguments,
            peer.caller,
            origin=asked.origin,
            capabilities=peer.capabilities,
            answers=answers,
            state=state,
            idempotency_key=key,
            report=_report(asked.wire, meta),
            meta=_passed(meta),
            level=level,
            log=None if level is None else _Teller(asked.wire, level).tell,
        )

    async def fetch(self, asked: McpRequest, run: Run) -> Result:
        """Fetch a resource or prompt, with one round of questions per request of a sessionless client.

        A fetch is not suspended, unlike a tool call: for a sessionless client, the source must return its
        questions as a result, and its state is signed. Requests that it sends during the fetch are refused.
        """
        peer, meta = asked.peer, asked.meta
        if GATEWAYS_KEY in meta:
            self._refuse_loop(meta)
        if peer.session is not None:
            return await self._in_session(asked, peer.session, run)
        answers, state = _answers(asked.params)
        seal, bound = self._gateway.state_signer, _bound(asked)
        outcome = await run(
            {
                "origin": asked.origin,
                "answers": answers or {},
                "state": seal.verify(asked.method, state, bound) if state else "",
                "report": _report(asked.wire, meta),
                "channel": SilentChannel(peer.capabilities),
                "meta": _passed(meta),
            }
        )
        if outcome.ask is None or not outcome.ask.state:
            return outcome
        sealed = seal.sign(asked.method, outcome.ask.state, bound, STATE_SECONDS)
        return outcome.replace(ask=replace(outcome.ask, state=sealed))

    def _refuse_loop(self, meta: JsonObject) -> None:
        """Refuse a request that has passed this gateway before, or too many gateways: it may be a loop."""
        passed = gateways_in(meta)
        if self._gateway.id in passed or len(passed) >= MAX_GATEWAYS:
            message = (
                "the request has come through this gateway before; take the MCP server that leads back here "
                "out of the config of one of the gateways"
                if self._gateway.id in passed
                else f"the request has come through {MAX_GATEWAYS} gateways already; put fewer in a row"
            )
            raise Refused(
                "INVALID_REQUEST", message, path=f"_meta.{GATEWAYS_KEY}", details={"gateways": list(passed)}
            )

    async def _in_session(self, asked: McpRequest, session: SessionLink, run: Run) -> Result:
        """Repeat a call with the client's answers for as long as its result is `input_required`."""
        channel = SessionChannel(session, asked.peer, asked.wire)
        way: CallOptions = {
            "origin": asked.origin,
            "report": _report(asked.wire, asked.meta),
            "channel": channel,
            "meta": _passed(asked.meta),
        }
        for _ in range(MOST_ROUNDS):
            outcome = await run(way)
            if outcome.ask is None:
                return outcome
            try:
                answers = await _all_answers(outcome.ask, channel)
            except Unanswered as refusal:
                said = f"the tool asked something, and the client did not answer: {refusal}"
                return self._gateway.refusal(problem("TOOL_FAILED", said), asked.origin)
            way = {**way, "answers": answers, "state": outcome.ask.state}
        said = f"the tool asked again after {MOST_ROUNDS} answers, so it is not waited for any longer"
        return self._gateway.refusal(problem("TOOL_FAILED", said), asked.origin)


def _called(
    gateway: Gateway, name: str, arguments: JsonObject | None, caller: Caller, way: CallOptions, *, key: str
) -> Awaitable[Result]:
    carried: CallOptions = {**way, "idempotency_key": key} if key else way
    return gateway.call(name, arguments, caller, **carried)


def _bound(asked: McpRequest) -> bytes:
    """Return the binding of a state: the same request by the same caller."""
    plain = {key: asked.params[key] for key in asked.params if key not in _ROUND}
    return bound_to(asked.peer.caller, asked.method, plain)


class SilentChannel:
    """The channel of a sessionless client: declares its capabilities to the server, and sends nothing."""

    alone = True
    owner = ""
    level = None

    def __init__(self, capabilities: JsonObject) -> None:
        self.capabilities = capabilities

    async def ask(self, method: str, params: JsonObject) -> JsonObject:
        """Refuse: a sessionless request cannot be suspended for an answer."""
        del params
        raise Unanswered(INVALID_REQUEST, f"{method} cannot be asked in the middle of this request")

    async def log(self, params: JsonObject) -> None:
        """Drop the message: the client has not requested any."""


class SessionChannel:
    """The channel of a client with a session: requests and log messages go out on the stream of its call."""

    alone = False

    def __init__(self, session: SessionLink, peer: Peer, wire: ResponseChannel) -> None:
        self._session, self._wire = session, wire
        self.owner = session.id
        self.capabilities = peer.capabilities

    @property
    def level(self) -> str | None:
        """The log level that the client has set last."""
        return self._session.level

    async def ask(self, method: str, params: JsonObject) -> JsonObject:
        """Send a request on the stream of this call."""
        return await self._session.ask(method, params, self._wire)

    async def log(self, params: JsonObject) -> None:
        """Send a log message if it has the level that the client wants."""
        await _Teller(self._wire, self._session.level or LOG_LEVELS[0]).tell(params)


class _Teller:
    """Sends log messages at or above a level."""

    def __init__(self, wire: ResponseChannel, level: str) -> None:
        self._wire, self._least = wire, LOG_LEVELS.index(level)

    async def tell(self, params: JsonObject) -> None:
        level = params.get("level")
        if level in LOG_LEVELS and LOG_LEVELS.index(level) >= self._least:
            await self._wire.send(encode_notification(LOG_MESSAGE, orjson.dumps(params)))


class _Reporter:
    """Sends progress notifications with the client's token. MCP requires strictly increasing numbers."""

    def __init__(self, wire: ResponseChannel, token: str | int) -> None:
        self._wire, self._token, self._last = wire, token, -_STEP

    async def __call__(self, progress: Progress) -> None:
        done = progress.done
        # Starts below 0, as the first number may be 0.
        self._last = done if done is not None and done > self._last else self._last + _STEP
        params: dict[str, Any] = {PROGRESS_TOKEN: self._token, "progress": self._last}
        if progress.total is not None:
            params["total"] = progress.total
        if progress.message is not None:
            params["message"] = progress.message
        await self._wire.send(encode_notification(PROGRESS, orjson.dumps(params)))


def _report(wire: ResponseChannel, meta: JsonObject) -> Report | None:
    token = meta.get(PROGRESS_TOKEN)
    if isinstance(token, str) and len(token) > _LONGEST_TOKEN:
        raise ProtocolError(INVALID_PARAMS, f"a progressToken has at most {_LONGEST_TOKEN} characters")
    return _Reporter(wire, token) if isinstance(token, str | int) else None


def _passed(meta: JsonObject) -> JsonObject:
    """Return the client's `_meta` without the keys that belong to its own connection."""
    if REQUEST_KEYS.issuperset(meta):
        return _NOTHING
    return {
        key: value for key, value in meta.items() if key not in _OURS and not key.startswith(PROTOCOL_PREFIX)
    }


def _answers(params: JsonObject) -> tuple[JsonObject | None, str]:
    """Return the answers and the state of a retry."""
    if "inputResponses" not in params and "requestState" not in params:
        return None, ""
    state, answers = params.get("requestState", ""), params.get("inputResponses", _NOTHING)
    if type(state) is not str:
        raise ProtocolError(INVALID_PARAMS, "requestState must be the text that came with the question")
    if type(answers) is not dict or not all(
        type(each) is dict for each in cast("dict[str, Any]", answers).values()
    ):
        raise ProtocolError(INVALID_PARAMS, "inputResponses must be an object of objects")
    return cast("JsonObject", answers) or None, state


async def _all_answers(ask: Ask, channel: SessionChannel) -> dict[str, Any]:
    return {
        name: await channel.ask(question["method"], question.get("params") or {})
        for name, question in ask.questions.items()
    }
