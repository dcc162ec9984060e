"""OpenAPI description of the MCP routes: JSON-RPC messages and their headers."""

from typing import Any

from toolcrib.mcp.revisions import LEGACY_REVISIONS

_MESSAGE: dict[str, Any] = {
    "type": "object",
    "properties": {
        "jsonrpc": {"const": "2.0"},
        "id": {"type": ["string", "number", "null"]},
        "error": {
            "type": "object",
            "properties": {"code": {"type": "integer"}, "message": {"type": "string"}, "data": {}},
            "required": ["code", "message"],
        },
    },
    "required": ["jsonrpc", "error"],
}
_FAILURE: dict[str, Any] = {
    "description": "an error of JSON-RPC; before a message is read, an error as any other route has it",
    "content": {
        "application/json": {"schema": {"anyOf": [_MESSAGE, {"$ref": "#/components/schemas/Result"}]}}
    },
}
_REQUEST: dict[str, Any] = {
    "type": "object",
    "properties": {
        "jsonrpc": {"const": "2.0"},
        "id": {"type": ["string", "integer"]},
        "method": {"type": "string"},
        "params": {"type": ["object", "null"]},
    },
    "required": ["jsonrpc"],
}
_BODY: dict[str, Any] = {
    "required": True,
    "description": "one message of JSON-RPC; revision 2025-03-26 also takes a list of them",
    "content": {"application/json": {"schema": {"anyOf": [_REQUEST, {"type": "array", "items": _REQUEST}]}}},
}


def document(method: str) -> dict[str, Any]:
    """Return the OpenAPI operation of an MCP route, without its summary."""
    posted = method == "POST"
    revision: dict[str, Any] = {"type": "string"} if posted else {"enum": list(LEGACY_REVISIONS)}
    done: dict[str, Any] = {"200": {"description": "done"}}
    if posted:
        done["202"] = {"description": "taken; nothing is answered"}
    parameters = [
        _header("Mcp-Session-Id", "as `initialize` gave it", {"type": "string"}, required=not posted),
        _header("Mcp-Protocol-Version", "the revision of MCP that is spoken", revision),
    ]
    described = {"responses": {**done, "default": _FAILURE}, "parameters": parameters}
    return {**described, "requestBody": _BODY} if posted else described


def _header(name: str, description: str, schema: dict[str, Any], *, required: bool = False) -> dict[str, Any]:
    return {"name": name, "in": "header", "required": required, "description": description, "schema": schema}
