"""Pins: detect changed definitions by a hash of their canonical form, and withhold or report them."""

import logging
import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from time import time
from typing import Any, Literal, cast

import orjson

from toolcrib.interfaces import StoredDefinition
from toolcrib.mcp.meta import GATEWAYS_KEY, gateways_in
from toolcrib.model import Json, JsonObject

# --- Canonical form of a tool definition: removes differences without meaning, such as generated defaults
# ---
#
# Definitions that differ only in those have the same form. Which differences count is decided by position in
# the JSON Schema and by shape, never by a name or text that a server chooses freely.

SCHEMA_FIELDS = ("inputSchema", "outputSchema")
"""Members of a definition that are JSON Schemas; all others are compared unchanged."""

_ONE_SCHEMA = frozenset(
    {
        "additionalItems",
        "additionalProperties",
        "contains",
        "contentSchema",
        "else",
        "if",
        "items",
        "not",
        "propertyNames",
        "then",
        "unevaluatedItems",
        "unevaluatedProperties",
    }
)
_LIST_OF_SCHEMAS = frozenset({"allOf", "anyOf", "items", "oneOf", "prefixItems"})
_SCHEMAS_BY_NAME = frozenset({"$defs", "definitions", "dependentSchemas", "patternProperties", "properties"})
_SET_KEYWORDS = frozenset({"enum", "required", "type"})
"""Keywords with an array value that JSON Schema treats as a set."""
_SETS_BY_NAME = frozenset({"dependencies", "dependentRequired"})

DATE_TIME, UUID, TEMPORARY = "date-time", "uuid", "temporary"
GENERATED = "toolcrib/generated"
"""The only key of the object that replaces a generated default."""

# Digits and punctuation only: no match can contain a prompt injection.
_DATE_TIME = re.compile(
    r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d{1,9})?)?(?:Z|[+-]\d\d:?\d\d)?)?", re.ASCII
)
# Random and time-based versions only; name-based UUIDs are stable.
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[1467][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", re.IGNORECASE)
_TEMPORARY = re.compile(
    r"(?P<folder>/tmp/|/var/tmp/|/(?:private/)?var/folders/[\w+]{2}/[\w+]{1,64}/T/)"
    r"(?P<before>[\w-]*)(?P<made>tmp[a-z0-9_]{8}|tmp\.[A-Za-z0-9]{10})(?P<after>(?:/[\w.-]+)*)",
    re.ASCII,
)
_COMMA_SEPARATED = re.compile(r"[A-Za-z0-9_*.-]{1,64}(?:,[A-Za-z0-9_*.-]{1,64})+", re.ASCII)
"""Comma-separated words, as a program serializes a set; a space or another character makes it prose."""


def canonical_form(definition: JsonObject) -> JsonObject:
    """Return the canonical form, equal for equivalent definitions if serialized with sorted keys."""
    form = {key: _schema(value) if key in SCHEMA_FIELDS else value for key, value in definition.items()}
    if gateways_in(form.get("_meta")):
        # The gateways a tool passed through are a route, which may change without a change of the tool.
        rest = {key: value for key, value in form.pop("_meta").items() if key != GATEWAYS_KEY}
        form = {**form, "_meta": rest} if rest else form
    return form


def _schema(value: Json) -> Json:
    if not isinstance(value, Mapping):
        return value
    schema = cast("JsonObject", value)
    return {key: _member(key, member, schema) for key, member in schema.items()}


def _member(key: str, value: Json, schema: JsonObject) -> Json:
    if key == "default":
        return _default(value, schema)
    if isinstance(value, list):
        entries = cast("list[Json]", value)
        if key in _LIST_OF_SCHEMAS:
            return [_schema(each) for each in entries]
        return _as_set(entries) if key in _SET_KEYWORDS else entries
    if key in _ONE_SCHEMA:
        return _schema(value)
    if key in _SCHEMAS_BY_NAME:
        return _map_values(value, _schema)
    return _map_values(value, _requirement) if key in _SETS_BY_NAME else value


def _map_values(value: Json, convert: Callable[[Json], Json]) -> Json:
    if not isinstance(value, Mapping):
        return value
    return {name: convert(each) for name, each in cast("JsonObject", value).items()}


def _requirement(value: Json) -> Json:
    """Normalize the names a property requires, or, in older drafts, a schema."""
    return _as_set(cast("list[Json]", value)) if isinstance(value, list) else _schema(value)


def _as_set(entries: list[Json]) -> list[Json]:
    """Sort scalar values; arrays with containers stay, as references may point to them by index."""
    if any(isinstance(each, dict | list) for each in entries):
        return entries
    return sorted(entries, key=orjson.dumps)


def _default(value: Json, schema: JsonObject) -> Json:
    if isinstance(value, str):
        return _generated(value)
    if isinstance(value, list) and schema.get("uniqueItems") is True:
        return _as_set(cast("list[Json]", value))
    if isinstance(value, Mapping) and GENERATED in cast("JsonObject", value):
        # A literal default in the form of the placeholder is wrapped, so that it cannot imitate one.
        return {GENERATED: ["literal", cast("Json", value)]}
    return cast("Json", value)


def _generated(text: str) -> Json:
    """Return a placeholder for a default generated at each start; any other text as it is."""
    if _DATE_TIME.fullmatch(text):
        return _placeholder(DATE_TIME)
    if _UUID.fullmatch(text):
        return _placeholder(UUID)
    if found := _TEMPORARY.fullmatch(text):
        parts = found["folder"], found["before"], found["after"]
        # With `..` the path leaves the temporary directory, so it was not generated there.
        return text if ".." in found["after"].split("/") else _placeholder(TEMPORARY, *parts)
    return ",".join(sorted(text.split(","))) if _COMMA_SEPARATED.fullmatch(text) else text


def _placeholder(kind: str, *parts: str) -> dict[str, Any]:
    return {GENERATED: [kind, *parts]}


# --- Detects changed tool definitions by hash, against the first one seen or the one an operator approved
# ---

log = logging.getLogger(__name__)

MAX_PINS = 10_000
"""Definitions remembered, for all sources together."""
MAX_PINNED_BYTES = 256 * 1024
"""Bytes of canonical JSON up to which a definition is remembered."""

PinMode = Literal["strict", "notify", "off"]
"""Handling of a changed tool: hidden until approved, served and reported, or served without a check."""

PersistPins = Callable[[Sequence[StoredDefinition], Collection[str]], None]
"""Callback that persists pins: first the new or changed definitions, then the names to delete."""


@dataclass(frozen=True, slots=True)
class PinChange:
    """A tool with a definition that differs from the trusted one."""

    name: str
    trusted: str
    """Hash of the approved definition, else of the first one seen; empty if none is stored."""
    seal: str
    """Hash of the definition offered now, which an operator can approve; empty if it cannot be hashed."""
    mode: PinMode


def seal(definition: JsonObject) -> str:
    """Return the SHA-256 of a definition's canonical form; empty if it is too large or not JSON."""
    try:
        return legacy_seal(canonical_form(definition))
    except TypeError:
        return ""


def legacy_seal(definition: JsonObject) -> str:
    """Return the hash that earlier versions computed: of the definition with sorted keys, not normalized.

    Stored and approved hashes of those versions have this form. A match proves an identical definition.
    """
    try:
        text = orjson.dumps(definition, option=orjson.OPT_SORT_KEYS)
    except TypeError:
        return ""
    return sha256(text).hexdigest() if len(text) <= MAX_PINNED_BYTES else ""


class Pins:
    """The definition of every tool when it was first seen, the approved hashes, and the mode of each source.

    Tools that a source no longer offers stay pinned, so that removing and re-adding one cannot reset its pin.
    """

    def __init__(
        self,
        known: Sequence[StoredDefinition],
        sources: Sequence[str],
        persist: PersistPins,
        *,
        max_pins: int = MAX_PINS,
    ) -> None:
        self._pins = {each.name: each for each in known}
        self._seal_cache: dict[str, Mapping[str, tuple[JsonObject, str]]] = {}
        """Last definition object and its hash, by source and tool; the same object is not rehashed."""
        self._persist, self._max_pins = persist, max_pins
        self._approved: Mapping[str, str] = {}
        self._modes: Mapping[str, PinMode] = {}
        self._left_out: dict[str, int] = {}
        self.changes: Counter[str] = Counter()
        """By source: number of times a definition differed from the one seen before it."""
        # Another config may share the store: sources missing from this one are only evicted when space is
        # needed.
        if len(self._pins) > max_pins // 2:
            self.arrange(sources)

    def arrange(self, sources: Sequence[str]) -> None:
        """Delete the pins of sources that are not listed here."""
        listed = frozenset(sources)
        removed = [name for name in self._pins if name.partition(":")[0] not in listed]
        for name in removed:
            del self._pins[name]
        self._seal_cache = {source: each for source, each in self._seal_cache.items() if source in listed}
        if removed:
            self._persist((), removed)

    def approve(self, approved: Mapping[str, str], modes: Mapping[str, PinMode]) -> None:
        """Set the hashes an operator approved, by tool, and the mode of each source."""
        self._approved, self._modes = dict(approved), dict(modes)

    def look(self, source: str, definitions: Mapping[str, JsonObject]) -> dict[str, PinChange]:
        """Store the definitions a source offers now, and return the tools that changed."""
        seals = self._seals(source, definitions)
        self._remember(source, definitions, seals)
        mode = self._modes.get(source, "notify")
        if mode == "off":
            return {}
        found = [self._change_of(name, definitions[name], seals[name], mode) for name in definitions]
        return {change.name: change for change in found if change is not None}

    def _seals(self, source: str, definitions: Mapping[str, JsonObject]) -> Mapping[str, str]:
        known, cached = self._seal_cache.get(source, {}), dict[str, tuple[JsonObject, str]]()
        for name, definition in definitions.items():
            before = known.get(name)
            if before is None or before[0] is not definition:
                before = definition, seal(definition)
            cached[name] = before
        self._seal_cache[source] = cached
        return {name: current for name, (_, current) in cached.items()}

    def _remember(self, source: str, definitions: Mapping[str, JsonObject], seals: Mapping[str, str]) -> None:
        now, fresh, left_out = time(), list[StoredDefinition](), 0
        free_slots = self._free_slots(source)
        for name, definition in definitions.items():
            pin, current = self._pins.get(name), seals[name]
            if not current or (pin is None and len(fresh) >= free_slots):
                left_out += 1
            elif pin is None:
                pin = StoredDefinition(
                    name=name, definition=definition, seal=current, trusted=current, seen=now
                )
                fresh.append(pin)
            elif pin.seal != current or not pin.definition:
                fresh.append(self._updated_pin(source, pin, definition, current, now))
        fresh += self._emptied_pins(source, definitions)
        self._pins.update({each.name: each for each in fresh})
        if fresh:
            self._persist(fresh, ())
        if left_out > self._left_out.get(source, 0):
            log.warning("%s: %d definitions are too large or too many to be remembered", source, left_out)
        self._left_out[source] = left_out

    def _updated_pin(
        self, source: str, pin: StoredDefinition, definition: JsonObject, current: str, now: float
    ) -> StoredDefinition:
        """Return the updated pin of a tool that changed since it was last seen, or that was absent."""
        pin = _rehashed(pin)
        if pin.seal == current and pin.definition:
            return pin
        self.changes[source] += pin.seal != current
        return replace(pin, definition=definition, seal=current, seen=now)

    def _emptied_pins(self, source: str, definitions: Mapping[str, JsonObject]) -> list[StoredDefinition]:
        """Drop absent definitions but not their hashes, so that renaming tools cannot fill the store."""
        return [
            replace(_rehashed(pin), definition={})
            for name, pin in self._pins.items()
            if pin.definition and name not in definitions and name.startswith(f"{source}:")
        ]

    def _free_slots(self, source: str) -> int:
        """Return how many more definitions a source may store: at most as many as it leaves for others."""
        own = sum(name.startswith(f"{source}:") for name in self._pins)
        return max(0, (self._max_pins - len(self._pins) - own + 1) // 2)

    def _change_of(self, name: str, definition: JsonObject, current: str, mode: PinMode) -> PinChange | None:
        pin = self._pins.get(name)
        trusted = self._approved.get(name) or ("" if pin is None else pin.trusted)
        if current and (current == trusted or _has_legacy_seal(trusted, definition, current, pin)):
            return None
        # Without a stored hash there is no evidence of a change, and none of trust: only `strict` hides the
        # tool.
        return PinChange(name, trusted, current, mode) if trusted or mode == "strict" else None


def _rehashed(pin: StoredDefinition) -> StoredDefinition:
    """Rehash a pin of an older version with the current algorithm, if its definition is still stored."""
    if not pin.definition or legacy_seal(pin.definition) != pin.seal:
        return pin
    current = seal(pin.definition)
    return replace(pin, seal=current, trusted=current if pin.trusted == pin.seal else pin.trusted)


def _has_legacy_seal(
    trusted: str, definition: JsonObject, current: str, pin: StoredDefinition | None
) -> bool:
    """Return whether a hash by an older version matches this definition, or one with the same meaning.

    The store retains the exact text first seen for a canonical form, so the approved definition is still
    available to compare.
    """
    if not trusted:
        return False
    stored = pin is not None and pin.seal == current and legacy_seal(pin.definition) == trusted
    return stored or legacy_seal(definition) == trusted
