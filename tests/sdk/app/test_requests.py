"""Whatever an app receives, it answers in the protocol and never fails."""

from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.sdk.app.fake_gateway import USER, an_app, proof
from toolcrib.sdk import create_tool

pytestmark = pytest.mark.anyio

APP = an_app()
APP.register_tool(create_tool(name="echo", handler=lambda arguments, _: arguments))

values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**60), 2**60)
    | st.floats(allow_nan=False)
    | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
fields = st.sampled_from(
    ("name", "arguments", "context", "type", "userId", "sessionId", "mentraOSWebsocketUrl", "settings")
)
bodies = (
    st.binary(max_size=200)
    | values.map(orjson.dumps)
    | st.dictionaries(fields, values | st.sampled_from(("session_request", "stop_request"))).map(orjson.dumps)
)


async def asked(path: str, body: bytes, headers: dict[str, str], method: str = "POST") -> tuple[int, Any]:
    """Call the app without a network."""
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body}

    async def send(message: Any) -> None:
        sent.append(message)

    spelled = [(name.lower().encode(), value.encode("latin-1")) for name, value in headers.items()]
    scope = {"type": "http", "method": method, "path": path, "headers": spelled}
    await APP.asgi(scope, receive, send)
    return sent[0]["status"], orjson.loads(sent[1]["body"])


@pytest.mark.slow
@given(path=st.sampled_from(("/tool", "/webhook", "/settings")), body=bodies)
@settings(max_examples=200)
async def test_any_body_that_is_signed(path: str, body: bytes) -> None:
    status, answer = await asked(path, body, proof(body, user=USER, tool="echo"))
    assert status in {400, 401, 404} or (status == 200 and path != "/tool")
    assert answer.get("success") is False or answer["status"] in ("error", "success")


@pytest.mark.slow
@given(
    path=st.sampled_from(("/tool", "/webhook", "/settings")),
    body=bodies,
    key=st.text(st.characters(max_codepoint=255), max_size=80),
    signature=st.text(st.characters(max_codepoint=255), max_size=80),
)
@settings(max_examples=100)
async def test_any_bytes_without_proof(path: str, body: bytes, key: str, signature: str) -> None:
    headers = {"X-App-API-Key": key, "X-Toolcrib-Signature": signature}
    assert (await asked(path, body, headers))[0] == 401
    assert (await asked(path, body, {**proof(body, user=USER), "X-Toolcrib-Signature": signature}))[0] == 401


@pytest.mark.slow
@given(arguments=st.dictionaries(st.text(max_size=8), values, max_size=4), timestamp=values)
@settings(max_examples=100)
async def test_any_arguments_come_through(arguments: dict[str, Any], timestamp: Any) -> None:
    body = orjson.dumps(
        {"name": "echo", "arguments": arguments, "context": {"userId": USER, "timestamp": timestamp}}
    )
    status, answer = await asked("/tool", body, proof(body, user=USER, tool="echo"))
    assert status == 200
    expected = (
        arguments if isinstance(arguments.get("success"), bool) else {"success": True, "content": arguments}
    )
    assert answer == orjson.loads(orjson.dumps(expected))


async def test_a_session_needs_somewhere_to_be_kept() -> None:
    known = {"userId": USER, "sessionId": "s", "mentraOSWebsocketUrl": "ws://127.0.0.1:9/"}
    body = orjson.dumps({"type": "session_request", **known})
    status, answer = await asked("/webhook", body, proof(body, user=USER))
    assert (status, answer["status"]) == (500, "error")
    assert "lifespan" in answer["message"]


async def test_an_unknown_type_of_webhook() -> None:
    body = orjson.dumps({"type": "dance", "userId": USER})
    status, answer = await asked("/webhook", body, proof(body, user=USER))
    assert (status, answer["status"]) == (400, "error")
    assert "session_request" in answer["message"]


async def test_a_websocket_is_sent_away() -> None:
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        raise AssertionError

    async def send(message: Any) -> None:
        sent.append(message)

    await APP.asgi({"type": "websocket", "path": "/tool"}, receive, send)
    assert sent == [{"type": "websocket.close"}]
