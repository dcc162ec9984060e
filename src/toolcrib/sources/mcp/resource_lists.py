"""A server's resources, templates and prompts as last listed; a failure here does not affect its tools."""

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from toolcrib.catalog import GET, READ
from toolcrib.interfaces import SourceResources
from toolcrib.model import JsonObject
from toolcrib.sources.mcp.connection import Connection
from toolcrib.sources.mcp.discovery import PROMPTS, RESOURCES, TEMPLATES, ListKind, listing
from toolcrib.sources.mcp.errors import ServerError
from toolcrib.sources.mcp.gateway_loops import passed_on
from toolcrib.sources.mcp.handshake import ServerIntroduction
from toolcrib.sources.mcp.resource_validation import prompts, resources, templates
from toolcrib.sources.mcp.server_settings import McpSettings

log = logging.getLogger(__name__)

Part = Literal["resources", "prompts"]
PARTS: tuple[Part, ...] = ("resources", "prompts")

_LISTS: Mapping[Part, tuple[ListKind, ...]] = {"resources": (RESOURCES, TEMPLATES), "prompts": (PROMPTS,)}
_MOST_REASONS = 3
"""Maximum reasons in one log message."""


class ResourceLists:
    """The lists of one connected server; `before` holds those of the previous run."""

    def __init__(
        self,
        settings: McpSettings,
        connection: Connection,
        greeting: ServerIntroduction,
        before: SourceResources | None,
    ) -> None:
        self._settings, self._connection, self._greeting = settings, connection, greeting
        self._seals: dict[str, bytes] = {}
        self._said: dict[str, str] = {}
        self._left_out: dict[str, int] = {}
        # An operator's list of tools is an allowlist, also for the pseudo-tools of resources and prompts.
        reads, prompting = (not settings.tools or door in settings.tools for door in (READ, GET))
        reads, prompting = reads and greeting.has_resources, prompting and greeting.has_prompts
        known = before or SourceResources()
        self.materials = SourceResources(
            resources=known.resources if reads else (),
            templates=known.templates if reads else (),
            prompts=known.prompts if prompting else (),
            has_resources=reads,
            has_prompts=prompting,
            tells=reads and greeting.subscribes,
            completes=greeting.completes,
        )

    def there(self, parts: Collection[Part] = PARTS) -> tuple[Part, ...]:
        """Return those parts that the server declares and the operator serves."""
        has = {"resources": self.materials.has_resources, "prompts": self.materials.has_prompts}
        return tuple(part for part in PARTS if part in parts and has[part])

    async def refresh(self, parts: Collection[Part]) -> tuple[Part, ...]:
        """List parts again; return those with a list that failed."""
        failed: list[Part] = []
        for part in self.there(parts):
            listed = [await self._list(kind) for kind in _LISTS[part]]
            if not all(listed):
                failed.append(part)
        return tuple(failed)

    async def _list(self, kind: ListKind) -> bool:
        try:
            found = await listing(self._connection, self._greeting, kind)
        except ServerError as fault:
            self._say(kind, f"could not be asked for its {kind.name}: {self._settings.redact(str(fault))}")
            return False
        if found.cut is not None:
            self._say(kind, f"has a list of {kind.name} that was not read to the end: {found.cut}")
        if found.seal != self._seals.get(kind.key):
            self._take(kind, found.entries)
            self._seals[kind.key] = found.seal
        return True

    def _take(self, kind: ListKind, raw: tuple[Any, ...]) -> None:
        if kind is PROMPTS:
            fit, unfit = prompts(self._settings.id, raw)
            self.materials = replace(self.materials, prompts=self._passed_on(fit))
        elif kind is RESOURCES:
            fit, unfit = resources(raw)
            self.materials = replace(self.materials, resources=self._passed_on(fit))
        else:
            fit, unfit = templates(raw)
            self.materials = replace(self.materials, templates=self._passed_on(fit))
        self._left_out[kind.key] = len(unfit)
        if unfit:
            more = "; …" if len(unfit) > _MOST_REASONS else ""
            reasons = "; ".join(each[:200] for each in unfit[:_MOST_REASONS]) + more
            self._say(kind, f"lists {len(unfit)} {kind.name} that cannot be used: {reasons}")

    def _passed_on(self, fit: Sequence[JsonObject]) -> tuple[JsonObject, ...]:
        return passed_on(fit, self._settings.gateway, self._greeting.gateway)

    def _say(self, kind: ListKind, said: str) -> None:
        """Log a message for the operator, once until it changes."""
        if self._said.get(kind.key) != said:
            self._said[kind.key] = said
            log.warning("%s %s", self._settings.id, said)

    def details(self) -> Mapping[str, Any]:
        """Return the counts for operators; empty for a server with tools only."""
        held, left_out = self.materials, sum(self._left_out.values())
        counts = {
            **(
                {"resources": len(held.resources), "templates": len(held.templates)}
                if held.has_resources
                else {}
            ),
            **({"prompts": len(held.prompts)} if held.has_prompts else {}),
        }
        return {**counts, **({"withheld_materials": left_out} if counts else {})}
