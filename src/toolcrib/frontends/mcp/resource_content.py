"""What servers answer about resources and prompts: checked, and spelled for clients that know fewer."""

from typing import Any, cast

from toolcrib.frontends.mcp.tool_content import fitted
from toolcrib.model import JsonObject, Result

MOST_VALUES = 100
"""How many suggestions the protocol allows at once."""


def contents(said: JsonObject, revision: str) -> JsonObject | None:
    """Read the answer to `resources/read`; None where it holds what MCP does not know."""
    held = _objects(said.get("contents"))
    if held is None:
        return None
    blocks = tuple({"type": "resource", "resource": each} for each in held)
    return None if fitted(Result(content=blocks), revision) is None else {"contents": held}


def messages(said: JsonObject, revision: str) -> JsonObject | None:
    """Read the answer to `prompts/get`; None where it holds what MCP does not know."""
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
    """Read the answer to `completion/complete`; None where it holds no suggestions."""
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
    """Return a value that is an object, else an empty one."""
    return cast("JsonObject", value) if type(value) is dict else {}


def is_texts(value: Any) -> bool:
    """Whether a value is an object that holds nothing but texts."""
    return type(value) is dict and all(type(each) is str for each in as_object(value).values())


def _objects(value: Any) -> list[JsonObject] | None:
    if type(value) is not list or not all(type(each) is dict for each in cast("list[Any]", value)):
        return None
    return cast("list[JsonObject]", value)
