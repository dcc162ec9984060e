"""OpenAPI document of the REST API."""

import re
from collections.abc import Iterable
from typing import Any

from toolcrib.admin.app_admin import MAX_DATA_KEY_CHARS
from toolcrib.frontends.rest.app_payload_schemas import PACKAGE
from toolcrib.frontends.rest.fields import (
    PRINTABLE,
    TEXT,
    USER,
    USER_HEADER,
    Schema,
    header,
    in_path,
    ref,
    text_of,
)
from toolcrib.frontends.rest.payload_schemas import KEY_NAME, SCHEMAS
from toolcrib.http import Route
from toolcrib.version import VERSION

# --- OpenAPI parameters that routes share: path parameters by name, and the headers of a call ---

_USER = "ann"
_IN_PATH = {
    "package": in_path("package", PACKAGE, "com.example.notes"),
    "id": in_path("id", USER, _USER),
    "user": in_path("user", USER, _USER),
    "key": in_path("key", text_of(MAX_DATA_KEY_CHARS, PRINTABLE), "theme"),
    "server_id": in_path("server_id", TEXT, "weather"),
    "file": in_path("file", TEXT, "page.css"),
}
_NAME_PARAMETERS = {
    "/api/keys/": in_path("name", KEY_NAME, "reader"),
    "/api/users/": in_path("name", TEXT, "get_datetime"),
    "/contexts/": in_path("name", TEXT, "default"),
}
"""The schema of the parameter `name`, by path prefix."""

CALL_HEADERS = [
    header("X-User-Id", "the user to call for; needs a key that may act for others", USER_HEADER),
    header("X-Agent-Id", "the calling agent"),
    header("X-Agent-Version", "version of the agent"),
    header("X-Session-Id", "session of the call"),
    header("X-Correlation-Id", "correlates calls; any other id is converted to a UUID"),
    header("traceparent", "W3C Trace Context of the call"),
    header("Idempotency-Key", "alternative to idempotencyKey in the body", text_of(255, "[!-~]+")),
    header("X-Timeout-Ms", "timeout in milliseconds, up to 300000"),
]


def path_parameter(path: str, name: str) -> Schema:
    """Return the OpenAPI parameter of a path."""
    if name != "name":
        return _IN_PATH[name]
    return next(schema for prefix, schema in _NAME_PARAMETERS.items() if path.startswith(prefix))


# --- Generates the OpenAPI description from the route table, so that it cannot become outdated ---

_PARAMETER = re.compile(r"\{(\w+)\}")
_KEY_SCHEME = {
    "type": "http",
    "scheme": "bearer",
    "description": "an API key; the admin key grants everything",
}
_APP_SCHEME = {"type": "http", "scheme": "bearer", "description": "an app's package, a colon and its API key"}
_COOKIE_SCHEME = {
    "type": "apiKey",
    "in": "cookie",
    "name": "toolcrib_session",
    "description": "requests of the web page, which also send the session's secret in X-Crib-Token",
}
_SCHEMES = {"key": _KEY_SCHEME, "page": _COOKIE_SCHEME, "app": _APP_SCHEME}


def describe(routes: Iterable[Route]) -> dict[str, Any]:
    """Return an OpenAPI 3.1 document of these routes."""
    known, paths = tuple(routes), dict[str, dict[str, Any]]()
    for route in known:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, known)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Toolcrib",
            "version": VERSION,
            "summary": "A gateway between LLM agents and tools.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "paths": paths,
        "components": {"schemas": SCHEMAS, "securitySchemes": _SCHEMES},
    }


def _operation(route: Route, routes: Iterable[Route]) -> dict[str, Any]:
    document = dict(route.document)
    done = document.pop("responses", {"200": {"description": "done"}})
    if links := _links(route, routes):
        done = {status: {**each, "links": links} for status, each in done.items()}
    responses = {"default": _error_response(), **done}
    operation: dict[str, Any] = {
        "operationId": _operation_id(route),
        "summary": route.summary,
        **document,
        "parameters": [*_path_parameters(route), *document.get("parameters", [])],
        "responses": responses,
        "security": document.get("security", _security(route)),
    }
    if route.needs is not None:
        operation["description"] = f"Needs the permission `{route.needs}`."
    return operation


def _operation_id(route: Route) -> str:
    name = re.sub(r"[^A-Za-z0-9]+", " ", route.path).title().replace(" ", "")
    return f"{route.method.lower()}{name}"


def _path_parameters(route: Route) -> list[Schema]:
    parameters = [path_parameter(route.path, name) for name in _PARAMETER.findall(route.path)]
    if not route.stays:
        return parameters
    # No examples for streams: a client that tries them would wait forever.
    return [{name: value for name, value in each.items() if name != "example"} for each in parameters]


def _security(route: Route) -> list[dict[str, list[str]]]:
    if route.access == "open":
        return []
    if route.access == "app":
        return [{"app": []}]
    schemes: list[dict[str, list[str]]] = [{"key": []}]
    if route.cookie:
        schemes.append({"page": []})
    return [{}, *schemes] if route.access == "loopback" else schemes


def _links(route: Route, routes: Iterable[Route]) -> Schema:
    """Return the OpenAPI links from a route that stores something to operations with the same parameters."""
    if route.method == "PUT":
        path, values = route.path, {name: f"$request.path.{name}" for name in _PARAMETER.findall(route.path)}
    elif "201" in route.document.get("responses", {}):
        path, values = f"{route.path}/{{name}}", {"name": "$response.body#/name"}
    else:
        return {}
    return {
        _operation_id(each): {"operationId": _operation_id(each), "parameters": values}
        for each in routes
        if (each.path == path or each.path.startswith(f"{path}/"))
        and each is not route
        and not each.stays
        and set(_PARAMETER.findall(each.path)) == values.keys()
    }


def _error_response() -> Schema:
    return {
        "description": "an error; `error.code` names it, and the table of codes has its status",
        "content": {"application/json": {"schema": ref("Result")}},
    }
