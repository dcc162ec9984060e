"""Validates results of resource and prompt methods, and converts them for older revisions."""

from typing import Any, cast

from toolcrib.frontends.mcp.tool_content import fitted
from toolcrib.model import JsonObject, Result

MOST_VALUES = 100
"""Most completion values that the protocol allows."""


def contents(said: JsonObject, revision: str) -> JsonObject | None:
    """Parse the result of `resources/read`; None where it is invalid for MCP."""
    held = _objects(said.get("contents"))
    if held is None:
        return None
    blocks = tuple({"type": "resource", "resource": each} for each in held)
    return None if fitted(Result(content=blocks), revision) is None else {"contents": held}


def messages(said: JsonObject, revision: str) -> JsonObject | None:
    """Parse the result of `prompts/get`; None where it is invalid for MCP."""
    held, description = _objects(said.get("messages")), said.get("description", "")
    if held is None or type(description) is not str:
        return None
    if not all(each.get("role") in ("user", "assistant") for each in held):
        return None
    blocks = [each.get("content") for each in held]
    if not all(type(each) is dict for each in blocks):
        return None
    fit = fitted(Result(content=tuple(cast("list[JsonObject]", blocks))), revision)
    if fit is None:
        return None
    spelled = [{**each, "content": block} for each, block in zip(held, fit.content, strict=True)]
    return {"messages": spelled, **({"description": description} if "description" in said else {})}


def completion(said: JsonObject, revision: str) -> JsonObject | None:
    """Parse the result of `completion/complete`; None where it has no valid values."""
    del revision
    found = as_object(said.get("completion"))
    values: Any = found.get("values")
    if type(values) is not list or not all(type(each) is str for each in cast("list[Any]", values)):
        return None
    if type(found.get("total", 0)) is not int or type(found.get("hasMore", False)) is not bool:
        return None
    suggestions = cast("list[str]", values)
    if len(suggestions) > MOST_VALUES:
        found = {**found, "values": suggestions[:MOST_VALUES], "hasMore": True}
    return {"completion": found}


def as_object(value: Any) -> JsonObject:
    """Return a value that is an object, else an empty object."""
    return cast("JsonObject", value) if type(value) is dict else {}


def is_texts(value: Any) -> bool:
    """Whether a value is an object with strings as its only values."""
    return type(value) is dict and all(type(each) is str for each in as_object(value).values())


def _objects(value: Any) -> list[JsonObject] | None:
    if type(value) is not list or not all(type(each) is dict for each in cast("list[Any]", value)):
        return None
    return cast("list[JsonObject]", value)
