"""The line between a pair of glasses and its gateway: the session, what comes out, what goes in."""

from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager
from urllib.parse import quote

from toolcrib.cli.remote_backend import RemoteBackend, connected, events_in, refusal
from toolcrib.egress.client import Client
from toolcrib.errors import Lost, Refused
from toolcrib.model import JsonObject

OPEN: tuple[str, JsonObject] = ("connection", {"state": "open"})


@asynccontextmanager
async def line_to(url: str, key: str, user: str) -> AsyncGenerator["GatewayConnection"]:
    """Open the line of a user for as long as the block lasts."""
    async with connected(url, key) as client:
        yield GatewayConnection(client, url, user)


class GatewayConnection(RemoteBackend):
    """Speaks for the device of one user."""

    def __init__(self, client: Client, url: str, user: str) -> None:
        super().__init__(client, url)
        self._path = f"/api/users/{quote(user, safe='')}"

    async def begin(self, device: str, language: str | None) -> JsonObject:
        """Begin the user's session with this device, or change it."""
        body = {"device": device, **({} if language is None else {"language": language})}
        return await self._ask("PUT", f"{self._path}/session", body=body)

    async def end(self) -> None:
        """End the session; one that is over already is none of our business."""
        try:
            await self._ask("DELETE", f"{self._path}/session")
        except Refused as error:
            if error.problem.code not in ("NOT_FOUND", "NO_SESSION"):
                raise

    async def hear(self, text: str, language: str | None) -> None:
        """Pass on what the user has said."""
        body = {"text": text, "isFinal": True, **({} if language is None else {"language": language})}
        await self._ask("POST", f"{self._path}/transcription", body=body)

    async def events(self) -> AsyncGenerator[tuple[str, JsonObject]]:
        """Follow what apps show and say, from when the line is open on.

        Raises Lost when it breaks; it has no other end.
        """
        headers = {"Accept": "text/event-stream"}
        async with self._sent("GET", f"{self._path}/events", headers=headers) as response:
            if response.status >= 400:
                raise refusal((await self._read(response))["error"])
            yield OPEN
            async with aclosing(events_in(response)) as events:
                async for event in events:
                    yield event
        raise Lost("OUTCOME_UNKNOWN", "the gateway has ended the line")
