"""Schemas to fit, values near them, and what a fitted schema means in plain JSON Schema."""

from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st

from toolcrib.model import JsonObject
from toolcrib.schemas.fit import Dialect

NAMES = ("a", "b", "kind", "long name")
DRAFTS = (
    "http://json-schema.org/draft-07/schema#",
    "https://json-schema.org/draft/2019-09/schema",
    "https://json-schema.org/draft/2020-12/schema",
)
_TYPES = ("string", "integer", "number", "boolean", "null", "object", "array")
_SCALARS = (None, True, False, 0, 1, 2, 3, 1.0, 1.5, -1, "", "x", "y", "long", "abcdef")
_names = st.sampled_from(NAMES)
_small = st.integers(0, 3)
_bound = st.sampled_from([-1, 0, 1, 1.5, 2, 3])

scalars = st.sampled_from(_SCALARS)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_names, inner, max_size=3),
    max_leaves=6,
)
objects = st.dictionaries(_names, values, max_size=4)


def _within(inner: st.SearchStrategy[Any]) -> Mapping[str, st.SearchStrategy[Any]]:
    """Every keyword that refuses something, each with values of its own; some that refuse nothing."""
    some = st.lists(inner, min_size=1, max_size=3)
    named = st.dictionaries(_names, inner, max_size=3)
    required = st.lists(_names, unique=True, max_size=2)
    return {
        "type": st.sampled_from(_TYPES)
        | st.lists(st.sampled_from(_TYPES), min_size=1, max_size=3, unique=True),
        "enum": st.lists(scalars | values, min_size=1, max_size=3),
        "const": scalars,
        "minimum": _bound,
        "maximum": _bound,
        "exclusiveMinimum": _bound,
        "exclusiveMaximum": _bound,
        "multipleOf": st.sampled_from([1, 2, 3, 0.5]),
        "minLength": _small,
        "maxLength": _small,
        "pattern": st.sampled_from(["^x", "y$", "o"]),
        "properties": named,
        "required": required,
        "additionalProperties": st.booleans() | inner,
        "patternProperties": st.dictionaries(st.sampled_from(["^a", "n"]), inner, max_size=2),
        "propertyNames": st.sampled_from([{}, {"pattern": "^[ab]"}, {"maxLength": 4}]),
        "minProperties": _small,
        "maxProperties": _small,
        "dependentRequired": st.dictionaries(_names, required, max_size=2),
        "dependentSchemas": named,
        "dependencies": st.dictionaries(_names, required | inner, max_size=2),
        "unevaluatedProperties": st.booleans(),
        "unevaluatedItems": st.booleans(),
        "items": inner,
        "prefixItems": some,
        "minItems": _small,
        "maxItems": _small,
        "uniqueItems": st.booleans(),
        "contains": inner,
        "minContains": st.integers(0, 2),
        "maxContains": st.integers(0, 2),
        "allOf": some,
        "anyOf": some,
        "oneOf": some,
        "not": inner,
        "if": inner,
        "then": inner,
        "else": inner,
        "$ref": st.sampled_from(["#/$defs/one", "#/$defs/two", "#/definitions/three", "#", "#four"]),
        "title": st.just("Title"),
        "description": st.sampled_from(["A thing.", "Another."]),
        "default": scalars,
        "format": st.sampled_from(["date-time", "uri", "int32"]),
        "nullable": st.booleans(),
        "examples": st.just([1]),
        "$comment": st.just("why"),
        "readOnly": st.booleans(),
        "x-own": st.just({"any": "thing"}),
    }


def _schemas(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    words = _within(inner)
    chosen = st.lists(st.sampled_from(sorted(words)), max_size=4, unique=True)
    return chosen.flatmap(lambda keys: st.fixed_dictionaries({key: words[key] for key in keys}))


places = st.recursive(
    st.booleans()
    | st.sampled_from(_TYPES).map(lambda kind: {"type": kind})
    | _schemas(st.booleans() | st.sampled_from(_TYPES).map(lambda kind: {"type": kind})),
    _schemas,
    max_leaves=8,
)


@st.composite
def schemas(draw: st.DrawFn) -> JsonObject:
    """A schema of arguments, over all the keywords there are."""
    root: dict[str, Any] = draw(_schemas(places))
    root |= {"type": "object", "$defs": {"one": draw(places), "two": draw(places)}}
    root["definitions"] = {
        "three": draw(places),
        "four": {"$anchor": "four", "type": draw(st.sampled_from(_TYPES))},
    }
    if "properties" not in root:
        root["properties"] = draw(st.dictionaries(_names, places, max_size=3))
    if draw(st.integers(0, 4)) == 0:
        root["$schema"] = draw(st.sampled_from(DRAFTS))
    return root


def _objects(inner: st.SearchStrategy[Any], *, closed: bool) -> st.SearchStrategy[Any]:
    rest = st.just(value=False) if closed else st.booleans() | inner
    required = {"required": st.lists(_names, unique=True, max_size=3)}
    return st.fixed_dictionaries(
        {"type": st.just("object"), "properties": st.dictionaries(_names, inner, max_size=3)},
        optional=required if closed else {**required, "additionalProperties": rest, "minProperties": _small},
    ).map(lambda made: {**made, "additionalProperties": False} if closed else made)


def _mild(inner: st.SearchStrategy[Any], *, closed: bool) -> st.SearchStrategy[Any]:
    several = st.lists(inner, min_size=1, max_size=3)
    arrays = st.fixed_dictionaries(
        {"type": st.just("array"), "items": inner},
        optional={"minItems": _small, "maxItems": _small, **({} if closed else {"prefixItems": several})},
    )
    unions = st.sampled_from(["anyOf", "oneOf", "allOf"]).flatmap(
        lambda word: st.fixed_dictionaries({word: several}, optional={"description": st.just("One.")})
    )
    return _objects(inner, closed=closed) | arrays | unions


_plain = st.one_of(
    st.sampled_from(["string", "integer", "number", "boolean", "null"]).map(lambda kind: {"type": kind}),
    st.sampled_from([["string", "null"], ["integer", "string"], ["boolean", "null", "number"]]).map(
        lambda kinds: {"type": kinds}
    ),
    st.lists(scalars, min_size=1, max_size=3).map(lambda found: {"enum": found}),
    scalars.map(lambda value: {"const": value}),
    st.fixed_dictionaries(
        {"type": st.just("integer")}, optional={"exclusiveMinimum": _bound, "maximum": _bound}
    ),
    st.fixed_dictionaries(
        {"type": st.just("string")}, optional={"pattern": st.just("^x"), "default": st.none()}
    ),
    st.sampled_from(["#/$defs/one", "#/$defs/two"]).map(lambda reference: {"$ref": reference}),
    st.fixed_dictionaries({"type": st.just(["string", "null"]), "default": st.none()}),
)


@st.composite
def mild(draw: st.DrawFn, *, closed: bool = False) -> JsonObject:
    """A schema of arguments as people write them: most of it can be said anywhere."""
    inner = st.recursive(_plain, lambda some: _mild(some, closed=closed), max_leaves=6)
    root: dict[str, Any] = draw(_objects(inner, closed=closed))
    return {**root, "$defs": {"one": draw(inner), "two": draw(inner)}}


def meant(schema: Any, dialect: Dialect) -> Any:
    """What a fitted schema says, in plain JSON Schema."""
    if isinstance(schema, list):
        return [meant(each, dialect) for each in schema]  # pyright: ignore[reportUnknownVariableType]
    if not isinstance(schema, dict):
        return schema
    inner: dict[str, Any] = {
        key: value if key in ("enum", "const", "default", "required") else meant(value, dialect)
        for key, value in schema.items()  # pyright: ignore[reportUnknownVariableType]
    }
    if dialect.nullable and inner.get("nullable") is True:
        del inner["nullable"]
        return {"anyOf": [inner, {"type": "null"}]}
    return inner
