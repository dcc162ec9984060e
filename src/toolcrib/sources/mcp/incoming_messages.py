"""Dispatches what arrives while a request is in flight: response, progress, server requests and the rest."""

from dataclasses import dataclass
from typing import cast

from toolcrib.model import Json, JsonObject
from toolcrib.sources.mcp.connection import Era, Heard
from toolcrib.sources.mcp.errors import InvalidResponse, JsonRpcError, ServerError
from toolcrib.sources.mcp.jsonrpc import ENDS, guess_id, parse
from toolcrib.sources.mcp.message_parsing import CANCELLED, MESSAGE, PROGRESS, outcome, params_of, progress
from toolcrib.sources.mcp.notification_limit import NotificationLimit
from toolcrib.sources.mcp.request_callbacks import News, RequestCallbacks
from toolcrib.sources.mcp.server_messages import LARGEST_LOG, MessageRouter, RequestMessages

Outcome = JsonObject | ServerError | None
"""The result of a request, or its error; None while neither has arrived."""


@dataclass(frozen=True, slots=True)
class PendingRequest:
    """A request in flight."""

    id: int
    method: str
    era: Era
    ear: RequestCallbacks | None = None
    hearing: RequestMessages | None = None
    """Set if a background task reads the response: the caller's task then serves the server's requests."""

    async def hear(self, news: News) -> None:
        """Deliver progress or a log message to the caller."""
        if self.hearing is not None:
            self.hearing.add(news)
        elif self.ear is not None:
            await self.ear.hear(news)


class IncomingMessages:
    """Dispatches messages one by one. The router gets those that are not about the response being read."""

    def __init__(self, heard: Heard, hearings: MessageRouter, limit: NotificationLimit) -> None:
        self._heard, self._hearings, self._limit = heard, hearings, limit
        self.running = 0
        """Number of requests in flight."""
        self.unclaimed = 0
        """Number of messages without a receiver: wrong ids, late responses, excess requests."""

    async def take(self, data: bytes, asked: PendingRequest | None) -> Outcome:
        """Dispatch one message; return the outcome if it is the response to the given request."""
        try:
            value = parse(data)
        except InvalidResponse as fault:
            about = guess_id(data[:ENDS], data[-ENDS:])
            if asked is not None and about in {None, asked.id}:
                return fault
            self._useless(len(data))
            return None
        found: Outcome = None
        # Revision 2025-03-26 allows several messages in one batch.
        messages = cast("list[Json]", value) if type(value) is list else (value,)
        size = len(data) // max(1, len(messages))
        for message in messages:
            mine = await self._sorted(message, size, asked)
            found = found if mine is None else mine
        return found

    async def _sorted(self, message: Json, size: int, asked: PendingRequest | None) -> Outcome:
        if type(message) is not dict:
            self._useless(size)
            return None
        fields = cast("JsonObject", message)
        method = fields.get("method")
        if type(method) is not str:
            return self._claimed(fields, size, asked)
        admitted = self._limit.admit(method, size)
        if "id" in fields:
            self.unclaimed += not self._hearings.ask(fields, size, asked.hearing if asked else None)
        elif admitted:
            await self._told(method, params_of(fields), size, asked)
        return None

    def _useless(self, size: int) -> None:
        self.unclaimed += 1
        self._limit.admit("", size)

    def _claimed(self, fields: JsonObject, size: int, asked: PendingRequest | None) -> Outcome:
        found, whose = outcome(fields), fields.get("id")
        if found is not None and asked is not None:
            # True and 1.0 equal 1 in Python, and are no ids.
            if type(whose) is int and whose == asked.id:
                return found
            # A server that could not parse a request cannot return its id.
            if whose is None and isinstance(found, JsonRpcError):
                return found
        self._useless(size)
        return None

    async def _told(self, method: str, params: JsonObject, size: int, asked: PendingRequest | None) -> None:
        ear = asked.ear if asked is not None else None
        if method == PROGRESS:
            mine = asked is not None and params.get("progressToken") == asked.id
            if asked is not None and mine and ear is not None and ear.report is not None:
                await asked.hear(progress(params))
            else:
                self.unclaimed += 1
        elif method == CANCELLED:
            self._hearings.withdraw(params)
        elif method != MESSAGE or size > LARGEST_LOG or not await self._logged(params, asked):
            self._heard(method, params)

    async def _logged(self, params: JsonObject, asked: PendingRequest | None) -> bool:
        if asked is None:
            return self._hearings.log(params, self.running - len(self._hearings.open))
        if asked.ear is None or asked.ear.channel is None:
            return False
        await asked.hear(params)
        return True
