"""Bridges elicitation across protocol eras, for tool calls and for fetches of resources and prompts.

A client with a session gets a server-initiated request on the stream of its own request. A client without one
gets `input_required` and retries with the answers; the gateway suspends a tool call until then.
"""

from collections.abc import Awaitable
from dataclasses import replace
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
from toolcrib.model import JsonObject, Progress, Report, Result, Unanswered

MAX_QUESTION_ROUNDS = 10
"""Most rounds of questions of one call; a source that never stops is refused after them."""
STATE_SECONDS = 600.0
"""How long a client may take to retry with its answers, in seconds."""

_MIN_PROGRESS_STEP = 0.001
"""Added to the last progress number where a new one would not increase it."""
_MAX_PROGRESS_TOKEN_CHARACTERS = 256
"""Longest progress token, in characters: it is repeated in every notification, and a tool may send many."""
_ROUND_PARAMETERS = frozenset({"inputResponses", "requestState", "_meta"})
"""Parameters that differ between the rounds of one request."""
_CONSUMED_META_KEYS = frozenset({PROGRESS_TOKEN, TRACEPARENT, CORRELATION_KEY, IDEMPOTENCY_KEY})
"""Keys of `_meta` that the gateway consumes itself."""
_EMPTY_OBJECT: JsonObject = {}


class ElicitationBridge:
    """Runs calls and fetches with a channel for questions that fits the client's era."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    async def call(self, request: McpRequest, name: str, arguments: JsonObject | None) -> Result:
        """Call a tool."""
        peer, meta = request.peer, request.meta
        if GATEWAYS_KEY in meta:
            self._refuse_loop(meta)
        key = (
            idempotency_key(meta[IDEMPOTENCY_KEY], f"_meta.{IDEMPOTENCY_KEY}")
            if IDEMPOTENCY_KEY in meta
            else ""
        )
        if peer.session is not None:

            def run(options: CallOptions) -> Awaitable[Result]:
                with_key: CallOptions = {**options, "idempotency_key": key} if key else options
                return self._gateway.call(name, arguments, peer.caller, **with_key)

            return await self._in_session(request, peer.session, run)
        level: str | None = meta.get(LEVEL_KEY)
        answers, state = _answers(request.params)
        return await self._gateway.call_with_questions(
            name,
            arguments,
            peer.caller,
            origin=request.origin,
            capabilities=peer.capabilities,
            answers=answers,
            state=state,
            idempotency_key=key,
            report=_progress_sender(request.response, meta),
            meta=_forwarded_meta(meta),
            level=level,
            log=None if level is None else _LogSender(request.response, level).send,
        )

    async def fetch(self, request: McpRequest, run: Run) -> Result:
        """Fetch a resource or prompt, with one round of questions per request of a sessionless client.

        A fetch is not suspended, unlike a tool call: for a sessionless client, the source must return its
        questions as a result, and its state is signed. Requests that it sends during the fetch are refused.
        """
        peer, meta = request.peer, request.meta
        if GATEWAYS_KEY in meta:
            self._refuse_loop(meta)
        if peer.session is not None:
            return await self._in_session(request, peer.session, run)
        answers, state = _answers(request.params)
        signer, params = self._gateway.state_signer, request.params
        same = {key: params[key] for key in params if key not in _ROUND_PARAMETERS}
        binding = bound_to(peer.caller, request.method, same)
        result = await run(
            {
                "origin": request.origin,
                "answers": answers or {},
                "state": signer.verify(request.method, state, binding) if state else "",
                "report": _progress_sender(request.response, meta),
                "channel": SilentChannel(peer.capabilities),
                "meta": _forwarded_meta(meta),
            }
        )
        if result.ask is None or not result.ask.state:
            return result
        signed = signer.sign(request.method, result.ask.state, binding, STATE_SECONDS)
        return result.replace(ask=replace(result.ask, state=signed))

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

    async def _in_session(self, request: McpRequest, session: SessionLink, run: Run) -> Result:
        """Repeat a call with the client's answers for as long as its result is `input_required`."""
        channel = SessionChannel(session, request.peer, request.response)
        options: CallOptions = {
            "origin": request.origin,
            "report": _progress_sender(request.response, request.meta),
            "channel": channel,
            "meta": _forwarded_meta(request.meta),
        }
        for _ in range(MAX_QUESTION_ROUNDS):
            result = await run(options)
            if result.ask is None:
                return result
            try:
                answers = {
                    name: await channel.ask(question["method"], question.get("params") or {})
                    for name, question in result.ask.questions.items()
                }
            except Unanswered as refusal:
                message = f"the tool asked something, and the client did not answer: {refusal}"
                return self._gateway.refusal(problem("TOOL_FAILED", message), request.origin)
            options = {**options, "answers": answers, "state": result.ask.state}
        limit = (
            f"the tool asked again after {MAX_QUESTION_ROUNDS} answers, so it is not waited for any longer"
        )
        return self._gateway.refusal(problem("TOOL_FAILED", limit), request.origin)


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

    def __init__(self, session: SessionLink, peer: Peer, response: ResponseChannel) -> None:
        self._session, self._response = session, response
        self.owner = session.id
        self.capabilities = peer.capabilities

    @property
    def level(self) -> str | None:
        """The log level that the client has set last."""
        return self._session.level

    async def ask(self, method: str, params: JsonObject) -> JsonObject:
        """Send a request on the stream of this call."""
        return await self._session.ask(method, params, self._response)

    async def log(self, params: JsonObject) -> None:
        """Send a log message if it has the level that the client wants."""
        await _LogSender(self._response, self._session.level or LOG_LEVELS[0]).send(params)


class _LogSender:
    """Sends log messages at or above a level."""

    def __init__(self, response: ResponseChannel, level: str) -> None:
        self._response, self._min_level = response, LOG_LEVELS.index(level)

    async def send(self, params: JsonObject) -> None:
        level = params.get("level")
        if level in LOG_LEVELS and LOG_LEVELS.index(level) >= self._min_level:
            await self._response.send(encode_notification(LOG_MESSAGE, orjson.dumps(params)))


class _ProgressSender:
    """Sends progress notifications with the client's token. MCP requires strictly increasing numbers."""

    def __init__(self, response: ResponseChannel, token: str | int) -> None:
        self._response, self._token, self._last = response, token, -_MIN_PROGRESS_STEP

    async def __call__(self, progress: Progress) -> None:
        done = progress.done
        # Starts below 0, as the first number may be 0.
        self._last = done if done is not None and done > self._last else self._last + _MIN_PROGRESS_STEP
        params: dict[str, Any] = {PROGRESS_TOKEN: self._token, "progress": self._last}
        if progress.total is not None:
            params["total"] = progress.total
        if progress.message is not None:
            params["message"] = progress.message
        await self._response.send(encode_notification(PROGRESS, orjson.dumps(params)))


def _progress_sender(response: ResponseChannel, meta: JsonObject) -> Report | None:
    token = meta.get(PROGRESS_TOKEN)
    if isinstance(token, str) and len(token) > _MAX_PROGRESS_TOKEN_CHARACTERS:
        raise ProtocolError(
            INVALID_PARAMS, f"a progressToken has at most {_MAX_PROGRESS_TOKEN_CHARACTERS} characters"
        )
    return _ProgressSender(response, token) if isinstance(token, str | int) else None


def _forwarded_meta(meta: JsonObject) -> JsonObject:
    """Return the client's `_meta` without the keys that belong to its own connection."""
    if REQUEST_KEYS.issuperset(meta):
        return _EMPTY_OBJECT
    return {
        key: value
        for key, value in meta.items()
        if key not in _CONSUMED_META_KEYS and not key.startswith(PROTOCOL_PREFIX)
    }


def _answers(params: JsonObject) -> tuple[JsonObject | None, str]:
    """Return the answers and the state of a retry."""
    if "inputResponses" not in params and "requestState" not in params:
        return None, ""
    state, answers = params.get("requestState", ""), params.get("inputResponses", _EMPTY_OBJECT)
    if type(state) is not str:
        raise ProtocolError(INVALID_PARAMS, "requestState must be the text that came with the question")
    if type(answers) is not dict or not all(
        type(each) is dict for each in cast("dict[str, Any]", answers).values()
    ):
        raise ProtocolError(INVALID_PARAMS, "inputResponses must be an object of objects")
    return cast("JsonObject", answers) or None, state
