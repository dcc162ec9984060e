"""Tools and results by chance: schemas with everything that schemas have, texts that are hard to cut."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

from hypothesis import assume
from hypothesis import strategies as st

from toolcrib.errors import problem
from toolcrib.model import Family, Result, Tool, Voice, fingerprint
from toolcrib.schemas import InvalidSchema, check

Schema = dict[str, Any]

NAMES = st.from_regex(r"[a-z][a-z0-9_]{0,63}", fullmatch=True)
"""Safe names of the catalog."""
IDS = st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")), min_size=1, max_size=40)
TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=("Cs",)), max_size=30)

_KEYS = st.one_of(
    st.from_regex(r"[a-z][a-zA-Z_]{0,8}", fullmatch=True),
    st.sampled_from(["when", "Größe", "with space", "dash-ed", "$odd", "名前", "a.b", "7th", "x" * 80]),
)
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**53), 2**53),
    st.floats(allow_nan=False, allow_infinity=False),
    TEXTS,
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(TEXTS, inner, max_size=4)),
    max_leaves=12,
)
OBJECTS = st.dictionaries(TEXTS, VALUES, max_size=5)

_LEAVES: st.SearchStrategy[Schema] = st.one_of(
    st.sampled_from(
        [
            {"type": "string"},
            {"type": "string", "minLength": 2, "maxLength": 9, "pattern": "^a"},
            {"type": "string", "format": "date-time", "description": "When it was."},
            {"type": "string", "format": "uri"},
            {"type": "integer", "minimum": 1, "maximum": 9},
            {"type": "integer", "exclusiveMinimum": 0, "multipleOf": 3},
            {"type": "number", "exclusiveMaximum": 1.5},
            {"type": "boolean", "default": True},
            {"type": "null"},
            {"type": ["string", "null"]},
            {"type": ["string", "integer"], "title": "Either"},
            {"type": "object"},
            {"type": "object", "additionalProperties": {"type": "string"}, "propertyNames": {"maxLength": 5}},
            {"type": "object", "patternProperties": {"^x": {"type": "integer"}}, "minProperties": 1},
            {"type": "array"},
            {"type": "array", "uniqueItems": True, "minItems": 1},
            {"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}]},
            {"$ref": "#/$defs/node"},
            {"not": {"type": "string"}},
            {},
        ]
    ),
    st.lists(SCALARS, min_size=1, max_size=3).map(lambda values: {"enum": values}),
    st.lists(st.sampled_from("abc"), min_size=1, max_size=3, unique=True).map(
        lambda values: {"type": "string", "enum": values}
    ),
    SCALARS.map(lambda value: {"const": value}),
)
_NODE: Schema = {
    "type": "object",
    "properties": {"label": {"type": "string"}, "next": {"$ref": "#/$defs/node"}},
    "required": ["label"],
}


@st.composite
def _object(draw: st.DrawFn, inner: st.SearchStrategy[Schema]) -> Schema:
    properties = draw(st.dictionaries(_KEYS, inner, max_size=4))
    made: Schema = {"type": "object", "properties": properties}
    required = [name for name in properties if draw(st.booleans())]
    if required or draw(st.booleans()):
        made["required"] = required
    if draw(st.booleans()):
        made["additionalProperties"] = False
    return made


_SCHEMAS: st.SearchStrategy[Schema] = st.recursive(
    _LEAVES,
    lambda inner: st.one_of(
        _object(inner),
        inner.map(lambda each: {"type": "array", "items": each}),
        st.tuples(st.sampled_from(["anyOf", "oneOf", "allOf"]), st.lists(inner, min_size=1, max_size=3)).map(
            lambda pair: {pair[0]: pair[1]}
        ),
    ),
    max_leaves=8,
)


@st.composite
def inputs(draw: st.DrawFn) -> Schema:
    """Input schemas the catalog accepts: objects, unions of objects, references."""
    made = draw(_object(_SCHEMAS))
    if draw(st.integers(0, 5)) == 0:
        made[draw(st.sampled_from(["anyOf", "oneOf", "allOf"]))] = [
            {"required": ["when"]},
            draw(_object(_LEAVES)),
        ]
    shared = {"node": _NODE}
    if draw(st.integers(0, 9)) == 0:
        shared["root"] = made
        made = Schema(type="object")
        made["$ref"] = "#/$defs/root"
    if draw(st.booleans()) or "$ref" in json.dumps(made):
        made["$defs"] = shared
    try:
        return check(made).schema
    except InvalidSchema:
        assume(False)
        raise


@st.composite
def tools(draw: st.DrawFn) -> Tool:
    """A tool with such a schema, of a server or of our own."""
    described = draw(st.one_of(TEXTS, st.integers(0, 3_000).map(lambda size: "långt " * size)))
    families: list[Family] = ["mcp", "function"]
    family = draw(st.sampled_from(families))
    made = Tool(
        name="far:tool", source="far", family=family, description=described, input_schema=draw(inputs())
    )
    return made if draw(st.booleans()) else replace(made, fingerprint=fingerprint(made))


@st.composite
def results(draw: st.DrawFn, most: int = 1_000_000) -> Result:
    """Results with up to this many characters that are hard to fit."""
    piece = draw(
        st.one_of(TEXTS.filter(bool), st.sampled_from(["a", "ü", "😀", '"', "\\", "\x00", "\u2028"]))
    )
    long = piece * (draw(st.integers(0, most)) // len(piece))
    message = draw(st.sampled_from(["Done.", "", long[: draw(st.sampled_from([10, 1_000, most]))]]))
    if draw(st.booleans()):
        return Result(problem=problem("TOOL_FAILED", long), message=message)
    data: Any = draw(
        st.sampled_from([long, [long], {"text": long, "destination": long}, {"will_hangup": True}, None])
    )
    blocks = ({"type": "text", "text": long},) if data is None else ()
    return Result(data=data, content=blocks, message=message, voice=Voice(suppress=draw(st.booleans())))


_ODD = st.sampled_from([None, 7, "", [], {}, [7], {"x": None}])


def spoiled(draw: Callable[[st.SearchStrategy[Any]], Any], value: Any) -> Any:
    """A message with something else in one of its places."""
    if not isinstance(value, dict | list) or not value or draw(st.integers(0, 3)) == 0:
        return draw(_ODD)
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        key = draw(st.sampled_from(sorted(fields)))
        return {**fields, key: spoiled(draw, fields[key])}
    items = cast("list[Any]", value)
    place = draw(st.integers(0, len(items) - 1))
    return [*items[:place], spoiled(draw, items[place]), *items[place + 1 :]]
