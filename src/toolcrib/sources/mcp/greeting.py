"""Finds out how a server speaks: the modern way is tried first, and what worked is remembered."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import anyio

from toolcrib.model import Json, JsonObject
from toolcrib.sources.mcp.connection import LEGACY, MODERN, Connection, Era
from toolcrib.sources.mcp.envelope import DISCOVER, INITIALIZE, NOTHING, RESERVED
from toolcrib.sources.mcp.faults import Cut, Fault, Refusal, Status, Unsent
from toolcrib.sources.mcp.visible import visible

PATIENCE = 3.0
"""How long a server that we do not know may think about a request from after its time, in seconds."""

HANDSHAKES = ("2024-11-05", "2025-03-26", "2025-06-18", LEGACY)
"""The revisions with a handshake."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Greeting:
    """How a server speaks, and what it said of itself."""

    era: Era
    revision: str
    name: str = ""
    version: str = ""
    has_tools: bool = False
    """Whether it says that it has tools at all."""
    tells: bool = False
    """Whether it says that it will tell when its list of tools has changed."""


class Greeter:
    """Greets one server, run after run. `only`: the one era its transport can carry."""

    def __init__(self, only: Era | None = None) -> None:
        self._only: Era | None = only
        self._known: Era | None = only
        self._first: Era | None = only

    async def greet(self, connection: Connection) -> Greeting:
        """Agree on an era and a revision; the connection speaks it from then on."""
        modern = self._first != "legacy"
        try:
            greeting = await (self._as_modern(connection) if modern else self._as_legacy(connection))
        except Cut:
            # It may have died of a question it did not know, so the next run asks another one first.
            other: Era | None = "legacy" if modern else None
            self._first, self._known = self._known or other, self._only
            raise
        self._known = self._first = greeting.era
        return greeting

    async def _as_modern(self, connection: Connection) -> Greeting:
        greeting = await _discover(connection, PATIENCE if self._known is None else None)
        return greeting or await self._as_legacy(connection)

    async def _as_legacy(self, connection: Connection) -> Greeting:
        try:
            return await _initialize(connection)
        except (Refusal, Status):
            # A modern server that was slow to start may have taken the question we gave up on for a choice.
            greeting = None if self._only == "legacy" else await _discover(connection, None)
            if greeting is None:
                raise
            return greeting


async def _discover(connection: Connection, within: float | None) -> Greeting | None:
    """Ask the modern way; None where the server does not speak so."""
    connection.speak("modern", MODERN)
    try:
        with anyio.fail_after(within):
            answer = await connection.request("server/discover", DISCOVER)
    except (Unsent, Cut):
        raise
    except (Fault, TimeoutError):
        return None
    versions = answer.get("supportedVersions")
    if not isinstance(versions, list) or MODERN not in versions:
        return None
    stamp = _object(answer.get("_meta")).get(f"{RESERVED}serverInfo")
    return _greeting("modern", MODERN, answer, stamp)


async def _initialize(connection: Connection) -> Greeting:
    """Shake hands."""
    connection.speak("legacy", LEGACY)
    answer = await connection.request("initialize", INITIALIZE)
    revision = answer.get("protocolVersion")
    if revision not in HANDSHAKES:
        known = ", ".join((*HANDSHAKES, MODERN))
        raise ConnectionError(
            f"the server answered with the protocol revision {str(revision)[:40]!r}, which is none of {known}"
        )
    connection.speak("legacy", revision)
    await connection.notify("notifications/initialized", NOTHING)
    return _greeting("legacy", revision, answer, answer.get("serverInfo"))


def _greeting(era: Era, revision: str, answer: JsonObject, info: Json) -> Greeting:
    capabilities, server = _object(answer.get("capabilities")), _object(info)
    tools = _object(capabilities.get("tools"))
    return Greeting(
        era=era,
        revision=revision,
        name=_text(server.get("name")),
        version=_text(server.get("version")),
        has_tools="tools" in capabilities,
        tells=tools.get("listChanged") is True,
    )


def _object(value: Json) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def _text(value: Json) -> str:
    return visible(value[:200]) if isinstance(value, str) else ""
