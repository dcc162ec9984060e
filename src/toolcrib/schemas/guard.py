"""Admits external schemas that are bounded, self-contained and compilable, and rejects all others."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast

import orjson

from toolcrib.schemas.bounds import too_deep
from toolcrib.schemas.errors import InvalidSchema
from toolcrib.schemas.subschemas import Schema
from toolcrib.schemas.validator import compile_schema

MOST_BYTES = 64 * 1024
DEEPEST = 32


@dataclass(frozen=True, slots=True)
class GuardedSchema:
    """An admitted schema, and the repairs that were necessary."""

    schema: Schema
    repairs: tuple[str, ...] = ()


def check(schema: object, *, root: Literal["object"] | None = "object") -> GuardedSchema:
    """Check a schema and return a private copy; `root="object"` requires the type of tool arguments."""
    if not isinstance(schema, Mapping):
        raise InvalidSchema("#", "a schema must be a JSON object")
    plain = _copy(cast("Mapping[str, Any]", schema))
    repairs: list[str] = []
    if plain.pop("$id", None) is not None:
        repairs.append("#/$id was left out: references stay inside the schema")
    if root == "object":
        plain = _rooted(plain, repairs)
    validator = compile_schema(plain)
    repairs += [
        f"{path} is left to the tool to check: it cannot be run safely" for path in validator.unchecked
    ]
    return GuardedSchema(plain, tuple(repairs))


def _copy(schema: Mapping[str, Any]) -> Schema:
    # Bounds first: shared subtrees can be small in memory and exponential when serialized.
    excess = too_deep(dict(schema), DEEPEST, MOST_BYTES)
    if excess:
        raise InvalidSchema("#", f"it {excess}; split the tool or flatten its parameters")
    try:
        text = orjson.dumps(dict(schema))
    except TypeError as error:
        raise InvalidSchema("#", f"it is not JSON: {error}") from error
    if len(text) > MOST_BYTES:
        raise InvalidSchema("#", f"it takes {len(text):,} bytes, at most {MOST_BYTES:,} are allowed")
    return orjson.loads(text)


def _rooted(schema: Schema, repairs: list[str]) -> Schema:
    kind = schema.get("type")
    if kind == "object":
        return schema
    if kind is not None:
        raise InvalidSchema("#/type", "arguments are an object, so the type must be 'object'")
    repairs.append("#/type was missing: 'object' was put in")
    return {"type": "object", **schema}
