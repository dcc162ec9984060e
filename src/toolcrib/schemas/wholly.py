"""Strict functions whose arguments are what the tool itself takes, whoever hands them to it."""

from toolcrib.model import JsonObject
from toolcrib.schemas.fit_dialect import Fitted
from toolcrib.schemas.fit_strict import strictly
from toolcrib.schemas.places import Schema, survey


def wholly(schema: JsonObject) -> Fitted | None:
    """Fit a schema for a strict function; None where something may be left out, or cannot be said strictly.

    What may be left out arrives as null from a strict function, which the tool would refuse unless somebody
    knew to take it away again. Not everybody who is told of a tool calls it the same way.
    """
    if any(_has_choice(place.schema) for place in survey(dict(schema)).values()):
        return None
    return strictly(schema)


def _has_choice(schema: Schema) -> bool:
    properties = set(schema.get("properties", ()))
    if not properties:
        # A strict object must say what it requires, and one of nothing has nothing to say.
        return schema.get("type") == "object"
    return not properties <= set(schema.get("required", ()))
