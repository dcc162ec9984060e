"""Iterates over the parameters in a JSON Schema of arguments, with the subschemas of each value."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from toolcrib.model import JsonObject

_CHOICES = ("anyOf", "oneOf")


@dataclass(frozen=True, slots=True)
class Parameter:
    """One named parameter."""

    path: str
    """Its path, such as `page.limit`, or `cards[].front` inside a list."""
    description: str
    forms: tuple[JsonObject, ...]
    """Alternative schemas of its value: unions split, references resolved, null left out."""

    @property
    def name(self) -> str:
        """The last part of its path."""
        return self.path.rpartition(".")[2]

    def of_type(self, *types: str) -> Iterator[JsonObject]:
        """Return its forms of these JSON types."""
        return (form for form in self.forms if form.get("type") in types)


def parameters(schema: JsonObject) -> Iterator[Parameter]:
    """Yield every parameter of an object's schema, nested ones after their parent."""
    yield from _within(schema, _forms(schema, schema), "", frozenset())


def items_of(schema: JsonObject, form: JsonObject) -> tuple[JsonObject, ...]:
    """Return the alternative schemas of a list's items."""
    return _forms(schema, _mapping(form["items"])) if "items" in form else ()


def _within(
    root: JsonObject, forms: Sequence[JsonObject], before: str, above: frozenset[int]
) -> Iterator[Parameter]:
    """Yield parameters recursively; `above` has the enclosing objects, so that recursion ends."""
    for form in forms:
        fields = _mapping(form.get("properties"))
        if id(fields) in above:
            continue
        inside = above | {id(fields)}
        for name, field in fields.items():
            schema = _mapping(field)
            found = _forms(root, schema)
            path = f"{before}{name}"
            yield Parameter(path, _described(schema, found), found)
            yield from _within(root, found, f"{path}.", inside)
            for each in found:
                yield from _within(root, items_of(root, each), f"{path}[].", inside)


def _described(schema: JsonObject, forms: Sequence[JsonObject]) -> str:
    said = (each.get("description") for each in (schema, *forms))
    return next((each.strip() for each in said if isinstance(each, str) and each.strip()), "")


def _forms(root: JsonObject, schema: JsonObject, followed: tuple[str, ...] = ()) -> tuple[JsonObject, ...]:
    """Return the alternatives of a schema; `followed` has the resolved references, against cycles."""
    target = schema.get("$ref")
    if isinstance(target, str):
        if target in followed:
            return ()
        whole = {**_at(root, target), **_without(schema, "$ref")}
        return _forms(root, whole, (*followed, target))
    for word in _CHOICES:
        if word in schema:
            beside = _without(schema, word)
            choices = ({**beside, **each} for each in _mappings(schema[word]))
            return tuple(form for each in choices for form in _forms(root, each, followed))
    if "allOf" in schema:
        parts = [form for each in _mappings(schema["allOf"]) for form in _forms(root, each, followed)]
        joined = {key: value for part in parts for key, value in part.items()}
        return _forms(root, {**joined, **_without(schema, "allOf")}, followed)
    return tuple(_by_type(schema))


def _by_type(schema: JsonObject) -> Iterator[JsonObject]:
    types = schema.get("type")
    for each in cast("list[Any]", types) if isinstance(types, list) else [types]:
        if each != "null":
            yield schema if each is types else {**schema, "type": each}


def _at(root: JsonObject, target: str) -> JsonObject:
    """Resolve a local reference; any other one is an empty schema."""
    place: Any = root
    for part in target.removeprefix("#").strip("/").split("/"):
        place = _mapping(place).get(part)
    return _mapping(place)


def _without(schema: JsonObject, word: str) -> dict[str, Any]:
    return {key: each for key, each in schema.items() if key != word}


def _mappings(value: object) -> list[JsonObject]:
    return [_mapping(each) for each in cast("list[Any]", value)] if isinstance(value, list) else []


def _mapping(value: object) -> JsonObject:
    """Return the value if it is a mapping, else an empty one: third-party schemas may be malformed."""
    return cast("JsonObject", value) if isinstance(value, Mapping) else {}
