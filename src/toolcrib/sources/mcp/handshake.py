"""Protocol negotiation: tries the modern era first, and remembers the era that worked."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import anyio

from toolcrib.model import Json, JsonObject
from toolcrib.model.gateways import gateway_id
from toolcrib.sources.mcp.connection import LEGACY, MODERN, Connection, Era
from toolcrib.sources.mcp.envelope import DISCOVER, NOTHING, RESERVED, initialize
from toolcrib.sources.mcp.errors import ConnectionLost, HttpStatusError, JsonRpcError, NotSent, ServerError
from toolcrib.sources.mcp.sanitize import visible

PATIENCE = 3.0
"""Timeout in seconds of the discovery request to a server of unknown era."""

HANDSHAKES = ("2024-11-05", "2025-03-26", "2025-06-18", LEGACY)
"""The revisions with an `initialize` handshake."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerIntroduction:
    """The negotiated era and revision, and what the server declares about itself."""

    era: Era
    revision: str
    name: str = ""
    version: str = ""
    gateway: str = ""
    """Its gateway id, if the server is a gateway too."""
    has_tools: bool = False
    """Whether it declares the tools capability."""
    tells: bool = False
    """Whether it declares notifications about changes of its list of tools."""
    has_resources: bool = False
    tells_resources: bool = False
    """Whether it declares notifications about changes of its list of resources."""
    subscribes: bool = False
    """Whether it declares subscriptions to single resources."""
    has_prompts: bool = False
    tells_prompts: bool = False
    """Whether it declares notifications about changes of its list of prompts."""
    completes: bool = False
    """Whether it declares the completion of arguments."""
    logs: bool = False
    """Whether it declares logging, and so accepts a log level."""


class Handshake:
    """Negotiates with one server, run after run. `only` is the one era that its transport supports."""

    def __init__(self, only: Era | None = None) -> None:
        self._only: Era | None = only
        self._known: Era | None = only
        self._first: Era | None = only

    async def greet(self, connection: Connection) -> ServerIntroduction:
        """Negotiate an era and a revision; the connection uses them from then on."""
        modern = self._first != "legacy"
        try:
            greeting = await (self._as_modern(connection) if modern else self._as_legacy(connection))
        except ConnectionLost:
            # An unknown method may have crashed the server, so the next run tries the other era first.
            other: Era | None = "legacy" if modern else None
            self._first, self._known = self._known or other, self._only
            raise
        self._known = self._first = greeting.era
        return greeting

    async def _as_modern(self, connection: Connection) -> ServerIntroduction:
        greeting = await _discover(connection, PATIENCE if self._known is None else None)
        return greeting or await self._as_legacy(connection)

    async def _as_legacy(self, connection: Connection) -> ServerIntroduction:
        try:
            return await shake_hands(connection, initialize())
        except (JsonRpcError, HttpStatusError):
            # A modern server that starts slowly may have received the discovery request after its timeout,
            # and taken it as the choice of the era.
            greeting = None if self._only == "legacy" else await _discover(connection, None)
            if greeting is None:
                raise
            return greeting


async def _discover(connection: Connection, within: float | None) -> ServerIntroduction | None:
    """Send `server/discover`; return None if the server does not support the modern era."""
    connection.speak("modern", MODERN)
    try:
        with anyio.fail_after(within):
            answer = await connection.request("server/discover", DISCOVER)
    except (NotSent, ConnectionLost):
        raise
    except (ServerError, TimeoutError):
        return None
    versions = answer.get("supportedVersions")
    if not isinstance(versions, list) or MODERN not in versions:
        return None
    stamp = _object(answer.get("_meta")).get(f"{RESERVED}serverInfo")
    return _greeting("modern", MODERN, answer, stamp)


async def shake_hands(connection: Connection, params: bytes) -> ServerIntroduction:
    """Run the legacy `initialize` handshake; `params` hold our client info and capabilities."""
    connection.speak("legacy", LEGACY)
    answer = await connection.request("initialize", params)
    revision = answer.get("protocolVersion")
    if revision not in HANDSHAKES:
        known = ", ".join((*HANDSHAKES, MODERN))
        raise ConnectionError(
            f"the server answered with the protocol revision {str(revision)[:40]!r}, which is none of {known}"
        )
    connection.speak("legacy", revision)
    await connection.notify("notifications/initialized", NOTHING)
    return _greeting("legacy", revision, answer, answer.get("serverInfo"))


def _greeting(era: Era, revision: str, answer: JsonObject, info: Json) -> ServerIntroduction:
    capabilities, server = _object(answer.get("capabilities")), _object(info)
    tools, resources, prompts = (
        _object(capabilities.get(name)) for name in ("tools", "resources", "prompts")
    )
    return ServerIntroduction(
        era=era,
        revision=revision,
        name=_text(server.get("name")),
        version=_text(server.get("version")),
        gateway=gateway_id(answer.get("_meta")),
        has_tools="tools" in capabilities,
        tells=tools.get("listChanged") is True,
        has_resources="resources" in capabilities,
        tells_resources=resources.get("listChanged") is True,
        subscribes=resources.get("subscribe") is True,
        has_prompts="prompts" in capabilities,
        tells_prompts=prompts.get("listChanged") is True,
        completes="completions" in capabilities,
        logs="logging" in capabilities,
    )


def _object(value: Json) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def _text(value: Json) -> str:
    return visible(value[:200]) if isinstance(value, str) else ""
