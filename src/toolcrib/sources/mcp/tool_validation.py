"""Validates each tool that a server lists on its own: accepted, repaired if that is safe, or withheld."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

import orjson

from toolcrib.catalog import DOORS
from toolcrib.errors import Refused
from toolcrib.formats.mirrored_headers import InvalidMirroredHeader, mirrors_of
from toolcrib.interfaces import Offer, Withheld
from toolcrib.model import Json, JsonObject, Speech, Tool
from toolcrib.names import canonical
from toolcrib.sources.mcp.gateway_loops import leads_back, through
from toolcrib.sources.mcp.sanitize import visible
from toolcrib.sources.mcp.server_settings import McpSettings, ToolSettings

LARGEST_DEFINITION = 64 << 10
"""Maximum bytes of one definition."""
LONGEST_TEXT = 4 << 10
"""Maximum bytes of a description or a title."""

_UNSAID = "1.0.0"
"""Version of tools if the server declares none."""
_PLAIN = ToolSettings()


def offer(
    settings: McpSettings,
    raw: Sequence[Json],
    *,
    version: str = "",
    modern: bool = False,
    gateway: str = "",
) -> Offer:
    """Validate what a server lists, and return it as an offer.

    `version`: the server's own; `modern`: whether it uses the modern era; `gateway`: its id, if it is one.
    """
    judge = _Judge(settings, version or _UNSAID, modern=modern, gateway=gateway)
    for place, definition in enumerate(raw, 1):
        judge.take(place, definition)
    return Offer(
        tools=judge.tools,
        withheld=judge.withheld,
        repaired=judge.repaired,
        definitions=judge.definitions,
    )


class _Unfit(Exception):
    """A tool that cannot be offered; the message is the reason."""


class _Judge:
    """The results for a server's list so far."""

    def __init__(self, settings: McpSettings, version: str, *, modern: bool, gateway: str) -> None:
        self._settings, self._version, self._modern = settings, version, modern
        self._gateway = gateway
        self.tools: list[Tool] = []
        self.withheld: list[Withheld] = []
        self.repaired: dict[str, tuple[str, ...]] = {}
        self.definitions: dict[str, JsonObject] = {}

    def take(self, place: int, raw: Json) -> None:
        """Validate one more definition. Without a usable name, its position in the list identifies it."""
        source, allowed = self._settings.id, self._settings.tools
        name = f"{source}:{place}"
        try:
            local = _name(raw)
            if allowed and local not in allowed:
                return
            name = canonical(source, local)
            repairs: list[str] = []
            tool = self._tool(name, raw, repairs)
        except (_Unfit, InvalidMirroredHeader, Refused) as error:
            self.withheld.append(Withheld(name, source, str(error)))
            return
        self.tools.append(tool)
        self.definitions[name] = raw
        if repairs:
            self.repaired[name] = tuple(repairs)

    def _tool(self, name: str, raw: JsonObject, repairs: list[str]) -> Tool:
        if name in self.definitions:
            raise _Unfit("the server lists another tool of that name before it")
        if raw["name"] in DOORS:
            raise _Unfit("its name is that of the way to the server's resources or prompts")
        if leads_back(raw, self._settings.gateway):
            raise _Unfit("it leads back to this gateway, which serves it already")
        size = len(orjson.dumps(raw))
        if size > LARGEST_DEFINITION:
            raise _Unfit(f"its definition takes {size:,} bytes, at most {LARGEST_DEFINITION:,} are allowed")
        schema = _input_schema(raw, repairs)
        if self._modern:
            mirrors_of(schema)
        annotations = _annotations(raw, repairs)
        title = _text(raw.get("title"), "title", repairs) or annotations.get("title")
        said = self._settings.tools.get(raw["name"], _PLAIN)
        return Tool(
            name=name,
            source=self._settings.id,
            family="mcp",
            title=title or None,
            description=said.description or _description(raw, repairs),
            input_schema=schema,
            output_schema=_object(raw.get("outputSchema"), "output schema", repairs),
            version=self._version,
            speech=Speech(template=said.speech_template, field=said.speech_field),
            slow=said.slow or self._settings.slow,
            timeout=said.timeout or self._settings.timeout,
            annotations=annotations,
            icons=_icons(raw.get("icons"), repairs),
            meta=through(self._gateway, _object(raw.get("_meta"), "_meta", repairs) or {}),
            expose_as=said.expose_as,
        )


def _name(raw: Json) -> str:
    if not isinstance(raw, Mapping):
        raise _Unfit("it is not an object")
    name = cast("JsonObject", raw).get("name")
    if not isinstance(name, str) or not name:
        raise _Unfit("it has no name")
    return name


def _input_schema(raw: JsonObject, repairs: list[str]) -> JsonObject:
    schema = raw.get("inputSchema")
    if schema is None:
        repairs.append("it had no input schema: one that takes any object was put in")
        return {"type": "object"}
    if not isinstance(schema, Mapping):
        raise _Unfit("its input schema is not an object")
    known = cast("JsonObject", schema)
    if known.get("type") is not None:
        return known
    repairs.append("the type of its input schema was missing: 'object' was put in")
    return {**known, "type": "object"}


def _description(raw: JsonObject, repairs: list[str]) -> str:
    description = raw.get("description")
    if description is not None and not isinstance(description, str):
        raise _Unfit("its description is not text")
    return _text(description, "description", repairs) or ""


def _annotations(raw: JsonObject, repairs: list[str]) -> dict[str, Any]:
    annotations = dict(_object(raw.get("annotations"), "annotations", repairs) or {})
    if "title" in annotations:
        title = _text(annotations.pop("title"), "title in its annotations", repairs)
        if title is not None:
            annotations["title"] = title
    return annotations


def _icons(value: Json, repairs: list[str]) -> tuple[JsonObject, ...]:
    if value is None:
        return ()
    given = cast("list[Json]", value) if isinstance(value, list) else [None]
    icons = [cast("JsonObject", each) for each in given if _is_icon(each)]
    if len(icons) < len(given):
        repairs.append("icons without an address were left out")
    return tuple(icons)


def _is_icon(value: Json) -> bool:
    return isinstance(value, dict) and isinstance(cast("JsonObject", value).get("src"), str)


def _object(value: Json, what: str, repairs: list[str]) -> JsonObject | None:
    """Return an object; anything else is left out. Many servers send null for a missing member."""
    if value is None or isinstance(value, Mapping):
        return cast("JsonObject | None", value)
    repairs.append(f"its {what} was left out: it was not an object")
    return None


def _text(value: Json, what: str, repairs: list[str]) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str):
        repairs.append(f"its {what} was left out: it was not text")
        return None
    seen = visible(value)
    if seen is not value:
        repairs.append(f"characters that cannot be seen were taken out of its {what}")
    encoded = seen.encode()
    if len(encoded) <= LONGEST_TEXT:
        return seen
    repairs.append(f"its {what} was cut from {len(encoded):,} bytes to {LONGEST_TEXT:,}")
    return encoded[:LONGEST_TEXT].decode(errors="ignore")
