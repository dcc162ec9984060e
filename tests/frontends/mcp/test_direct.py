"""The short way for plain modern requests gives what the SDK's way gives, and leaves it all else."""

from typing import Any

import httpx2
import pytest
from mcp_types import HEADER_MISMATCH, INVALID_PARAMS, INVALID_REQUEST

from tests.frontends.mcp.mcp_gateway import serve_mcp
from tests.frontends.mcp.messages import ENVELOPE, answer_of, ask, message, modern_headers

pytestmark = pytest.mark.anyio


def modern_call(**params: Any) -> dict[str, Any]:
    meta = {**ENVELOPE, **params.pop("meta", {})}
    return message("tools/call", **{"name": "say_hello", "_meta": meta, **params})


RIGHT = [
    modern_call(),
    modern_call(arguments=None),
    modern_call(meta={"vendor/x": 1}),
    modern_call(meta={"io.modelcontextprotocol/clientInfo": None}),
    modern_call(meta={"io.modelcontextprotocol/clientInfo": {"name": "c", "version": "1"}}),
    modern_call(meta={"io.modelcontextprotocol/logLevel": "info"}),
    modern_call(meta={"progressToken": 7}),
    modern_call(_vendor=1),
]
WRONG: list[tuple[dict[str, Any], dict[str, str], int, int]] = [
    (modern_call(), {"mcp-name": "echo"}, 400, HEADER_MISMATCH),
    (modern_call(), {"mcp-method": "tools/list"}, 400, HEADER_MISMATCH),
    (modern_call(meta={"io.modelcontextprotocol/protocolVersion": "2025-11-25"}), {}, 400, HEADER_MISMATCH),
    (modern_call(meta={"io.modelcontextprotocol/clientCapabilities": 5}), {}, 400, INVALID_PARAMS),
    (modern_call(meta={"io.modelcontextprotocol/clientInfo": {"name": 5}}), {}, 400, INVALID_PARAMS),
    (modern_call(_meta=None), {}, 400, INVALID_PARAMS),
    (message("tools/list", cursor="7", _meta=ENVELOPE), {}, 400, INVALID_REQUEST),
]


async def test_direct_and_full_path_give_equal_answers() -> None:
    async with serve_mcp() as gateway, httpx2.AsyncClient() as http:
        for sent in RIGHT:
            response = await ask(http, gateway.url(), sent)
            assert response.status_code == 200, sent
            result = answer_of(response)["result"]
            assert result["content"] == [{"type": "text", "text": "hello"}], sent
            assert result["resultType"] == "complete"
            assert result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "toolcrib"
        for sent, headers, status, code in WRONG:
            response = await ask(http, gateway.url(), sent, **headers)
            found = (response.status_code, response.json().get("error", {}).get("code"))
            assert found == (status, code), sent
        assert (await ask(http, gateway.url(), modern_call(), accept="text/html")).status_code == 406


async def test_a_modern_notification_is_taken_and_forgotten() -> None:
    async with serve_mcp() as gateway, httpx2.AsyncClient() as http:
        sent = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
        headers = modern_headers("notifications/cancelled")
        assert (await http.post(gateway.url(), json=sent, headers=headers)).status_code == 202


async def test_tool_disabled_meanwhile_is_not_found() -> None:
    async with serve_mcp() as gateway, httpx2.AsyncClient() as http:
        assert (await ask(http, gateway.url("alice"), modern_call())).status_code == 200
        gone = await ask(http, gateway.url("alice-off"), modern_call())
        assert (gone.status_code, gone.json()["error"]["code"]) == (400, INVALID_PARAMS)
        assert gone.json()["error"]["data"]["toolcrib/error"]["code"] == "TOOL_NOT_FOUND"


async def test_agent_name_from_headers_is_kept() -> None:
    async with serve_mcp() as gateway, httpx2.AsyncClient() as http:
        info = {"io.modelcontextprotocol/clientInfo": {"name": "c", "version": "1"}}
        sent = modern_call(name="echo", arguments={"text": "hi"}, meta=info)
        await ask(http, gateway.url(), sent)
        await ask(http, gateway.url(), sent, **{"x-agent-id": "robot"})
        plain, named = gateway.events.contexts
        assert (plain.agent_id, plain.agent_version) == ("c", "1")
        assert (named.agent_id, named.session_id, named.trace_id) == ("robot", "s", "t")
