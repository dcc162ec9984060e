"""A server may ask what the caller declared and the operator lets through, and nothing else."""

from typing import Any

import pytest

from toolcrib.mcp.revisions import RELAYS, relayed_capabilities, request_error
from toolcrib.sources.mcp.connection import McpSettings

FORM: dict[str, Any] = {}
URL: dict[str, Any] = {"mode": "url", "url": "https://example.com"}
SAMPLE: dict[str, Any] = {"messages": []}
TOOLED: dict[str, Any] = {"messages": [], "tools": []}
METHOD, PARAMS = -32601, -32602


@pytest.mark.requirement("D14")
@pytest.mark.parametrize(
    "capabilities, method, params, code",
    [
        ({"elicitation": {}}, "elicitation/create", FORM, None),
        ({"elicitation": {}}, "elicitation/create", {"mode": "form"}, None),
        ({"elicitation": {}}, "elicitation/create", URL, PARAMS),
        ({"elicitation": {"form": {}}}, "elicitation/create", URL, PARAMS),
        ({"elicitation": {"url": {}}}, "elicitation/create", URL, None),
        ({"elicitation": {"url": {}}}, "elicitation/create", FORM, PARAMS),
        ({"elicitation": {"form": {}, "url": {}}}, "elicitation/create", FORM, None),
        ({"elicitation": {}}, "elicitation/create", {"mode": ["form"]}, PARAMS),
        ({"elicitation": {}}, "sampling/createMessage", SAMPLE, METHOD),
        ({"sampling": {}}, "sampling/createMessage", SAMPLE, None),
        ({"sampling": {}}, "sampling/createMessage", TOOLED, PARAMS),
        ({"sampling": {}}, "sampling/createMessage", {"toolChoice": {}}, PARAMS),
        ({"sampling": {"tools": {}}}, "sampling/createMessage", TOOLED, None),
        ({"roots": {}}, "roots/list", {}, None),
        ({"roots": None}, "roots/list", {}, METHOD),
        ({}, "roots/list", {}, METHOD),
        ({"tasks": {}, "": {}}, "tasks/list", {}, METHOD),
    ],
)
def test_relayable_capabilities(
    capabilities: dict[str, Any], method: str, params: dict[str, Any], code: int | None
) -> None:
    found = request_error(method, params, capabilities)
    assert (found and found[0]) == code


@pytest.mark.requirement("D14")
def test_server_sees_relayed_capabilities_as_declared() -> None:
    declared: dict[str, Any] = {
        "experimental": {},
        "roots": {"listChanged": True},
        "elicitation": {"url": {}},
        "sampling": 1,
    }
    assert relayed_capabilities(declared, RELAYS) == {
        "elicitation": {"url": {}},
        "roots": {"listChanged": True},
    }
    assert relayed_capabilities(declared, {"roots"}) == {"roots": {"listChanged": True}}
    assert relayed_capabilities(declared, ()) == relayed_capabilities({}, RELAYS) == {}


def test_roots_are_not_sent_to_programs_by_default() -> None:
    assert McpSettings(id="x").relays == {"elicitation", "sampling"}
    assert McpSettings(id="x", transport="http").relays == McpSettings(id="x", transport="sse").relays
    assert McpSettings(id="x", transport="http").relays == {"elicitation", "sampling", "roots"}
    assert McpSettings(id="x", relay=frozenset({"roots"})).relays == {"roots"}
    assert McpSettings(id="x", transport="http", relay=frozenset()).relays == frozenset()
