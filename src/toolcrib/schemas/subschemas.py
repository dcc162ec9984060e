"""Subschemas: walk a schema within limits on its size and depth."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, TypeGuard
from urllib.parse import unquote

# --- Error for rejected schemas ---


class InvalidSchema(ValueError):
    """A rejected schema. `path` is a pointer into it, `reason` states the cause and the remedy."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason


# --- Bounds of a JSON value, nesting depth and number of values, measured without recursion ---

MAX_JSON_DEPTH = 64
"""Nesting levels of a request or a response. It must stay within what the serializer can write."""
MAX_JSON_VALUES = 100_000
"""Values in one JSON document."""

_CONTAINERS = (dict, list, tuple)


def measure(value: Any, depth: int = MAX_JSON_DEPTH, nodes: int = MAX_JSON_VALUES) -> tuple[int, int]:
    """Count nesting levels and values; stop at the first bound exceeded, one above it."""
    level: list[Any] = [value] if isinstance(value, _CONTAINERS) else []
    levels, count = 0, 1
    while level and levels <= depth:
        levels += 1
        deeper: list[Any] = []
        for container in level:
            count += len(container)
            if count > nodes:
                return levels, count
            members: Any = container.values() if isinstance(container, dict) else container  # pyright: ignore[reportUnknownVariableType]
            for each in members:
                if isinstance(each, _CONTAINERS):
                    deeper.append(each)  # noqa: PERF401 - a comprehension doubles the time of a small body
        level = deeper
    return levels, count


def too_deep(value: Any, depth: int = MAX_JSON_DEPTH, nodes: int = MAX_JSON_VALUES) -> str | None:
    """Describe which bound a value exceeds; None if it is within both."""
    levels, count = measure(value, depth, nodes)
    if count > nodes:
        return f"has more than {nodes:,} values"
    if levels > depth:
        return f"has more than {depth} levels of nesting"
    return None


def has_too_many_values(text: bytes) -> bool:
    """Return whether JSON text certainly has too many values, before a parse that may take a second.

    Punctuation inside strings does not count, so strings are removed. That needs no parser: without escapes,
    every second piece between quotes is a string. Each value has at most two strings, its key and its value,
    so the number of pieces is bounded too.
    """
    without_escapes = text.replace(rb"\\", b"").replace(rb"\"", b"")
    if without_escapes.count(b'"') > 4 * MAX_JSON_VALUES:
        return True
    outside = b"".join(without_escapes.split(b'"')[::2])
    return max(outside.count(b","), outside.count(b"{") + outside.count(b"[")) > MAX_JSON_VALUES


# --- Index of all subschemas of a schema, and which others each one applies ---

Schema = dict[str, Any]

_BY_NAME_KEYWORDS = frozenset(
    {"properties", "patternProperties", "dependentSchemas", "dependencies", "$defs", "definitions"}
)
"""Keywords with subschemas by name; the others have one subschema or an array of them."""
_SAME_VALUE_KEYWORDS = frozenset(
    {"allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "dependencies"}
)
"""Keywords that apply a subschema to the same value."""
_NESTED_VALUE_KEYWORDS = frozenset({
    *("properties", "patternProperties", "additionalProperties", "unevaluatedProperties", "propertyNames"),
    *("items", "prefixItems", "additionalItems", "contains", "unevaluatedItems", "contentSchema"),
})  # fmt: skip
"""Keywords that apply a subschema to a part of the value."""
_DEFINITION_KEYWORDS = frozenset({"$defs", "definitions"})
"""Keywords that apply nothing, except through a reference."""
_SUBSCHEMA_KEYWORDS = _SAME_VALUE_KEYWORDS | _NESTED_VALUE_KEYWORDS | _DEFINITION_KEYWORDS
_REFERENCE_KEYWORDS = ("$ref", "$dynamicRef", "$recursiveRef")
_ANCHOR_KEYWORDS = ("$anchor", "$dynamicAnchor")

_ARRAY_INDEX = re.compile(r"[0-9]{1,5}")

_DIALECTS = frozenset({
    "json-schema.org/draft-07/schema",
    "json-schema.org/draft/2019-09/schema",
    "json-schema.org/draft/2020-12/schema",
})  # fmt: skip


@dataclass(slots=True)
class Subschema:
    """A subschema: its path, and the identities of those it applies."""

    path: str
    schema: Schema
    same_value: list[int] = field(default_factory=list[int])
    """Applied to the same value."""
    nested: list[int] = field(default_factory=list[int])
    """Applied to values inside it."""


def index_subschemas(root: Schema) -> dict[int, Subschema]:
    """Index the subschemas of a schema that has no `$id` at its root.

    Raises InvalidSchema for a reference to another document or to a missing target.
    """
    walk = _SchemaWalk(root)
    walk.enter(root, "#")
    walk.run()
    return walk.index


def is_object(value: Any) -> TypeGuard[Schema]:
    """Return whether a JSON value is an object."""
    return isinstance(value, dict)


class _SchemaWalk:
    def __init__(self, root: Schema) -> None:
        self.index: dict[int, Subschema] = {}
        self._root = root
        self._queue: list[tuple[Schema, str]] = []
        self._anchors: dict[str, Schema] = {}
        self._references: list[tuple[Subschema, str, Any]] = []
        self._nested_id: str | None = None

    def enter(self, schema: Schema, path: str) -> None:
        self._queue.append((schema, path))

    def run(self) -> None:
        """Walk the keywords first, so that all anchors are known, then follow the references."""
        self._walk()
        while self._references:
            if self._nested_id:
                raise InvalidSchema(self._nested_id, "a nested $id changes the base of references; remove it")
            subschema, keyword, reference = self._references.pop()
            target = self._resolve(f"{subschema.path}/{keyword}", reference)
            if is_object(target):
                subschema.same_value.append(id(target))
                self.enter(target, reference)
                self._walk()

    def _walk(self) -> None:
        while self._queue:
            schema, path = self._queue.pop()
            if id(schema) not in self.index:
                subschema = self.index[id(schema)] = Subschema(path, schema)
                self._add_subschema(subschema)

    def _add_subschema(self, subschema: Subschema) -> None:
        schema, path = subschema.schema, subschema.path
        for keyword, value in schema.items():
            for child, step in _subschemas(keyword, value):
                self.enter(child, f"{path}/{keyword}{step}")
                if keyword in _SAME_VALUE_KEYWORDS:
                    subschema.same_value.append(id(child))
                elif keyword in _NESTED_VALUE_KEYWORDS:
                    subschema.nested.append(id(child))
        self._references += [
            (subschema, keyword, schema[keyword]) for keyword in _REFERENCE_KEYWORDS if keyword in schema
        ]
        for keyword in _ANCHOR_KEYWORDS:
            if keyword in schema:
                self._add_anchor(f"{path}/{keyword}", schema[keyword], schema)
        self._check_identity(subschema)

    def _check_identity(self, subschema: Subschema) -> None:
        dialect, identity = subschema.schema.get("$schema"), subschema.schema.get("$id")
        if dialect is not None:
            check_dialect(f"{subschema.path}/$schema", dialect)
        if not isinstance(identity, str):
            return
        if identity.startswith("#"):  # the draft-07 form of an anchor
            self._add_anchor(f"{subschema.path}/$id", identity[1:], subschema.schema)
        else:
            self._nested_id = f"{subschema.path}/$id"

    def _add_anchor(self, path: str, name: Any, schema: Schema) -> None:
        if not isinstance(name, str) or self._anchors.setdefault(name, schema) is not schema:
            raise InvalidSchema(path, "an anchor must have a unique name")

    def _resolve(self, path: str, reference: Any) -> Any:
        if not isinstance(reference, str) or not reference.startswith("#"):
            raise InvalidSchema(path, "a reference must stay inside the schema and start with '#'")
        pointer = unquote(reference[1:])
        if pointer and not pointer.startswith("/"):
            target = self._anchors.get(pointer)
        else:
            target = self._resolve_pointer(path, pointer)
        if not isinstance(target, (dict, bool)):
            raise InvalidSchema(path, f"{reference[:60]!r} has no target; it must point to a schema")
        return target  # pyright: ignore[reportUnknownVariableType]

    def _resolve_pointer(self, path: str, pointer: str) -> Any:
        current: Any = self._root
        for step in pointer.split("/")[1:]:
            if is_object(current) and isinstance(current.get("$id"), str):
                raise InvalidSchema(path, "it passes a nested $id, which changes the base of references")
            current = _child_at(current, step.replace("~1", "/").replace("~0", "~"))
        return current


def check_dialect(path: str, dialect: Any) -> None:
    """Raise InvalidSchema for a `$schema` other than the three supported ones."""
    normalized = str(dialect).removesuffix("#").removeprefix("http://").removeprefix("https://")
    if normalized not in _DIALECTS:
        raise InvalidSchema(path, "the dialect is unknown; use draft-07, 2019-09 or 2020-12")


def _subschemas(keyword: str, value: Any) -> Iterator[tuple[Schema, str]]:
    """Yield the subschemas of a keyword that are objects; other shapes are left to the metaschema."""
    if keyword not in _SUBSCHEMA_KEYWORDS:
        return
    if isinstance(value, list):
        yield from ((each, f"/{position}") for position, each in enumerate(value) if is_object(each))  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    elif is_object(value) and keyword in _BY_NAME_KEYWORDS:
        yield from ((each, f"/{name}") for name, each in value.items() if is_object(each))
    elif is_object(value):
        yield value, ""


def _child_at(current: Any, step: str) -> Any:
    if is_object(current):
        return current.get(step)
    if isinstance(current, list) and _ARRAY_INDEX.fullmatch(step) and int(step) < len(current):  # pyright: ignore[reportUnknownArgumentType]
        return current[int(step)]  # pyright: ignore[reportUnknownVariableType]
    return None
