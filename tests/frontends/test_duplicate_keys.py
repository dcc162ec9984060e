"""A key given twice in the envelope of a request is refused on every frontend."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.frontends.mcp.messages import ENVELOPE, modern_headers
from tests.frontends.mcp.test_stdio import command, pipe
from tests.frontends.rest.tools import add
from tests.gateways import InProcessGateway, open_gateway

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("I5")]
META = json.dumps(ENVELOPE)
CALL = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add","arguments":{"a":1},"_meta":%s}}'

__all__ = ["command"]


@pytest.mark.parametrize(
    "method, target, body, path",
    [
        ("POST", "/api/tools/execute", '{"name":"add","name":"add","arguments":{"a":1}}', "name"),
        ("POST", "/api/tools/execute", '{"name":"x","n\\u0061me":"add","arguments":{"a":1}}', "name"),
        ("POST", "/api/tools/execute", '{"name":"add","arguments":{},"arguments":{"a":1}}', "arguments"),
        ("POST", "/api/tools/answer", '{"format":"openai","format":"openai","message":{}}', "format"),
        ("POST", "/api/keys", '{"name":"k","permissions":[],"permissions":["*"]}', "permissions"),
        ("PUT", "/api/apps/com.example.a", '{"name":"a","name":"b"}', "name"),
        ("PUT", "/api/users/ann/session", '{"device":{"a":1,"a":2}}', "device.a"),
    ],
)
@pytest.mark.check(15)
async def test_rest_refuses_a_repeated_key(method: str, target: str, body: str, path: str) -> None:
    async with open_gateway(tools=[add]) as gateway:
        reply = await gateway.request(method, target, body=body.encode())
        assert (reply.status, reply.code) == (400, "INVALID_REQUEST")
        assert reply.json["error"]["path"] == path


@pytest.mark.check(15)
async def test_rest_keeps_repeated_keys_within_arguments() -> None:
    async with open_gateway(tools=[add]) as gateway:
        body = b'{"name":"add","arguments":{"a":1,"a":5,"b":2}}'
        reply = await gateway.request("POST", "/api/tools/execute", body=body)
        assert reply.json["data"] == {"total": 7}


REPEATED = [
    CALL.replace('"id":1', '"id":1,"id":2'),
    CALL.replace('"method"', '"method":"ping","m\\u0065thod"'),
    CALL.replace('"params":{', '"params":{"name":"other",'),
    CALL.replace('"name":"add"', '"name":"add","Name":"other"'),
    CALL.replace('"id":1', '"id":1,"Method":"ping"'),
    CALL.replace("%s", META.replace("{", '{"a":1,"a":2,', 1)),
    CALL.replace("%s", META.replace("{", '{"a":1,"A":2,', 1)),
]


async def post(gateway: InProcessGateway, body: str) -> Any:
    sent = body.replace("%s", META).encode()
    return await gateway.request("POST", "/mcp", body=sent, headers=modern_headers("tools/call", "add"))


@pytest.mark.check(15)
async def test_mcp_over_http_refuses_a_repeated_key() -> None:
    async with open_gateway(tools=[add]) as gateway:
        for body in REPEATED:
            reply = await post(gateway, body)
            assert reply.status == 400, body
            assert reply.json["error"]["code"] == -32600, body
        inside = await post(gateway, CALL.replace('{"a":1}', '{"a":1,"a":4}'))
        assert inside.json["result"]["structuredContent"]["total"] == 5


@pytest.mark.slow
@pytest.mark.check(15)
def test_mcp_over_stdio_refuses_a_repeated_key(command: Any, tmp_path: Path) -> None:
    del tmp_path
    answers, _ = pipe(command, *(each.replace("%s", META) for each in REPEATED))
    assert [each["error"]["code"] for each in answers] == [-32600] * len(REPEATED)
