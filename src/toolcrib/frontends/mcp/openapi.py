"""How the MCP routes are described in the OpenAPI document: their errors are messages of JSON-RPC."""

from typing import Any

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
DOCUMENT: dict[str, Any] = {"responses": {"200": {"description": "done"}, "default": _FAILURE}}
"""What the description of an MCP route says beside its summary."""
