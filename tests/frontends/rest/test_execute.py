"""One call over REST: its request, its response, and events while it runs."""

import json
from typing import Any
from uuid import UUID

import anyio
import pytest

from tests.frontends.rest.tools import WaitingTool
from tests.gateways import ADMIN, HOST, AsgiConnection, InProcessGateway, open_gateway, scope
from tests.hint_fields import HINT_FIELD_SET
from toolcrib.frontends.rest import tool_routes
from toolcrib.gateway import MAX_ARGUMENT_BYTES

pytestmark = pytest.mark.anyio


def whole(reply: Any) -> None:
    """Every response has these headers."""
    assert set(reply) >= {
        "success",
        "status",
        "content",
        "message",
        "agentHints",
        "metadata",
        "mentraExtensions",
    }
    assert set(reply["agentHints"]) >= HINT_FIELD_SET
    assert isinstance(reply["message"], str)
    assert reply["message"]
    UUID(reply["metadata"]["traceId"])
    UUID(reply["metadata"]["correlationId"])


@pytest.mark.requirement("G1")
async def test_a_result(gateway: InProcessGateway) -> None:
    reply = await gateway.call("tools:add", {"a": 2, "b": 3})
    whole(reply.json)
    assert reply.status == 200
    assert reply.headers["cache-control"] == "no-store"
    assert (reply.json["success"], reply.json["status"]) == (True, "success")
    assert reply.json["data"] == {"total": 5}
    assert reply.json["message"] == "That makes 5."
    assert "error" not in reply.json


@pytest.mark.requirement("G1")
async def test_a_failure_has_a_sentence_without_codes_or_addresses(gateway: InProcessGateway) -> None:
    for name in ("fail", "crash", "nowhere", "ask-slowly"):
        reply = (await gateway.call(name)).json
        whole(reply)
        assert (reply["success"], reply["status"]) == (False, "error")
        assert "data" not in reply
        assert "_" not in reply["message"]
        assert "/" not in reply["message"]


async def test_tool_exception_text_is_not_disclosed(gateway: InProcessGateway) -> None:
    reply = await gateway.call("crash")
    for part in (b"hunter2", b"/etc/shadow", b"RuntimeError", b"Traceback", b".py"):
        assert part not in reply.body


@pytest.mark.parametrize("name", ["tools:add", "add", "ADD", "tools:ADD"])
async def test_any_name_of_a_tool(gateway: InProcessGateway, name: str) -> None:
    assert (await gateway.call(name, {"a": 1})).json["data"] == {"total": 2}


@pytest.mark.parametrize("given", [{}, {"arguments": None}, {"arguments": {}}, {"arguments": "{}"}])
async def test_no_arguments(gateway: InProcessGateway, given: dict[str, Any]) -> None:
    reply = await gateway.request("POST", "/api/tools/execute", body={"name": "get_datetime", **given})
    assert reply.status == 200


async def test_arguments_as_a_json_text(gateway: InProcessGateway) -> None:
    assert (await gateway.call("add", '{"a": 40, "b": 2}')).json["data"] == {"total": 42}


@pytest.mark.parametrize(
    "arguments, says",
    [
        ('{"a": 1', "line 1, column 8"),
        ("", "empty"),
        ("[1]", "must be an object"),
        ("3", "must be an object"),
        (3, "must be an object"),
        ([1], "must be an object"),
        (False, "must be an object"),
        ("[" * 80 + "]" * 80, "64 levels"),
        ({"a": "one"}, "integer"),
        ({}, "a"),
    ],
)
async def test_wrong_arguments(gateway: InProcessGateway, arguments: Any, says: str) -> None:
    reply = await gateway.call("add", arguments)
    assert (reply.status, reply.code) == (400, "INVALID_ARGUMENTS")
    assert says in reply.json["error"]["message"]
    assert reply.json["error"]["path"].startswith("arguments")


@pytest.mark.parametrize(
    "body, says",
    [
        ({}, "name must be"),
        ({"name": ""}, "name must be"),
        ({"name": 3}, "name must be"),
        ({"name": "add", "argument": {}}, "unknown field 'argument'; the fields are name, arguments"),
        ({"name": "add", "user_id": "eve"}, "unknown field 'user_id'"),
        ([], "must be a JSON object"),
        ("add", "must be a JSON object"),
        (None, "must be a JSON object"),
        ({"name": "add", "arguments": {}, "context": 3}, "context must be a string"),
        ({"name": "add", "arguments": {}, "idempotencyKey": ""}, "idempotencyKey must be a string"),
        ({"name": "add", "arguments": {}, "idempotencyKey": "a b"}, "idempotencyKey must be a string"),
        ({"name": "add", "arguments": {}, "state": 1}, "state must be the string"),
        ({"name": "add", "arguments": {}, "answers": []}, "answers must be an object"),
        ({"name": "add", "arguments": {}, "capabilities": True}, "capabilities must be an object"),
        (
            {"name": "add", "arguments": {}, "capabilities": {"roots": 1}},
            "capabilities.roots must be an object",
        ),
    ],
)
async def test_a_wrong_body(gateway: InProcessGateway, body: Any, says: str) -> None:
    reply = await gateway.request("POST", "/api/tools/execute", body=json.dumps(body).encode())
    assert (reply.status, reply.code) == (400, "INVALID_REQUEST")
    assert says in reply.json["error"]["message"]


@pytest.mark.requirement("F4")
async def test_the_context_decides_again_when_a_tool_is_called(gateway: InProcessGateway) -> None:
    few = await gateway.key("few", contexts=["few"])
    seen = {"name": "add", "arguments": {"a": 1}, "context": "few"}
    assert (await gateway.request("POST", "/api/tools/execute", body=seen)).status == 200
    able: dict[str, Any] = {"capabilities": {"roots": {}}}
    for more in ({}, {"arguments": None}, {"state": "x"}, able):
        unseen: dict[str, Any] = {"name": "who", "context": "few", **more}
        assert (await gateway.request("POST", "/api/tools/execute", body=unseen)).code == "TOOL_NOT_FOUND"
    assert (await gateway.call("who", key=few)).code == "TOOL_NOT_FOUND"
    for context in ("default", "nowhere"):
        reply = await gateway.request(
            "POST", "/api/tools/execute", key=few, body={**seen, "context": context}
        )
        assert (reply.status, reply.code) == (404, "NOT_FOUND")


async def test_arguments_have_a_limit_of_their_own(gateway: InProcessGateway) -> None:
    reply = await gateway.call("echo", {"value": {"text": "x" * (MAX_ARGUMENT_BYTES + 1)}})
    assert (reply.status, reply.code) == (413, "PAYLOAD_TOO_LARGE")
    assert reply.json["error"]["path"] == "arguments"
    assert (await gateway.call("echo", {"value": {"text": "x" * 1000}})).status == 200


@pytest.mark.requirement("E5")
async def test_tool_receives_caller_identity(gateway: InProcessGateway) -> None:
    headers = {
        "x-agent-id": "pilot",
        "x-agent-version": "3",
        "x-session-id": "s-1",
        "x-correlation-id": "req-1",
        "traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "x-user-id": "ann",
    }
    await gateway.request("PUT", "/api/users/ann/session")
    reply = await gateway.call("who", headers=headers)
    told, metadata = reply.json["data"], reply.json["metadata"]
    assert (told["user"], told["agent"], told["version"], told["session"]) == ("ann", "pilot", "3", "s-1")
    assert told["trace"] == metadata["traceId"] == "4bf92f35-77b3-4da6-a3ce-929d0e0e4736"
    assert told["correlation"] == metadata["correlationId"]
    again = await gateway.call("nowhere", headers=headers)
    assert again.json["metadata"]["correlationId"] == metadata["correlationId"]


async def test_the_caller_decides_how_long_it_waits() -> None:
    waiting = WaitingTool()
    async with open_gateway(tools=[waiting.tool()]) as gateway:
        with anyio.fail_after(10):
            reply = await gateway.call("wait", headers={"x-timeout-ms": "500"})
        assert (reply.status, reply.code) == (504, "TIMEOUT")
        assert waiting.cancelled.is_set()


def events(body: bytes) -> list[tuple[str, Any]]:
    """Read an event stream."""
    found: list[tuple[str, Any]] = []
    for block in body.decode().strip().split("\n\n"):
        if not block.startswith(":"):
            name, data = block.split("\n")
            found.append((name.removeprefix("event: "), json.loads(data.removeprefix("data: "))))
    return found


STREAM = {"accept": "text/event-stream"}


@pytest.mark.requirement("D14")
async def test_events_while_it_runs(gateway: InProcessGateway) -> None:
    reply = await gateway.call("count", {"to": 2}, headers=STREAM)
    assert reply.status == 200
    assert reply.headers["content-type"] == "text/event-stream"
    assert "content-length" not in reply.headers
    told = events(reply.body)
    assert told[:2] == [
        ("progress", {"done": 0, "total": 2, "message": "at 0"}),
        ("progress", {"done": 1, "total": 2, "message": "at 1"}),
    ]
    name, result = told[2]
    whole(result)
    assert (name, result["data"]) == ("result", 2)


async def test_a_failure_is_a_result_event(gateway: InProcessGateway) -> None:
    reply = await gateway.call("fail", headers=STREAM)
    ((name, result),) = events(reply.body)
    assert (name, result["error"]["toolCode"]) == ("result", "NOT_TODAY")


async def test_a_refusal_before_the_stream_has_its_own_status(gateway: InProcessGateway) -> None:
    reply = await gateway.call("add", "{", headers=STREAM)
    assert (reply.status, reply.code) == (400, "INVALID_ARGUMENTS")


def asked(body: bytes) -> dict[str, Any]:
    headers = {"host": HOST, "authorization": f"Bearer {ADMIN}", "content-type": "application/json", **STREAM}
    return scope(
        "POST", "/api/tools/execute", [(name.encode(), value.encode()) for name, value in headers.items()]
    )


async def test_client_disconnect_cancels_the_call() -> None:
    waiting, gone = WaitingTool(), anyio.Event()
    async with open_gateway(tools=[waiting.tool()]) as gateway:
        teller = AsgiConnection(b'{"name": "wait"}', leaves=gone)
        with anyio.fail_after(10):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(gateway.server, asked(b""), teller.receive, teller.send)
                await waiting.started.wait()
                gone.set()
                await waiting.cancelled.wait()
        assert b"result" not in teller.reply().body
        assert gateway.server.active == 0


async def test_a_quiet_stream_is_kept_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    waiting = WaitingTool()
    monkeypatch.setattr(tool_routes.ExecuteRoute.__init__, "__kwdefaults__", {"keep_alive": 0.001})
    async with open_gateway(tools=[waiting.tool()]) as gateway:
        gone = anyio.Event()
        teller = AsgiConnection(b'{"name": "wait"}', leaves=gone)
        heard = anyio.Event()

        async def send(message: Any) -> None:
            await teller.send(message)
            if message.get("body", b"").startswith(b":"):
                heard.set()

        with anyio.fail_after(10):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(gateway.server, asked(b""), teller.receive, send)
                await heard.wait()
                gone.set()
