"""The face without a socket: clients that leave early, streams that end before they begin, odd headers."""

import json
from typing import Any

import anyio
import pytest

from tests.faces.mcp.served import CALLERS, Place, served
from tests.faces.mcp.wire import ENVELOPE, message, modern_headers
from toolcrib.asgi import Receive

pytestmark = pytest.mark.anyio

Said = list[dict[str, Any]]


async def speak(place: Place, method: str, receive: Receive, **headers: str) -> Said:
    """Ask the face without a socket; return what it sent."""
    said: Said = []

    async def send(part: Any) -> None:
        said.append(dict(part))

    given = {"content-type": "application/json", "accept": "text/event-stream", **headers}
    pairs = [(name.encode(), value.encode()) for name, value in given.items()]
    scope = {"type": "http", "method": method, "path": "/mcp", "query_string": b"", "headers": pairs}
    await place.face({**scope, "toolcrib.caller": CALLERS["bob"]}, receive, send)
    return said


async def test_nobody_is_answered_who_left_before_the_end_of_the_request() -> None:
    async def leave() -> dict[str, Any]:
        return {"type": "http.disconnect"}

    async with served() as place:
        assert await speak(place, "POST", leave) == []


async def test_a_stream_that_is_ended_before_it_began_is_refused() -> None:
    waiting, said = anyio.Event(), Said()
    async with served() as place, anyio.create_task_group() as tasks:

        async def wait() -> dict[str, Any]:
            waiting.set()
            await anyio.sleep_forever()
            return {}

        async def open_stream() -> None:
            said.extend(await speak(place, "GET", wait))

        tasks.start_soon(open_stream)
        await waiting.wait()
        place.face.end("bob")
    assert said[0]["status"] == 503
    assert b"open it again" in said[1]["body"]


async def test_white_space_around_a_header_is_no_part_of_it() -> None:
    sent = json.dumps(message("tools/call", name="say_hello", _meta=ENVELOPE)).encode()
    headers = modern_headers("tools/call", " say_hello\t")

    async def give() -> dict[str, Any]:
        return {"type": "http.request", "body": sent, "more_body": False}

    async with served() as place:
        said = await speak(place, "POST", give, **headers)
        assert said[0]["status"] == 200
        assert json.loads(said[1]["body"])["result"]["content"][0]["text"] == "hello"
