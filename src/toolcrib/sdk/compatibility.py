"""Compatibility of two JSON Schemas: finds every change, and grades it as wider, narrower or other."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from json import dumps
from typing import Any, Literal, cast

from toolcrib.model import Json, JsonObject
from toolcrib.schemas import InvalidSchema, compile_schema

Grade = Literal["wider", "narrower", "other"]
"""Accepts all earlier values and more; rejects some earlier values; rejects all earlier values."""
ABSENT = "absent"

_ALL_TYPES = frozenset({"null", "boolean", "number", "string", "array", "object"})
_LOWER_BOUNDS = ("minLength", "minItems", "minProperties", "minContains", "minimum", "exclusiveMinimum")
_UPPER_BOUNDS = ("maxLength", "maxItems", "maxProperties", "maxContains", "maximum", "exclusiveMaximum")
_UNANALYSED_KEYWORDS = (
    "pattern",
    "format",
    "multipleOf",
    "uniqueItems",
    "prefixItems",
    "contains",
    "patternProperties",
    "propertyNames",
    "dependentRequired",
    "dependentSchemas",
    "unevaluatedProperties",
    "unevaluatedItems",
    "allOf",
    "not",
    "if",
    "then",
    "else",
)
"""Keywords that are not analysed: a new or changed one counts as narrower."""
_MAX_DEPTH = 32


@dataclass(frozen=True, slots=True)
class SchemaChange:
    """One difference between two versions of a schema, at a dotted path."""

    grade: Grade
    path: str
    keyword: str
    before: Json
    after: Json

    def reversed(self) -> "SchemaChange":
        """Return the same difference with before and after exchanged."""
        return replace(self, before=self.after, after=self.before)

    def __str__(self) -> str:
        return f"{self.path}: {self.keyword} is {_excerpt(self.after)}, was {_excerpt(self.before)}"


def input_changes(before: JsonObject, after: JsonObject, *, path: str = "params") -> tuple[SchemaChange, ...]:
    """Compare input schemas: `after` must accept every value that `before` accepted.

    A new optional field is not narrower, even if any value was accepted under its name before.
    """
    return tuple(_Comparison(before, after, open_ended=False).compare(before, after, path))


def output_changes(before: JsonObject, after: JsonObject, *, path: str = "data") -> tuple[SchemaChange, ...]:
    """Compare output schemas: every value that `after` allows must be valid for `before`."""
    changes = _Comparison(after, before, open_ended=True).compare(after, before, path)
    return tuple(each.reversed() for each in changes)


class _Comparison:
    """Recursive comparison of two schemas, each with its own `$defs`."""

    def __init__(self, before: JsonObject, after: JsonObject, *, open_ended: bool) -> None:
        self._before, self._after = before, after
        self._open_ended = open_ended
        """Whether a field that `after` neither names nor forbids counts as accepted."""
        self._compared: dict[tuple[str, str], tuple[SchemaChange, ...]] = {}

    def compare(self, before: Json, after: Json, path: str, depth: int = 0) -> tuple[SchemaChange, ...]:
        """Compare two schemas; a pair already under comparison (recursion) counts as equal."""
        if depth > _MAX_DEPTH:
            return ()
        if not (_reference(before) or _reference(after)):
            return tuple(self._resolved_changes(before, after, path, depth))
        pair = (dumps(before, sort_keys=True), dumps(after, sort_keys=True))
        if pair not in self._compared:
            self._compared[pair] = ()
            self._compared[pair] = tuple(self._resolved_changes(before, after, path, depth))
        return self._compared[pair]

    def _resolved_changes(self, before: Json, after: Json, path: str, depth: int) -> Iterator[SchemaChange]:
        old, new = _resolve(before, self._before), _resolve(after, self._after)
        if old is False or (old in (True, {}) and new in (True, {})):
            return
        if new in (True, {}):
            yield SchemaChange("wider", path, "schema", "given", ABSENT)
        elif new is False:
            yield SchemaChange("other", path, "schema", "given", "nothing")
        else:
            yield from self._schema_changes(_mapping(old), _mapping(new), path, depth)

    def _schema_changes(
        self, old: JsonObject, new: JsonObject, path: str, depth: int
    ) -> Iterator[SchemaChange]:
        values = _enum_values(old)
        if values is not None:
            accepted = [each for each in values if _accepts(old, self._before, each)]
            yield from self._enum_changes(accepted, new, path)
            return
        olds, news = _alternatives(old), _alternatives(new)
        if olds[0] is old and news[0] is new:
            yield from self._type_changes(old, new, path, depth)
        else:
            yield from self._union_changes(olds, news, path, depth)
        if ("default" in old or "default" in new) and old.get("default") != new.get("default"):
            yield _keyword_change("wider", path, "default", old, new)

    def _enum_changes(self, earlier: list[Json], new: JsonObject, path: str) -> Iterator[SchemaChange]:
        """Compare an enumeration: each earlier value is validated against the new schema."""
        accepted = [each for each in earlier if _accepts(new, self._after, each)]
        others = _enum_values(new)
        if len(accepted) < len(earlier):
            grade: Grade = "narrower" if accepted else "other"
        elif others is None or len(others) > len(earlier):
            grade = "wider"
        else:
            return
        yield SchemaChange(grade, path, "enum", earlier, others or ABSENT)

    def _union_changes(
        self, olds: list[JsonObject], news: list[JsonObject], path: str, depth: int
    ) -> Iterator[SchemaChange]:
        """Compare unions: each earlier alternative needs a new one that accepts all of it."""
        matched: set[int] = set()
        unmatched: list[tuple[SchemaChange, ...]] = []
        for old in olds:
            tries = [self.compare(old, new, path, depth + 1) for new in news]
            accepting = [index for index, changes in enumerate(tries) if not _is_breaking(changes)]
            matched.update(accepting)
            if accepting:
                yield from min((tries[index] for index in accepting), key=len)
            else:
                unmatched.append(min(tries, key=lambda changes: (_is_other(changes), len(changes))))
        yield from (each for changes in unmatched if not _is_other(changes) for each in changes)
        removed = [changes for changes in unmatched if _is_other(changes)]
        if removed:
            grade: Grade = "other" if len(removed) == len(olds) else "narrower"
            yield SchemaChange(grade, path, "type", _type_names(olds), _type_names(news))
        elif not unmatched and len(matched) < len(news):
            yield SchemaChange("wider", path, "type", _type_names(olds), _type_names(news))

    def _type_changes(
        self, old: JsonObject, new: JsonObject, path: str, depth: int
    ) -> Iterator[SchemaChange]:
        lost = _type_grade(old, new)
        if lost is not None:
            yield SchemaChange(lost, path, "type", _type_names([old]), _type_names([new]))
        if lost != "other":
            yield from _keyword_changes(old, new, path)
            yield from self._property_changes(old, new, path, depth)
            yield from self.compare(old.get("items", True), new.get("items", True), f"{path}[]", depth + 1)

    def _property_changes(
        self, old: JsonObject, new: JsonObject, path: str, depth: int
    ) -> Iterator[SchemaChange]:
        before, after = _mapping(old.get("properties")), _mapping(new.get("properties"))
        yield from _required_changes(old, new, path)
        for name in sorted(before.keys() & after.keys()):
            yield from self.compare(before[name], after[name], f"{path}.{name}", depth + 1)
        for name in sorted(after.keys() - before.keys()):
            yield SchemaChange("wider", f"{path}.{name}", "field", ABSENT, "present")
        others = new.get("additionalProperties", True)
        for name in sorted(before.keys() - after.keys()):
            still_accepted = self._open_ended and not _is_breaking(
                self.compare(before[name], others, f"{path}.{name}", depth + 1)
            )
            grade: Grade = "wider" if still_accepted else "narrower"
            yield SchemaChange(grade, f"{path}.{name}", "field", "present", ABSENT)
        yield from self._additional_changes(old.get("additionalProperties", True), others, path, depth)

    def _additional_changes(self, old: Json, new: Json, path: str, depth: int) -> Iterator[SchemaChange]:
        """Compare `additionalProperties`."""
        if isinstance(old, bool) and isinstance(new, bool):
            if old is not new:
                grade: Grade = "wider" if new else "narrower"
                yield SchemaChange(grade, path, "additionalProperties", old, new)
        elif old is False:
            yield SchemaChange("wider", path, "additionalProperties", old, "given")
        elif new is False:
            yield SchemaChange("narrower", path, "additionalProperties", "given", new)
        else:
            yield from self.compare(old, new, f"{path}.*", depth + 1)


def _accepts(schema: JsonObject, root: JsonObject, value: Json) -> bool:
    definitions = {key: root[key] for key in ("$defs", "definitions") if key in root}
    try:
        return compile_schema({**definitions, **schema}).ok(value)
    except InvalidSchema:
        return False


def _required_changes(old: JsonObject, new: JsonObject, path: str) -> Iterator[SchemaChange]:
    before, after = set(old.get("required", ())), set(new.get("required", ()))
    for name in sorted(after - before):
        yield SchemaChange("narrower", f"{path}.{name}", "required", False, True)
    for name in sorted(before - after):
        yield SchemaChange("wider", f"{path}.{name}", "required", True, False)


def _keyword_changes(old: JsonObject, new: JsonObject, path: str) -> Iterator[SchemaChange]:
    if _enum_values(new) is not None:
        yield _keyword_change("narrower", path, "enum" if "enum" in new else "const", old, new)
    for keyword, sign in (*((each, 1) for each in _LOWER_BOUNDS), *((each, -1) for each in _UPPER_BOUNDS)):
        if old.get(keyword) != new.get(keyword):
            stricter = keyword in new and (keyword not in old or sign * (new[keyword] - old[keyword]) > 0)
            yield _keyword_change("narrower" if stricter else "wider", path, keyword, old, new)
    for keyword in _UNANALYSED_KEYWORDS:
        if old.get(keyword) != new.get(keyword):
            removed = not new.get(keyword)
            yield _keyword_change("wider" if removed else "narrower", path, keyword, old, new)


def _type_grade(old: JsonObject, new: JsonObject) -> Grade | None:
    before, after = _types(old), _types(new)
    if before == after:
        return None
    if "number" in after:
        after = after | {"integer"}
    if "number" in before and "integer" in after and "number" not in after:
        return "narrower"
    if before <= after:
        return "wider"
    return "narrower" if before & after else "other"


def _types(schema: JsonObject) -> frozenset[str]:
    declared = schema.get("type")
    if declared is None:
        return _ALL_TYPES
    return frozenset((declared,) if isinstance(declared, str) else cast("list[str]", declared))


def _enum_values(schema: JsonObject) -> list[Json] | None:
    if "const" in schema:
        return [schema["const"]]
    return list(schema["enum"]) if "enum" in schema else None


def _alternatives(schema: JsonObject) -> list[JsonObject]:
    """Split a union into its alternatives; sibling keywords apply to each of them."""
    for keyword in ("anyOf", "oneOf"):
        if keyword in schema:
            rest = {key: value for key, value in schema.items() if key not in (keyword, "default")}
            parts = cast("list[Json]", schema[keyword])
            return [{**rest, **_mapping(each)} for each in parts]
    types = schema.get("type")
    if isinstance(types, list):
        return [{**schema, "type": each} for each in cast("list[str]", types)]
    return [schema]


def _resolve(schema: Json, root: JsonObject) -> Json:
    """Resolve a `$ref`, and merge its sibling keywords."""
    for _ in range(_MAX_DEPTH):
        pointer = _reference(schema)
        if not pointer:
            break
        siblings = {key: value for key, value in _mapping(schema).items() if key != "$ref"}
        target: Json = root
        for part in pointer.removeprefix("#").strip("/").split("/"):
            target = _mapping(target).get(part.replace("~1", "/").replace("~0", "~"), {})
        schema = {**_mapping(target), **siblings} if isinstance(target, Mapping) else target
    return schema


def _reference(schema: Json) -> str:
    reference = _mapping(schema).get("$ref")
    return reference if isinstance(reference, str) else ""


def _mapping(value: Json) -> JsonObject:
    return cast("JsonObject", value) if isinstance(value, Mapping) else {}


def _keyword_change(grade: Grade, path: str, keyword: str, old: JsonObject, new: JsonObject) -> SchemaChange:
    before, after = old.get(keyword, ABSENT), new.get(keyword, ABSENT)
    return SchemaChange(grade, path, keyword, before, after)


def _is_breaking(changes: tuple[SchemaChange, ...]) -> bool:
    return any(each.grade != "wider" for each in changes)


def _is_other(changes: tuple[SchemaChange, ...]) -> bool:
    return any(each.grade == "other" for each in changes)


def _type_names(schemas: list[JsonObject]) -> Any:
    """Return the types that these schemas accept, for a message."""
    kinds = [_type_name(each) for each in schemas]
    return kinds[0] if len(kinds) == 1 else list(dict.fromkeys(kinds))


def _type_name(schema: JsonObject) -> str:
    if _reference(schema):
        return _reference(schema).rpartition("/")[2]
    types = _types(schema)
    return "anything" if types == _ALL_TYPES else " or ".join(sorted(types))


def _excerpt(value: Json) -> str:
    text = value if isinstance(value, str) else str(value)
    return text if len(text) <= 60 else f"{text[:59]}…"
