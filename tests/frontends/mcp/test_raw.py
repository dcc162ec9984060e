"""The face without a socket: clients that leave early, odd headers, answers that turn into streams."""

import json
from typing import Any

import pytest

from tests.frontends.mcp.mcp_gateway import CALLERS, McpGateway, serve_mcp
from tests.frontends.mcp.messages import ENVELOPE, message, modern_headers
from toolcrib.http import Disconnected, Receive, Request, send_response

pytestmark = pytest.mark.anyio

Said = list[dict[str, Any]]


async def speak(gateway: McpGateway, method: str, receive: Receive, **headers: str) -> Said:
    """Call the frontend without a socket; returns what it sent."""
    said: Said = []

    async def send(part: Any) -> None:
        said.append(dict(part))

    given = {"content-type": "application/json", "accept": "text/event-stream", **headers}
    pairs = [(name.encode(), value.encode()) for name, value in given.items()]
    scope = {"type": "http", "method": method, "path": "/mcp", "query_string": b"", "headers": pairs}
    request = Request(scope, receive, send)
    request.caller = CALLERS["bob"]
    answer = await gateway.face.answer(request)
    if answer is not None:
        await send_response(request, answer)
    return said


async def test_no_answer_after_disconnect_during_request() -> None:
    async def leave() -> dict[str, Any]:
        return {"type": "http.disconnect"}

    async with serve_mcp() as gateway:
        with pytest.raises(Disconnected):
            await speak(gateway, "POST", leave)


async def ask(gateway: McpGateway, sent: dict[str, Any], **headers: str) -> Said:
    async def give() -> dict[str, Any]:
        return {"type": "http.request", "body": json.dumps(sent).encode(), "more_body": False}

    return await speak(gateway, "POST", give, **headers)


async def test_white_space_around_a_header_is_no_part_of_it() -> None:
    sent = message("tools/call", name="say_hello", _meta=ENVELOPE)
    async with serve_mcp() as gateway:
        said = await ask(gateway, sent, **modern_headers("tools/call", " say_hello\t"))
        assert said[0]["status"] == 200
        assert json.loads(said[1]["body"])["result"]["content"][0]["text"] == "hello"


async def test_answer_is_json_unless_messages_precede_it() -> None:
    async with serve_mcp() as gateway:
        for token in (None, "the token"):
            meta = {**ENVELOPE, **({} if token is None else {"progressToken": token})}
            sent = message("tools/call", name="take_steps", _meta=meta)
            start, *parts = await ask(gateway, sent, **modern_headers("tools/call", "take_steps"))
            kind = dict(start["headers"])[b"content-type"]
            if token is None:
                assert kind == b"application/json"
                continue
            assert kind == b"text/event-stream"
            events = [json.loads(part["body"].partition(b"data: ")[2]) for part in parts if part["body"]]
            assert [event.get("method") for event in events] == ["notifications/progress"] * 3 + [None]
            assert {event["params"]["progressToken"] for event in events[:3]} == {"the token"}
            assert events[-1]["result"]["content"][0]["text"] == "done"
            assert [part["more_body"] for part in parts[:-1]] == [True] * 4


async def test_progress_token_length_is_limited() -> None:
    sent = message("tools/call", name="take_steps", _meta={**ENVELOPE, "progressToken": "t" * 257})
    async with serve_mcp() as gateway:
        said = await ask(gateway, sent, **modern_headers("tools/call", "take_steps"))
        assert said[0]["status"] == 400
        assert "at most 256" in json.loads(said[1]["body"])["error"]["message"]
