"""HTTP+SSE (revision 2024-11-05): one event stream for incoming messages, POSTs for outgoing ones."""

import logging
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio
import orjson
from yarl import URL

from toolcrib.egress import Egress
from toolcrib.egress.client import Client
from toolcrib.egress.response import Response
from toolcrib.interfaces import ServerMisbehaved
from toolcrib.mcp.jsonrpc import END_BYTES, encode_notification, guess_id
from toolcrib.mcp.revisions import Era
from toolcrib.mcp.sse import EventStreamParser, ServerSentEvent
from toolcrib.model import JsonObject
from toolcrib.sources.mcp.connection import (
    Connection,
    ConnectionLost,
    ConnectionTasks,
    InvalidResponse,
    Notify,
    NotSent,
    RequestCallbacks,
    ResponseTooLarge,
    ServerError,
    background,
)
from toolcrib.sources.mcp.http_session import (
    STREAM,
    BodySlices,
    check_coding,
    drain,
    event_messages,
    send,
    session,
    status_error,
)
from toolcrib.sources.mcp.request_multiplexer import NotificationLimit, RequestMultiplexer

log = logging.getLogger(__name__)

POST_TIMEOUT_SECONDS = 300.0
"""Timeout of a POST in seconds; nothing else ends one that the server never accepts."""

_MAX_POSTS_IN_FLIGHT = 256
"""Maximum POSTs in flight."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SseTransport:
    """A server at the URL of its event stream. `headers` are the operator's, sent with every request."""

    url: str
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    egress: Egress = field(default_factory=Egress)

    @asynccontextmanager
    async def dial(self, notify: Notify) -> AsyncGenerator[Connection]:
        """Open the event stream and wait for its `endpoint` event."""
        url = URL(self.url)
        async with session(self.url, self.headers, self.egress) as client, background() as jobs:
            response = await send(client, "GET", url, {"Accept": STREAM})
            try:
                _check(response)
                connection = _Connection(client, response, notify, jobs)
                await connection.read_endpoint(url)
                jobs.start(connection.run)
                try:
                    yield connection
                finally:
                    connection.mark_lost(ConnectionLost("the connection to the server was closed"))
            finally:
                response.close()


class _Connection:
    def __init__(self, client: Client, response: Response, notify: Notify, jobs: ConnectionTasks) -> None:
        self._client, self._response, self._jobs = client, response, jobs
        self._limit = limit = NotificationLimit(self._flooded)
        self._exchange = RequestMultiplexer(
            self._send, notify, send_reply=self._answer, reply=self._reply, limit=limit
        )
        self._events, self._slices = EventStreamParser(too_large=ResponseTooLarge), BodySlices(response)
        self._waiting: list[ServerSentEvent] = []
        """Events that arrived together with the endpoint, before `run` handles them."""
        self._post_url = URL()
        self._garbled = 0
        self._lost_reason = ""
        self._closed = anyio.Event()

    async def read_endpoint(self, url: URL) -> None:
        """Read up to the `endpoint` event, which gives the URL to post to."""
        while data := await self._slices.next():
            events = self._events.feed(data)
            for at, event in enumerate(events):
                if event.type == "endpoint":
                    self._post_url = _endpoint(url, event.data)
                    self._waiting = events[at + 1 :]
                    return
            self._limit.charge(len(event_messages(events, self._events, self._limit)))
            await self._limit.throttle()
            if self._lost_reason:
                raise ConnectionLost(self._lost_reason)
        raise InvalidResponse("the server ended its event stream before it said where to post to")

    async def run(self) -> None:
        """Handle messages until the stream ends; pending requests fail with it."""
        try:
            self._handle_events(self._waiting)
            while not self._lost_reason and (data := await self._slices.next()):
                self._handle_events(self._events.feed(data))
                await self._limit.throttle()
            self.mark_lost(ConnectionLost("the server ended its event stream"))
        except ResponseTooLarge as fault:
            head = self._events.head(END_BYTES)
            request_id = guess_id(head, head)
            if request_id is not None:
                self._exchange.fail(request_id, fault)
            self.mark_lost(ConnectionLost(f"the event stream was closed: {fault}"))
        except ServerError as fault:
            self.mark_lost(fault)
        finally:
            self._response.close()

    def mark_lost(self, fault: ServerError) -> None:
        """Mark the connection as lost for good; pending requests fail with this error."""
        self._lost_reason = self._lost_reason or str(fault)
        self._exchange.close(fault)
        self._closed.set()

    def use_revision(self, era: Era, revision: str) -> None:
        """Do nothing: this transport predates the eras, and sends no headers about them."""

    def relay(self, capabilities: JsonObject) -> None:
        self._exchange.relay(capabilities)

    async def request(
        self,
        method: str,
        params: bytes,
        *,
        name: str | None = None,
        headers: Mapping[str, str] | None = None,
        callbacks: RequestCallbacks | None = None,
    ) -> JsonObject:
        return await self._exchange.request(method, params, callbacks=callbacks)

    async def notify(self, method: str, params: bytes) -> None:
        if self._lost_reason:
            raise NotSent(self._lost_reason)
        await self._post(encode_notification(method, params))

    async def receive(self) -> None:
        await self._closed.wait()

    async def lost(self) -> str:
        await self._closed.wait()
        if self._limit.flooded:
            raise ServerMisbehaved(self._lost_reason)
        return self._lost_reason

    def details(self) -> Mapping[str, Any]:
        dropped = {"dropped_messages": self._limit.dropped} if self._limit.dropped else {}
        return {"unclaimed": self._exchange.unclaimed, "garbled": self._garbled, **dropped}

    def _flooded(self, reason: str) -> None:
        self.mark_lost(ConnectionLost(reason))

    def _handle_events(self, events: list[ServerSentEvent]) -> None:
        for message in event_messages(events, self._events, self._limit):
            try:
                self._exchange.feed(message)
            except InvalidResponse as fault:
                self._garbled += 1
                log.debug("a message was skipped: %s", fault)

    def _send(self, data: bytes) -> None:
        if not self._jobs.start(self._deliver, data, max_running=_MAX_POSTS_IN_FLIGHT):
            raise NotSent("the server does not accept messages: too many wait already")

    def _reply(self, data: bytes) -> None:
        self._jobs.start(self._deliver, data)

    async def _answer(self, data: bytes) -> None:
        with anyio.move_on_after(POST_TIMEOUT_SECONDS):
            await self._post(data)

    async def _deliver(self, data: bytes) -> None:
        """Post a message; if that fails, so does its pending request."""
        message = f"the server did not accept the request within {POST_TIMEOUT_SECONDS:g} s"
        fault: ServerError = ConnectionLost(message)
        with anyio.move_on_after(POST_TIMEOUT_SECONDS):
            try:
                await self._post(data)
                return
            except ServerError as found:
                fault = found
        message = orjson.loads(data)
        if "method" in message and "id" in message:
            self._exchange.fail(message["id"], fault)

    async def _post(self, data: bytes) -> None:
        response = await send(self._client, "POST", self._post_url, {}, data)
        try:
            if response.status >= 300:
                raise status_error(response)
            await drain(response)
        finally:
            response.close()


def _check(response: Response) -> None:
    if response.status >= 300:
        raise status_error(response)
    check_coding(response)
    if response.content_type != STREAM:
        raise InvalidResponse(f"the server answered with no {STREAM}; check its URL and its transport")


def _endpoint(url: URL, data: bytes) -> URL:
    """Return the URL to post to, which must have the origin of the event stream."""
    try:
        endpoint = url.join(URL(data.decode("ascii")))
        same_origin = (
            endpoint.origin() == url.origin() and endpoint.raw_user is None and endpoint.raw_password is None
        )
    except ValueError as error:
        raise InvalidResponse("the server gave no proper address to post to") from error
    if not same_origin:
        raise InvalidResponse("the server gave an address to post to that is not its own, which is refused")
    return endpoint
