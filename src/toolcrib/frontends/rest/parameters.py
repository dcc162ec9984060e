"""OpenAPI parameters that routes share: path parameters by name, and the headers of a call."""

from toolcrib.admin.app_storage import LONGEST_KEY
from toolcrib.frontends.rest.app_payload_schemas import PACKAGE
from toolcrib.frontends.rest.key_shapes import KEY_NAME
from toolcrib.frontends.rest.schema_terms import (
    PRINTABLE,
    TEXT,
    USER,
    USER_HEADER,
    Schema,
    header,
    in_path,
    text_of,
)

_USER = "ann"
_IN_PATH = {
    "package": in_path("package", PACKAGE, "com.example.notes"),
    "id": in_path("id", USER, _USER),
    "user": in_path("user", USER, _USER),
    "key": in_path("key", text_of(LONGEST_KEY, PRINTABLE), "theme"),
    "server_id": in_path("server_id", TEXT, "weather"),
    "file": in_path("file", TEXT, "page.css"),
}
_NAMES = {
    "/api/keys/": in_path("name", KEY_NAME, "reader"),
    "/api/users/": in_path("name", TEXT, "get_datetime"),
    "/contexts/": in_path("name", TEXT, "default"),
}
"""The schema of the parameter `name`, by path prefix."""

CALL_HEADERS = [
    header("X-User-Id", "the user the call is made for; needs a key that may act for others", USER_HEADER),
    header("X-Agent-Id", "the agent that calls"),
    header("X-Agent-Version", "its version"),
    header("X-Session-Id", "the session the call belongs to"),
    header("X-Correlation-Id", "ties calls together; any id becomes a UUID"),
    header("traceparent", "the W3C trace the call is part of"),
    header("Idempotency-Key", "the same as idempotencyKey in the body", text_of(255, "[!-~]+")),
    header("X-Timeout-Ms", "how long the caller waits, up to 300000"),
]


def path_parameter(path: str, name: str) -> Schema:
    """Return the OpenAPI parameter of a path."""
    if name != "name":
        return _IN_PATH[name]
    return next(schema for prefix, schema in _NAMES.items() if path.startswith(prefix))
