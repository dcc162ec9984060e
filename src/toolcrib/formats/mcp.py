"""How the Model Context Protocol spells a tool and a result."""

from typing import Any

import orjson

from toolcrib.errors import spell
from toolcrib.model import Json, JsonObject, Result, Tool

HINTS, METADATA, ERROR = "toolcrib/agentHints", "toolcrib/metadata", "toolcrib/error"


class Mcp:
    """What `tools/list` answers with."""

    name = "mcp"

    def tool(self, tool: Tool, name: str) -> JsonObject:
        """Declare one tool."""
        spelled: dict[str, Any] = {
            "name": name,
            "description": tool.description,
            "inputSchema": tool.input_schema,
            "annotations": annotations(tool),
        }
        if tool.title is not None:
            spelled["title"] = tool.title
        if tool.output_schema is not None and tool.output_schema.get("type") == "object":
            spelled["outputSchema"] = tool.output_schema
        return spelled


def annotations(tool: Tool) -> dict[str, Any]:
    """What operator or author vouch for, over what an external server merely claims."""
    return {
        **tool.annotations,
        "readOnlyHint": tool.read_only,
        "destructiveHint": tool.destructive,
        "idempotentHint": tool.idempotent,
    }


def result(outcome: Result) -> dict[str, Any]:
    """Spell a completed result as the answer to `tools/call`."""
    spelled: dict[str, Any] = {
        "content": _content(outcome),
        "isError": outcome.problem is not None,
        "_meta": meta(outcome),
    }
    data: Json = outcome.data
    if outcome.problem is None and outcome.structured and type(data) is dict:
        spelled["structuredContent"] = data
    return spelled


def meta(outcome: Result) -> dict[str, Any]:
    """What travels beside the answer: hints, metadata and, where it failed, the error."""
    carried: dict[str, Any] = dict(outcome.meta)
    if outcome.hints is not None:
        carried[HINTS] = outcome.hints.as_json()
    if outcome.metadata is not None:
        carried[METADATA] = outcome.metadata.as_json()
    carried["toolcrib/message"] = outcome.message
    if outcome.problem is not None:
        carried[ERROR] = spell(outcome.problem)
    return carried


def _content(outcome: Result) -> list[Json]:
    if outcome.content:
        return list(outcome.content)
    if outcome.problem is not None:
        return [{"type": "text", "text": outcome.problem.message}]
    if isinstance(outcome.data, str):
        return [{"type": "text", "text": outcome.data}]
    return [{"type": "text", "text": (outcome.encoded or orjson.dumps(outcome.data)).decode()}]
