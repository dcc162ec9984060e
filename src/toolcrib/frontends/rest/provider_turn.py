"""Runs all calls of a provider message and returns the reply messages in the provider's format."""

from functools import partial
from typing import Any, NamedTuple, cast

import anyio
import orjson

from toolcrib.frontends.rest.fields import KEY, key_of, only, refused, text
from toolcrib.frontends.rest.streaming import KEEP_ALIVE, stream, wants_events
from toolcrib.gateway import Gateway, MultiRoundCalls, ProviderConnection, asked_of
from toolcrib.http import HttpResponse, Request, patience
from toolcrib.http.response import EVENTS
from toolcrib.model import Caller, Json, JsonObject, Report

FIELDS = ("format", "message", "context", "idempotencyKey")
FREE = frozenset({"arguments", "args", "input", "parameters"})
"""The argument fields in provider messages; duplicate keys are allowed in them, as in `execute`."""


class _Asked(NamedTuple):
    """The parsed body of a turn."""

    message: JsonObject
    format: str
    caller: Caller
    deadline: float | None
    key: str


class AnswerRoute:
    """Handler of `POST /api/tools/answer`. A disconnect cancels the running calls."""

    def __init__(
        self,
        gateway: Gateway,
        conversations: MultiRoundCalls,
        *,
        body_bytes: int,
        keep_alive: float = KEEP_ALIVE,
    ) -> None:
        self._gateway, self._conversations = gateway, conversations
        self._body_bytes, self._keep_alive = body_bytes, keep_alive

    async def answer(self, request: Request) -> HttpResponse:
        """Run all calls of a message. With events, the message is validated before the stream starts."""
        asked = self._asked(request, only(await request.json(self._body_bytes, free=FREE), *FIELDS))
        if wants_events(request):
            asked_of(asked.message, asked.format)
            run = partial(self._made, request, asked)
            return HttpResponse(200, b"", EVENTS, partial(stream, request, run, self._keep_alive))
        return HttpResponse(200, await self._made(request, asked))

    def _asked(self, request: Request, fields: dict[str, Any]) -> _Asked:
        caller = self._gateway.enter(request.caller, text(fields, "context"))
        context = self._gateway.context(caller)
        spoken = text(fields, "format") or (None if context is None else context.provider)
        if spoken is None:
            raise refused("format", f"must be given: the context {caller.context} has no provider")
        wait = patience(request)
        deadline = None if wait is None else anyio.current_time() + wait
        key = key_of(fields.get("idempotencyKey"), request.headers.get(KEY))
        return _Asked(_message(fields.get("message")), spoken, caller, deadline, key)

    async def _made(self, request: Request, asked: _Asked, report: Report | None = None) -> bytes:
        turn = await ProviderConnection(self._gateway, self._conversations).turn(
            asked.message,
            asked.format,
            asked.caller,
            origin=request.origin,
            deadline=asked.deadline,
            report=report,
            idempotency_key=asked.key,
        )
        said: JsonObject = {
            "messages": turn.messages,
            "suppressVoiceResponse": turn.silent,
            "suggestedFollowUps": turn.follow_ups,
        }
        return orjson.dumps(said)


def _message(given: Json) -> JsonObject:
    if not isinstance(given, dict):
        raise refused("message", "must be an object, as the provider sent it")
    return cast("JsonObject", given)
