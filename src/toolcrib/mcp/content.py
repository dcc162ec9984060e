"""Content of results: validates blocks, and converts those that a revision does not have."""

from collections.abc import Sequence
from typing import Any, cast

from toolcrib.mcp.revisions import BLOCKS_SINCE
from toolcrib.model import JsonObject

MAX_COMPLETIONS = 100
"""Maximum completion values that the protocol allows."""

Blocks = Sequence[JsonObject]


def text_block(text: Any) -> JsonObject:
    """Return a text block; the text may be encoded already."""
    return {"type": "text", "text": text}


def blocks_for(blocks: tuple[JsonObject, ...], revision: str) -> tuple[JsonObject, ...] | None:
    """Return blocks that a revision has; None where one is invalid. The same tuple if nothing changes."""
    if not all(map(_is_valid_block, blocks)):
        return None
    if all(BLOCKS_SINCE.get(block["type"], "") <= revision for block in blocks):
        return blocks
    return tuple(_older_block(block, revision) for block in blocks)


def _is_valid_block(block: JsonObject) -> bool:
    """Whether a block has a type of the protocol, with all required fields."""
    kind = block.get("type")
    if kind == "text":
        right = type(block.get("text")) is str
    elif kind in ("image", "audio"):
        right = type(block.get("data")) is str and type(block.get("mimeType")) is str
    elif kind == "resource":
        resource = as_object(block.get("resource"))
        right = type(resource.get("uri")) is str and str in (
            type(resource.get("text")),
            type(resource.get("blob")),
        )
    elif kind == "resource_link":
        right = type(block.get("uri")) is str and type(block.get("name")) is str
    else:
        return False
    return right and all(isinstance(block.get(key, {}), dict) for key in ("annotations", "_meta"))


def _older_block(block: JsonObject, revision: str) -> JsonObject:
    """Convert a block to a type that the revision has, without losing what a model could use."""
    kind: str = block["type"]
    if BLOCKS_SINCE.get(kind, "") <= revision:
        return block
    if kind == "audio":
        sound = {"uri": "toolcrib://content/audio", "mimeType": block["mimeType"], "blob": block["data"]}
        return {"type": "resource", "resource": sound}
    return text_block(f"{block['name']}: {block['uri']}")


# --- Results of the resource and prompt methods ---


def resource_contents(result: JsonObject, revision: str) -> JsonObject | None:
    """Parse the result of `resources/read`; None where it is invalid for MCP."""
    contents = _objects(result.get("contents"))
    if contents is None:
        return None
    blocks = tuple({"type": "resource", "resource": each} for each in contents)
    return None if blocks_for(blocks, revision) is None else {"contents": contents}


def prompt_messages(result: JsonObject, revision: str) -> JsonObject | None:
    """Parse the result of `prompts/get`; None where it is invalid for MCP."""
    messages, description = _objects(result.get("messages")), result.get("description", "")
    if messages is None or type(description) is not str:
        return None
    if not all(message.get("role") in ("user", "assistant") for message in messages):
        return None
    given = _objects([message.get("content") for message in messages])
    blocks = None if given is None else blocks_for(tuple(given), revision)
    if blocks is None:
        return None
    fitted = [{**message, "content": block} for message, block in zip(messages, blocks, strict=True)]
    return {"messages": fitted, **({"description": description} if "description" in result else {})}


def completion_values(result: JsonObject, revision: str) -> JsonObject | None:
    """Parse the result of `completion/complete`; None where it has no valid values."""
    del revision
    completion = as_object(result.get("completion"))
    values: Any = completion.get("values")
    if type(values) is not list or not all(type(value) is str for value in cast("list[Any]", values)):
        return None
    if type(completion.get("total", 0)) is not int or type(completion.get("hasMore", False)) is not bool:
        return None
    suggestions = cast("list[str]", values)
    if len(suggestions) > MAX_COMPLETIONS:
        completion = {**completion, "values": suggestions[:MAX_COMPLETIONS], "hasMore": True}
    return {"completion": completion}


def as_object(value: Any) -> JsonObject:
    """Return a value that is an object, else an empty object."""
    return cast("JsonObject", value) if type(value) is dict else {}


def is_texts(value: Any) -> bool:
    """Whether a value is an object with strings as its only values."""
    return type(value) is dict and all(type(text) is str for text in as_object(value).values())


def _objects(value: Any) -> list[JsonObject] | None:
    if type(value) is not list or not all(type(each) is dict for each in cast("list[Any]", value)):
        return None
    return cast("list[JsonObject]", value)
