"""Reads the fields of results and parameters, from their JSON Schema or from the data itself."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from typing import Any, NamedTuple, cast

from toolcrib.gateway.field_names import Meaning, entity_of_container, meaning
from toolcrib.model import Json, JsonObject
from toolcrib.model.value import is_secret_name

FIRST_ITEM = 0
"""The step of a path into a list: the first item stands for all."""
MAX_FIELDS = 48
"""Fields of one result that are considered."""
MAX_DEPTH = 4
"""Containers around a field."""
_MAX_NAME_CHARACTERS = 64
"""A longer key is data, not the name of a field."""
_MAX_REFERENCES = 8
"""References (`$ref`) and unions that are followed for one field."""
_PATTERN_PREFIX = re.compile(r"\^([A-Za-z][A-Za-z0-9]*[_:-])(?![?*{])[^|]*$")
_VALUE_PREFIX = re.compile(r"[A-Za-z][A-Za-z0-9]{0,31}[_:-](?=\S{1,64}$)(?!//)")
_TYPE_NAMES: dict[type[Any], str] = {str: "string", int: "integer", float: "number"}

Path = tuple[str | int, ...]
"""Keys, and `FIRST_ITEM` for a list."""


class Field(NamedTuple):
    """A field of a result, or a parameter: where it is, what it means, which values it has."""

    path: Path
    meaning: Meaning
    types: frozenset[str]
    """JSON types of its values, without `null`."""
    prefix: str = ""
    """What all of its values begin with, such as `deck_`; from the pattern, or from the value."""
    format: str = ""
    listed: bool = False
    """Whether it takes a list of such values."""
    closed: bool = False
    """Whether its schema lists its values (`enum`, `const`), so that it identifies nothing."""


def fields_of_schema(schema: JsonObject, noun: str) -> tuple[Field, ...]:
    """Return the fields with single values that a schema describes, the outer ones first."""
    found: list[Field] = []
    level: list[tuple[Path, JsonObject]] = [((), simplified(schema, schema))]
    for _ in range(2 * MAX_DEPTH):
        below = [
            (inner, simplified(each, schema))
            for path, outer in level
            for inner, each in _members(path, outer)
        ]
        for path, each in below:
            field = _field(path, each, noun)
            if field is not None:
                found.append(field)
        level = below[:MAX_FIELDS]
    return tuple(found[:MAX_FIELDS])


def parameters_of(schema: JsonObject, noun: str) -> tuple[tuple[Field, ...], tuple[Field, ...] | None]:
    """Return the optional and the required top-level parameters.

    The latter are None where something that is required is no parameter with single values.
    """
    properties = _object(schema.get("properties"))
    required: Any = schema.get("required") or ()
    optional: list[Field] = []
    needed: dict[str, Field] = {}
    for name, each in properties.items():
        field = _parameter(name, simplified(_object(each), schema), schema, noun)
        if name in required:
            if field is not None:
                needed[name] = field
        elif field is not None:
            optional.append(field)
    complete = len(needed) == len(required)
    return tuple(optional), tuple(needed.values()) if complete else None


def fields_of_data(data: Json, noun: str, prefixes: Mapping[str, Any]) -> tuple[Field, ...]:
    """Return the fields of actual data; of a list only the first item is read."""
    return tuple(
        Field(
            path,
            meaning(_own_name(path), _container(path), noun),
            frozenset((_TYPE_NAMES.get(cast("type[Any]", type(value)), "string"),)),
            prefix=prefix_of_value(value, prefixes),
            format=_format_of_value(value),
        )
        for path, value in walk(data)
    )


def walk(data: Json) -> list[tuple[Path, Json]]:
    """Return path and value of at most `MAX_FIELDS` texts and numbers, the outer ones first."""
    found: list[tuple[Path, Json]] = []
    level: list[tuple[Path, Json]] = [((), data)]
    for _ in range(2 * MAX_DEPTH):
        below: list[tuple[Path, Json]] = []
        for path, container in level:
            for key, value in _members_of(container):
                kind = cast("type[Any]", type(value))
                if kind in _TYPE_NAMES or issubclass(kind, str):
                    found.append(((*path, key), value))
                elif kind is dict or kind is list:
                    below.append(((*path, key), value))
            if len(found) >= MAX_FIELDS:
                return found[:MAX_FIELDS]
        if not below:
            break
        level = below[:MAX_FIELDS]
    return found


def _members_of(container: Json) -> Iterable[tuple[str | int, Json]]:
    """Return the members of an object that have names, or the first item of a list."""
    if type(container) is list:
        items = cast("list[Json]", container)
        return ((FIRST_ITEM, items[0]),) if items else ()
    if type(container) is not dict:
        return ()
    members = cast("dict[Any, Json]", container)
    return [(key, members[key]) for key in islice(members, MAX_FIELDS) if _is_name(key)]


@lru_cache(maxsize=16_384)
def _is_name(key: Any) -> bool:
    """Whether a key is the name of a field whose value may be passed on."""
    return type(key) is str and 0 < len(key) <= _MAX_NAME_CHARACTERS and not is_secret_name(key)


def outline_of(data: Json, prefixes: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the names at the top of a result and one level below, and the kinds of its ids.

    Results of one outline have the same plans. A deeper difference is not noticed, as this runs for every
    call; it can only cost a suggestion, since each is validated with the values that are there.
    """
    if type(data) is list:
        items = cast("list[Json]", data)
        data = items[0] if items else None
    if type(data) is not dict:
        return ()
    top = cast("dict[Any, Json]", data)
    outline: list[Any] = [*islice(top, MAX_FIELDS), prefix_of_value(top.get("id"), prefixes)]
    for inner in islice(top.values(), MAX_FIELDS):
        each = cast("Json", inner[0] if type(inner) is list and inner else inner)
        if type(each) is dict:
            members = cast("dict[Any, Json]", each)
            outline += (None, *islice(members, MAX_FIELDS), prefix_of_value(members.get("id"), prefixes))
        elif each is not inner:
            outline += (None, prefix_of_value(each, prefixes))
    return tuple(outline)


def value_at(data: Json, path: Path) -> Json:
    """Return the value at a path; None where there is none."""
    for step in path:
        if step == FIRST_ITEM and type(data) is list:
            data = cast("list[Json]", data)[0] if data else None
        elif type(data) is dict:
            data = cast("dict[Any, Json]", data).get(step)
        else:
            return None
    return data


def prefix_of_value(value: Json, prefixes: Mapping[str, Any]) -> str:
    """Return what an id begins with, such as `deck_`, where some parameter takes ids of that kind."""
    if not isinstance(value, str):
        return ""
    found = _VALUE_PREFIX.match(value)
    return found[0] if found is not None and found[0] in prefixes else ""


def simplified(schema: JsonObject, root: JsonObject) -> JsonObject:
    """Follow local references, and choose the one alternative of a union that is not `null`."""
    for _ in range(_MAX_REFERENCES):
        reference = schema.get("$ref")
        if isinstance(reference, str):
            rest = {key: value for key, value in schema.items() if key != "$ref"}
            schema = {**_referenced(reference, root), **rest}
            continue
        for keyword in ("anyOf", "oneOf", "allOf"):
            choices = [
                each for each in map(_object, _list(schema.get(keyword))) if each.get("type") != "null"
            ]
            if len(choices) == 1:
                schema = {**{key: value for key, value in schema.items() if key != keyword}, **choices[0]}
                break
        else:
            return schema
    return schema


def _members(path: Path, schema: JsonObject) -> Iterator[tuple[Path, JsonObject]]:
    """Yield the members of an object, or the items of a list."""
    for name, each in _object(schema.get("properties")).items():
        if len(name) <= _MAX_NAME_CHARACTERS:
            yield (*path, name), _object(each)
    items = _object(schema.get("items"))
    if items:
        yield (*path, FIRST_ITEM), items


def _field(path: Path, schema: JsonObject, noun: str) -> Field | None:
    types, name = _types(schema), _own_name(path)
    if not types or is_secret_name(name) or schema.get("writeOnly"):
        return None
    return Field(
        path,
        meaning(name, _container(path), noun),
        types,
        prefix=_pattern_prefix(schema),
        format=str(schema.get("format", "")),
        closed="enum" in schema or "const" in schema,
    )


def _parameter(name: str, schema: JsonObject, root: JsonObject, noun: str) -> Field | None:
    listed = "array" in _list(schema.get("type"))
    value_schema = simplified(_object(schema.get("items")), root) if listed else schema
    if len(name) > _MAX_NAME_CHARACTERS:
        return None
    field = _field((name,), value_schema, noun)
    return None if field is None else field._replace(listed=listed)


def _types(schema: JsonObject) -> frozenset[str]:
    """Return the JSON types of single values that a schema allows; empty for any other schema."""
    return frozenset(_list(schema.get("type"))) & {"string", "integer", "number"}


def _pattern_prefix(schema: JsonObject) -> str:
    found = _PATTERN_PREFIX.match(str(schema.get("pattern", "")))
    return "" if found is None else found[1]


def _format_of_value(value: Json) -> str:
    return "uri" if isinstance(value, str) and value.startswith(("https://", "http://")) else ""


def _own_name(path: Path) -> str:
    """Return the last key of a path: the items of a list have the name of the list."""
    return next((step for step in reversed(path) if isinstance(step, str)), "")


def _container(path: Path) -> str:
    """Return the nearest key around a field that names an entity; scalar items have their list's name."""
    names = [step for step in path if isinstance(step, str)]
    return next((name for name in reversed(names[:-1]) if entity_of_container(name)), "")


def _referenced(reference: str, root: JsonObject) -> JsonObject:
    found: JsonObject = root
    for step in reference.removeprefix("#/").split("/"):
        found = _object(found.get(step.replace("~1", "/").replace("~0", "~")))
    return found


def _object(value: Any) -> JsonObject:
    return cast("JsonObject", value) if isinstance(value, Mapping) else {}


def _list(value: Any) -> Sequence[Any]:
    if isinstance(value, list):
        return cast("list[Any]", value)
    return () if value is None else (value,)
