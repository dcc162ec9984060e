"""How Gemini spells a schema: its types in capitals, and none at all where there are no parameters."""

from typing import Any, cast

from toolcrib.model import Json, JsonObject


def parameters(schema: JsonObject) -> JsonObject | None:
    """Spell the schema of a tool's arguments; None where it takes none, since an empty one is refused."""
    return _capitals(schema) if schema.get("properties") else None


def _capitals(schema: JsonObject) -> JsonObject:
    return {keyword: _value(keyword, value) for keyword, value in schema.items()}


def _value(keyword: str, value: Json) -> Any:
    if keyword == "type":
        return cast("str", value).upper()
    if keyword == "properties":
        return {name: _capitals(each) for name, each in cast("JsonObject", value).items()}
    if keyword == "items":
        return _capitals(value)
    if keyword == "anyOf":
        return [_capitals(each) for each in cast("list[JsonObject]", value)]
    return value
