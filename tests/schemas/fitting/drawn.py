"""Schemas to fit, values near them, and what a fitted schema means in plain JSON Schema."""

from collections.abc import Mapping
from typing import Any, cast

from hypothesis import strategies as st

from toolcrib.model import JsonObject
from toolcrib.schemas.fitting.fit import Dialect

NAMES = ("a", "b", "kind", "long name")
DRAFTS = (
    "http://json-schema.org/draft-07/schema#",
    "https://json-schema.org/draft/2019-09/schema",
    "https://json-schema.org/draft/2020-12/schema",
)
_TYPES = ("string", "integer", "number", "boolean", "null", "object", "array")
_SCALARS = (None, True, False, 0, 1, 2, 3, 1.0, 1.5, -1, "", "x", "y", "long", "abcdef")
_names = st.sampled_from(NAMES)
_short = st.sampled_from(NAMES[:3])
_small = st.integers(0, 3)
_bound = st.sampled_from([-1, 0, 1, 1.5, 2, 3])

scalars = st.sampled_from(_SCALARS)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_names, inner, max_size=3),
    max_leaves=6,
)
objects = st.dictionaries(_names, values, max_size=4)


def _of_one(inner: st.SearchStrategy[Any]) -> Mapping[str, st.SearchStrategy[Any]]:
    """Keywords that look at a value itself, or at the same value again."""
    some = st.lists(inner, min_size=1, max_size=3)
    types = st.lists(st.sampled_from(_TYPES), min_size=1, max_size=3, unique=True)
    return {
        "type": st.sampled_from(_TYPES) | types,
        "enum": st.lists(scalars | values, min_size=1, max_size=3),
        "const": scalars,
        **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), _bound),
        "multipleOf": st.sampled_from([1, 2, 3, 0.5]),
        "minLength": _small,
        "maxLength": _small,
        "pattern": st.sampled_from(["^x", "y$", "o"]),
        **dict.fromkeys(("allOf", "anyOf", "oneOf"), some),
        **dict.fromkeys(("not", "if", "then", "else"), inner),
        "$ref": st.sampled_from(["#/$defs/one", "#/$defs/two", "#/definitions/three", "#", "#four"]),
    }


def _of_many(inner: st.SearchStrategy[Any]) -> Mapping[str, st.SearchStrategy[Any]]:
    """Keywords that look at members and items."""
    named = st.dictionaries(_names, inner, max_size=3)
    required = st.lists(_names, unique=True, max_size=2)
    return {
        "properties": named,
        "required": required,
        "additionalProperties": st.booleans() | inner,
        "patternProperties": st.dictionaries(st.sampled_from(["^a", "n"]), inner, max_size=2),
        "propertyNames": st.sampled_from([{}, {"pattern": "^[ab]"}, {"maxLength": 4}]),
        "dependentRequired": st.dictionaries(_names, required, max_size=2),
        "dependentSchemas": named,
        "dependencies": st.dictionaries(_names, required | inner, max_size=2),
        **dict.fromkeys(("unevaluatedProperties", "unevaluatedItems", "uniqueItems"), st.booleans()),
        **dict.fromkeys(("minProperties", "maxProperties", "minItems", "maxItems"), _small),
        "items": inner,
        "prefixItems": st.lists(inner, min_size=1, max_size=3),
        "contains": inner,
        **dict.fromkeys(("minContains", "maxContains"), st.integers(0, 2)),
    }


_NOTES: Mapping[str, st.SearchStrategy[Any]] = {
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
    words = {**_of_one(inner), **_of_many(inner), **_NOTES}
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
    required = {"required": st.lists(_short, unique=True, max_size=3)}
    return st.fixed_dictionaries(
        {"type": st.just("object"), "properties": st.dictionaries(_short, inner, max_size=3)},
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
    """Typical schemas of arguments, mostly supported by every dialect."""
    inner = st.recursive(_plain, lambda some: _mild(some, closed=closed), max_leaves=6)
    root: dict[str, Any] = draw(_objects(inner, closed=closed))
    return {**root, "$defs": {"one": draw(inner), "two": draw(inner)}}


def _described(made: JsonObject) -> JsonObject:
    return {**made, "description": "What it is."}


def _allowed(inner: st.SearchStrategy[Any], *, bounds: bool) -> st.SearchStrategy[Any]:
    arrays = st.fixed_dictionaries(
        {"type": st.just("array"), "items": inner},
        optional={"minItems": st.just(1), "maxItems": st.just(4)} if bounds else {},
    )
    return (arrays | allowed_objects(inner)).map(_described)


def allowed_objects(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Objects that any provider takes."""
    members = st.dictionaries(_short, inner, min_size=1, max_size=3)
    return st.tuples(members, st.booleans()).map(
        lambda made: {"type": "object", "properties": made[0]} | ({"required": [*made[0]]} if made[1] else {})
    )


def allowed(*, bounds: bool) -> st.SearchStrategy[Any]:
    """Schemas with keywords every provider supports; with `bounds`, those Gemini supports."""
    texts = st.fixed_dictionaries(
        {"type": st.just("string")}, optional={"minLength": st.just(2), "pattern": st.just("^x")}
    )
    unions = st.just(
        {"anyOf": [_described({"type": "string"}), _described({"type": "integer", "minimum": 2})]}
    )
    plain = st.one_of(
        st.sampled_from(["string", "integer", "number", "boolean"]).map(lambda kind: {"type": kind}),
        st.just({"type": "string", "enum": ["x", "y"]}),
    )
    leaves = plain.map(_described) | (texts.map(_described) | unions if bounds else st.nothing())
    return allowed_objects(st.recursive(leaves, lambda inner: _allowed(inner, bounds=bounds), max_leaves=5))


def stands(schema: JsonObject, path: str, keyword: str) -> bool:
    """Whether a keyword occurs at a path of a schema."""
    at: Any = schema
    for step in path.split("/")[1:]:
        at = _members(at)[step.replace("~1", "/").replace("~0", "~")]
    return keyword in _members(at)


def _members(value: Any) -> dict[str, Any]:
    if isinstance(value, dict):
        return cast("dict[str, Any]", value)
    return {str(at): each for at, each in enumerate(value)}


def meant(schema: Any, dialect: Dialect) -> Any:
    """A fitted schema as plain JSON Schema."""
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
