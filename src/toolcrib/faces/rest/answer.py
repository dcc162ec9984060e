"""A provider's message in, the messages that answer it out."""

from typing import cast

import anyio
import orjson

from toolcrib.asgi import Answer, Request, patience
from toolcrib.faces.rest.fields import only, refused, text
from toolcrib.gateway import Answering, Conversations, Gateway
from toolcrib.model import Json, JsonObject

FIELDS = ("format", "message", "context")


class AnswerRoute:
    """Answers `POST /api/tools/answer`. A client that leaves takes its calls along, as with any call."""

    def __init__(self, gateway: Gateway, conversations: Conversations, *, body_bytes: int) -> None:
        self._gateway, self._conversations = gateway, conversations
        self._body_bytes = body_bytes

    async def answer(self, request: Request) -> Answer:
        """Make all calls of a message."""
        fields = only(await request.json(self._body_bytes), *FIELDS)
        caller = self._gateway.enter(request.caller, text(fields, "context"))
        context = self._gateway.context(caller)
        spoken = text(fields, "format") or (None if context is None else context.provider)
        if spoken is None:
            raise refused("format", f"must be given: the context {caller.context} has no provider")
        wait = patience(request)
        turn = await Answering(self._gateway, self._conversations).turn(
            _message(fields.get("message")),
            spoken,
            caller,
            origin=request.origin,
            deadline=None if wait is None else anyio.current_time() + wait,
        )
        said: JsonObject = {
            "messages": turn.messages,
            "suppressVoiceResponse": turn.silent,
            "suggestedFollowUps": turn.follow_ups,
        }
        return Answer(200, orjson.dumps(said))


def _message(given: Json) -> JsonObject:
    if not isinstance(given, dict):
        raise refused("message", "must be an object, as the provider sent it")
    return cast("JsonObject", given)
