"""Webhooks of apps: session requests and stop requests."""

from collections.abc import Callable, Mapping
from typing import Protocol, cast

import anyio

from toolcrib.apps import messages
from toolcrib.apps.error_text import complaint
from toolcrib.apps.signature import proof
from toolcrib.egress.json_post import PostResponse, PostResponseTooLarge
from toolcrib.egress.response import ConnectionClosed, NoConnection, NotHttp
from toolcrib.interfaces import AppRecord
from toolcrib.model import AddressGiver, JsonObject
from toolcrib.schemas.json_parsing import InvalidJson, parse

STOP_SECONDS = 3.0
"""Timeout of a stop request, in seconds."""
# Bytes of one response body.
_MOST_BYTES = 64 << 10
_TAKEN = PostResponse(200, "", b"")
# Characters of an app's error text in our error message.
_LONGEST_WORDS = 300
_REASONS = ("user_disabled", "system_stop", "error")
"""The stop reasons of the app protocol."""


class PostsJson(Protocol):
    """Outbound HTTP: `egress.json_post.JsonPoster`."""

    async def send(
        self,
        url: str,
        body: bytes,
        headers: Mapping[str, str],
        *,
        most_bytes: int,
        giver: AddressGiver | None = "other",
    ) -> PostResponse:
        """POST a JSON body under the address rules for the giver of the URL; return the response."""
        ...


class Webhooks:
    """Posts signed requests to the webhooks of apps."""

    def __init__(self, post: PostsJson, clock: Callable[[], float]) -> None:
        self._post, self._clock = post, clock
        self.address: str | None = None
        """Base URL at which apps reach the gateway."""
        self._leaving: dict[str, anyio.Event] = {}
        """Sessions with a stop request in flight: a later session request must not overtake it."""

    async def come(self, app: AppRecord, user: str) -> PostResponse:
        """Send a session request; return the app's response."""
        session = messages.session_id(user, app.package)
        if (leaving := self._leaving.get(session)) is not None:
            await leaving.wait()
        websocket = f"{_websocket(self.address or '')}/app-ws"
        said = messages.session_request(session, user, websocket=websocket, now=self._clock())
        return await self._send(app, user, said)

    async def go(self, app: AppRecord, user: str, reason: str) -> None:
        """Send a stop request, best effort: the session is already over, so transport errors are ignored."""
        session = messages.session_id(user, app.package)
        leaving = self._leaving[session] = anyio.Event()
        try:
            with anyio.move_on_after(STOP_SECONDS):
                await self._send(
                    app,
                    user,
                    messages.stop_request(session, user, reason=known(reason), now=self._clock()),
                )
        except (NoConnection, ConnectionClosed, NotHttp):
            return
        finally:
            leaving.set()
            if self._leaving.get(session) is leaving:
                del self._leaving[session]

    async def _send(self, app: AppRecord, user: str, message: JsonObject) -> PostResponse:
        body = messages.encode(message).encode()
        headers = proof(app.digest, app.signing, user=user, tool="", body=body, now=self._clock())
        try:
            url = f"{(app.public_url or '').rstrip('/')}/webhook"
            return await self._post.send(url, body, headers, most_bytes=_MOST_BYTES, giver=app.url_giver)
        except PostResponseTooLarge:
            return _TAKEN  # error bodies are truncated, never too large; other bodies are not used


def why(reply: PostResponse) -> str:
    """Return the error text of an app's response, formatted as a suffix; empty if there is none."""
    try:
        said = parse(reply.body)
    except InvalidJson:
        return ""
    found = complaint(cast("JsonObject", said))[0] if type(said) is dict else ""
    return f": {found[:_LONGEST_WORDS]}" if found else ""


def known(reason: str) -> str:
    """Return a stop reason that apps know."""
    return reason if reason in _REASONS else "system_stop"


def _websocket(address: str) -> str:
    return "ws" + address.rstrip("/").removeprefix("http")
