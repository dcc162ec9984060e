"""Validates content blocks of tool results, and converts them for older revisions."""

from typing import Any, cast

from toolcrib.model import JsonObject, Result

_SINCE = {"audio": "2025-03-26", "resource_link": "2025-06-18"}
"""The revision that introduced a block type, unless the first one."""
_STRUCTURE_SINCE = "2025-06-18"


def fitted(outcome: Result, revision: str) -> Result | None:
    """Return a result with blocks that this revision has; None where a block is invalid for MCP."""
    if not outcome.content:
        return outcome
    if not all(map(_is_known, outcome.content)):
        return None
    if all(_SINCE.get(block["type"], "") <= revision for block in outcome.content):
        return outcome
    return outcome.replace(content=tuple(_older(block, revision) for block in outcome.content))


def has_structure(revision: str) -> bool:
    """Whether a result may have structured content besides its blocks."""
    return revision >= _STRUCTURE_SINCE


def _is_known(block: JsonObject) -> bool:
    """Whether a block has a type of the protocol, with all required fields."""
    kind = block.get("type")
    if kind == "text":
        right = type(block.get("text")) is str
    elif kind in ("image", "audio"):
        right = type(block.get("data")) is str and type(block.get("mimeType")) is str
    elif kind == "resource":
        right = _is_resource(block.get("resource"))
    elif kind == "resource_link":
        right = type(block.get("uri")) is str and type(block.get("name")) is str
    else:
        return False
    return right and all(isinstance(block.get(key, {}), dict) for key in ("annotations", "_meta"))


def _is_resource(resource: Any) -> bool:
    if type(resource) is not dict:
        return False
    held = cast("dict[str, Any]", resource)
    return type(held.get("uri")) is str and (type(held.get("text")) is str or type(held.get("blob")) is str)


def _older(block: JsonObject, revision: str) -> JsonObject:
    """Convert a block to a type that the revision has, without losing what a model could use."""
    kind: str = block["type"]
    if _SINCE.get(kind, "") <= revision:
        return block
    if kind == "audio":
        sound = {"uri": "toolcrib://content/audio", "mimeType": block["mimeType"], "blob": block["data"]}
        return {"type": "resource", "resource": sound}
    return {"type": "text", "text": f"{block['name']}: {block['uri']}"}
