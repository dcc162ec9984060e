"""Validates definitions from MCP servers: tools, resources and prompts, without invisible characters."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, cast

import orjson

from toolcrib.catalog import PSEUDO_TOOL_NAMES
from toolcrib.errors import Refused
from toolcrib.interfaces import Offer, Withheld
from toolcrib.mcp.headers import InvalidMirroredHeader, mirrors_of
from toolcrib.mcp.meta import GATEWAYS_KEY, MAX_GATEWAYS, gateways_in
from toolcrib.model import Json, JsonObject, Speech, Tool
from toolcrib.names import canonical, invisible_character
from toolcrib.sources.mcp.connection import McpSettings, ToolSettings

# --- Strips invisible Unicode characters from a server's text: only a model would read them ---

# Controls except tab and line ends, bidi, zero-width, fillers, variation selectors (except the emoji one),
# lone surrogates, and tag characters, which can hide a whole second text.
_INVISIBLE = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ud800-\udfff\ufe00-\ufe0e\ufeff\uffa0\ufff9-\ufffb"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)


def visible(text: str) -> str:
    """Return the text without invisible characters; the same object if there are none."""
    return _INVISIBLE.sub("", text) if _INVISIBLE.search(text) else text


# --- Loop detection between gateways: drops entries that lead back to this one, records the others' path ---


class OwnGateway(ConnectionError):
    """The server at the other end is this gateway itself."""

    def __init__(self, server: str) -> None:
        super().__init__(
            f"{server} is this gateway itself, so all of its tools are here already; "
            "give the address of another server, or take it out"
        )


def leads_back(entry: JsonObject, own: str) -> bool:
    """Return whether an entry came through this gateway, or through too many gateways."""
    path = gateways_in(entry.get("_meta"))
    return (own != "" and own in path) or len(path) >= MAX_GATEWAYS


def with_gateway(gateway: str, meta: JsonObject) -> JsonObject:
    """Return `_meta` with the listing gateway in front of the gateways already on the path."""
    return {**meta, GATEWAYS_KEY: [gateway, *gateways_in(meta)]} if gateway else meta


def forwarded_entries(entries: Sequence[JsonObject], own: str, gateway: str) -> tuple[JsonObject, ...]:
    """Return the entries that do not lead back to this gateway, each with the path it came by."""
    others = [entry for entry in entries if not leads_back(entry, own)]
    if not gateway:
        return tuple(others)
    return tuple({**entry, "_meta": with_gateway(gateway, entry.get("_meta", {}))} for entry in others)


# --- Validates each tool that a server lists on its own: accepted, repaired if that is safe, or withheld ---

MAX_DEFINITION_BYTES = 64 << 10
"""Maximum bytes of one definition."""
MAX_TEXT_BYTES = 4 << 10
"""Maximum bytes of a description or a title."""

_TOO_LARGE = f"its definition takes {{:,}} bytes, at most {MAX_DEFINITION_BYTES:,} are allowed"
_DEFAULT_VERSION = "1.0.0"
"""Version of tools if the server declares none."""
_DEFAULT_SETTINGS = ToolSettings()


def offer(
    settings: McpSettings, raw: Sequence[Json], *, version: str = "", modern: bool = False, gateway: str = ""
) -> Offer:
    """Validate what a server lists, and return it as an offer.

    `version`: the server's own; `modern`: whether it uses the modern era; `gateway`: its id, if it is one.
    """
    validator = _ToolListValidator(settings, version or _DEFAULT_VERSION, modern=modern, gateway=gateway)
    for position, definition in enumerate(raw, 1):
        validator.validate(position, definition)
    return Offer(
        tools=validator.tools,
        withheld=validator.withheld,
        repaired=validator.repaired,
        definitions=validator.definitions,
    )


class _InvalidTool(Exception):
    """A tool that cannot be offered; the message is the reason."""


class _ToolListValidator:
    """The results for a server's list so far."""

    def __init__(self, settings: McpSettings, version: str, *, modern: bool, gateway: str) -> None:
        self._settings, self._version, self._modern = settings, version, modern
        self._gateway = gateway
        self.tools: list[Tool] = []
        self.withheld: list[Withheld] = []
        self.repaired: dict[str, tuple[str, ...]] = {}
        self.definitions: dict[str, JsonObject] = {}

    def validate(self, position: int, raw: Json) -> None:
        """Validate one more definition. Without a usable name, its position in the list identifies it."""
        source, allowed = self._settings.id, self._settings.tools
        name = f"{source}:{position}"
        try:
            local = _name(raw)
            if allowed and local not in allowed:
                return
            name = canonical(source, local)
            repairs: list[str] = []
            tool = self._tool(name, raw, repairs)
        except (_InvalidTool, InvalidMirroredHeader, Refused) as error:
            self.withheld.append(Withheld(name, source, str(error)))
            return
        self.tools.append(tool)
        self.definitions[name] = raw
        if repairs:
            self.repaired[name] = tuple(repairs)

    def _tool(self, name: str, raw: JsonObject, repairs: list[str]) -> Tool:
        if name in self.definitions:
            raise _InvalidTool("the server lists another tool of that name before it")
        if raw["name"] in PSEUDO_TOOL_NAMES:
            raise _InvalidTool("its name is that of the way to the server's resources or prompts")
        if leads_back(raw, self._settings.gateway):
            raise _InvalidTool("it leads back to this gateway, which serves it already")
        size = len(orjson.dumps(raw))
        if size > MAX_DEFINITION_BYTES:
            raise _InvalidTool(_TOO_LARGE.format(size))
        schema = _input_schema(raw, repairs)
        if self._modern:
            mirrors_of(schema)
        annotations = _annotations(raw, repairs)
        title = _visible_text(raw.get("title"), "title", repairs) or annotations.get("title")
        overrides = self._settings.tools.get(raw["name"], _DEFAULT_SETTINGS)
        return Tool(
            name=name,
            source=self._settings.id,
            family="mcp",
            title=title or None,
            description=overrides.description or _description(raw, repairs),
            input_schema=schema,
            output_schema=_object(raw.get("outputSchema"), "output schema", repairs),
            version=self._version,
            speech=Speech(template=overrides.speech_template, field=overrides.speech_field),
            slow=overrides.slow or self._settings.slow,
            timeout=overrides.timeout or self._settings.timeout,
            annotations=annotations,
            icons=_icons(raw.get("icons"), repairs),
            meta=with_gateway(self._gateway, _object(raw.get("_meta"), "_meta", repairs) or {}),
            expose_as=overrides.expose_as,
        )


def _name(raw: Json) -> str:
    if not isinstance(raw, Mapping):
        raise _InvalidTool("it is not an object")
    name = cast("JsonObject", raw).get("name")
    if not isinstance(name, str) or not name:
        raise _InvalidTool("it has no name")
    return name


def _input_schema(raw: JsonObject, repairs: list[str]) -> JsonObject:
    schema = raw.get("inputSchema")
    if schema is None:
        repairs.append("it had no input schema: one that takes any object was put in")
        return {"type": "object"}
    if not isinstance(schema, Mapping):
        raise _InvalidTool("its input schema is not an object")
    keywords = cast("JsonObject", schema)
    if keywords.get("type") is not None:
        return keywords
    repairs.append("the type of its input schema was missing: 'object' was put in")
    return {**keywords, "type": "object"}


def _description(raw: JsonObject, repairs: list[str]) -> str:
    description = raw.get("description")
    if description is not None and not isinstance(description, str):
        raise _InvalidTool("its description is not text")
    return _visible_text(description, "description", repairs) or ""


def _annotations(raw: JsonObject, repairs: list[str]) -> dict[str, Any]:
    annotations = dict(_object(raw.get("annotations"), "annotations", repairs) or {})
    if "title" in annotations:
        title = _visible_text(annotations.pop("title"), "title in its annotations", repairs)
        if title is not None:
            annotations["title"] = title
    return annotations


def _icons(value: Json, repairs: list[str]) -> tuple[JsonObject, ...]:
    if value is None:
        return ()
    entries = cast("list[Json]", value) if isinstance(value, list) else [None]
    icons = [cast("JsonObject", each) for each in entries if _is_tool_icon(each)]
    if len(icons) < len(entries):
        repairs.append("icons without an address were left out")
    return tuple(icons)


def _is_tool_icon(value: Json) -> bool:
    return isinstance(value, dict) and isinstance(cast("JsonObject", value).get("src"), str)


def _object(value: Json, what: str, repairs: list[str]) -> JsonObject | None:
    """Return an object; anything else is left out. Many servers send null for a missing member."""
    if value is None or isinstance(value, Mapping):
        return cast("JsonObject | None", value)
    repairs.append(f"its {what} was left out: it was not an object")
    return None


def _visible_text(value: Json, what: str, repairs: list[str]) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str):
        repairs.append(f"its {what} was left out: it was not text")
        return None
    text = visible(value)
    if text is not value:
        repairs.append(f"characters that cannot be seen were taken out of its {what}")
    encoded = text.encode()
    if len(encoded) <= MAX_TEXT_BYTES:
        return text
    repairs.append(f"its {what} was cut from {len(encoded):,} bytes to {MAX_TEXT_BYTES:,}")
    return encoded[:MAX_TEXT_BYTES].decode(errors="ignore")


# --- Validates each resource, template and prompt that a server lists: accepted, repaired or left out ---

MAX_URI_CHARS = 2_048
"""Maximum characters of a URI or a URI template."""
MAX_NAME_BYTES = 256
"""Maximum bytes of a resource's name; a longer one is cut."""

_ROLES = frozenset({"user", "assistant"})


class _InvalidEntry(Exception):
    """An entry that cannot be offered; the message is the reason."""


def resources(raw: Sequence[Json]) -> tuple[list[JsonObject], list[str]]:
    """Return the valid resources, and the reasons why the others are not."""
    return _validated(raw, "uri", _address)


def templates(raw: Sequence[Json]) -> tuple[list[JsonObject], list[str]]:
    """Return the valid templates, and the reasons why the others are not."""
    return _validated(raw, "uriTemplate", _address)


def prompts(source: str, raw: Sequence[Json]) -> tuple[list[JsonObject], list[str]]:
    """Return the valid prompts of a source, and the reasons why the others are not."""

    def name(identifier: str) -> None:
        try:
            canonical(source, identifier)
        except Refused as error:
            raise _InvalidEntry(str(error)) from None

    return _validated(raw, "name", name)


def _validated(
    raw: Sequence[Json], key: str, check: Callable[[str], None]
) -> tuple[list[JsonObject], list[str]]:
    valid: dict[str, JsonObject] = {}
    invalid: list[str] = []
    for position, each in enumerate(raw, 1):
        try:
            identifier = _identifier(each, key)
            check(identifier)
        except _InvalidEntry as error:
            invalid.append(f"number {position}: {error}")
            continue
        if identifier in valid:
            invalid.append(f"number {position}: {identifier[:100]!r} is listed before")
        else:
            valid[identifier] = _repaired(cast("JsonObject", each), key, identifier)
    return list(valid.values()), invalid


def _identifier(raw: Json, key: str) -> str:
    if not isinstance(raw, dict):
        raise _InvalidEntry("it is not an object")
    identifier = cast("JsonObject", raw).get(key)
    if not isinstance(identifier, str) or not identifier:
        raise _InvalidEntry(f"it has no {key}")
    size = len(orjson.dumps(raw))
    if size > MAX_DEFINITION_BYTES:
        raise _InvalidEntry(_TOO_LARGE.format(size))
    return identifier


def _address(uri: str) -> None:
    if len(uri) > MAX_URI_CHARS:
        raise _InvalidEntry(f"its address has {len(uri):,} characters, at most {MAX_URI_CHARS:,} are allowed")
    character = invisible_character(uri)
    if character is not None or uri != uri.strip():
        what = character or "a space at its edge"
        raise _InvalidEntry(f"its address holds a character that cannot be seen ({what})")


def _repaired(raw: JsonObject, key: str, identifier: str) -> JsonObject:
    """Drop members that violate the protocol: one invalid member can make a client reject the whole list."""
    members = _valid_members(raw, _MEMBER_CHECKS)
    name = raw.get("name")
    if key != "name":
        members["name"] = (_cut_text(name, MAX_NAME_BYTES) if isinstance(name, str) else "") or identifier
    if "arguments" in members:
        members["arguments"] = [_valid_members(each, _ARGUMENT_CHECKS) for each in members["arguments"]]
    return members


def _valid_members(raw: JsonObject, fields: "_MemberChecks") -> dict[str, Any]:
    members = {key: value for key, value in raw.items() if key not in fields or fields[key](value)}
    return {**members, **{key: _cut_text(members[key]) for key in ("title", "description") if key in members}}


def _cut_text(text: str, max_bytes: int = MAX_TEXT_BYTES) -> str:
    return visible(text).encode()[:max_bytes].decode(errors="ignore")


def _of_type(expected: type) -> Callable[[Json], bool]:
    return lambda value: type(value) is expected


_is_text, _is_flag, _is_object = map(_of_type, (str, bool, dict))


def _is_size(value: Json) -> bool:
    return type(value) is int and value >= 0


def _is_annotations(value: Json) -> bool:
    if type(value) is not dict:
        return False
    annotations = cast("JsonObject", value)
    priority, audience = annotations.get("priority", 0), annotations.get("audience", [])
    if type(priority) not in (int, float) or not 0 <= priority <= 1 or type(audience) is not list:
        return False
    known = all(type(each) is str and each in _ROLES for each in cast("list[Any]", audience))
    return known and _is_text(annotations.get("lastModified", ""))


def _is_icons(value: Json) -> bool:
    return all(map(_is_resource_icon, _entries(value)))


def _is_resource_icon(icon: JsonObject) -> bool:
    if not _is_text(icon.get("src")) or not _is_text(icon.get("mimeType", "")):
        return False
    sizes = icon.get("sizes", [])
    valid_sizes = type(sizes) is list and all(map(_is_text, cast("list[Any]", sizes)))
    return valid_sizes and icon.get("theme", "light") in ("light", "dark")


def _is_arguments(value: Json) -> bool:
    return type(value) is list and all(type(each.get("name")) is str for each in _entries(value))


def _entries(value: Json) -> Iterable[JsonObject]:
    """Return the objects of a list; an empty object replaces anything else, and so fails the check."""
    entries = cast("list[Any]", value) if type(value) is list else [None]
    return [cast("JsonObject", each) if type(each) is dict else {} for each in entries]


_MemberChecks = Mapping[str, Callable[[Json], bool]]
_ARGUMENT_CHECKS: _MemberChecks = {"title": _is_text, "description": _is_text, "required": _is_flag}
_MEMBER_CHECKS: _MemberChecks = {
    "title": _is_text,
    "description": _is_text,
    "mimeType": _is_text,
    "size": _is_size,
    "annotations": _is_annotations,
    "icons": _is_icons,
    "arguments": _is_arguments,
    "_meta": _is_object,
}
"""Checks that a member must pass to be forwarded; members without a check always are."""
