"""Answers as they go out: one head, one body, and headers that keep them safe."""

from typing import Any

import pytest

from tests.gateways import AsgiConnection
from tests.http.requests import request
from toolcrib.errors import CODES, problem
from toolcrib.http import HttpResponse, Write, json_response, result_response, send_response, sse_event
from toolcrib.http.response import EVENT_STREAM_HEADERS
from toolcrib.model import Result

pytestmark = pytest.mark.anyio


async def test_two_messages_and_no_more() -> None:
    sender = AsgiConnection()
    await send_response(request(sender=sender), json_response({"a": 1}, 201, (b"x-more", b"1")))
    assert len(sender.sent) == 2
    reply = sender.reply()
    assert (reply.status, reply.json) == (201, {"a": 1})
    assert reply.headers == {
        "content-type": "application/json",
        "cache-control": "no-store",
        "x-content-type-options": "nosniff",
        "x-more": "1",
        "content-length": "7",
    }


async def test_a_head_has_the_length_and_no_body() -> None:
    sender = AsgiConnection()
    await send_response(request("HEAD", sender=sender), json_response([1, 2]))
    assert sender.reply().headers["content-length"] == "5"
    assert sender.reply().body == b""


async def test_a_stream_writes_itself() -> None:
    async def tell(write: Write) -> None:
        await write(sse_event("progress", b"{}"))
        await write(sse_event("result", b"[]"))

    sender = AsgiConnection()
    await send_response(request(sender=sender), HttpResponse(200, b"", EVENT_STREAM_HEADERS, tell))
    reply = sender.reply()
    assert reply.body == b"event: progress\ndata: {}\n\nevent: result\ndata: []\n\n"
    assert "content-length" not in reply.headers
    assert [part.get("more_body", False) for part in sender.sent[1:]] == [True, True, False]


@pytest.mark.requirement("D5")
@pytest.mark.parametrize("code", CODES)
def test_every_code_has_its_status_and_its_headers(code: str) -> None:
    more = {"details": {"allow": ["GET"]}} if code == "METHOD_NOT_ALLOWED" else {}
    answer = result_response(Result(problem=problem(code, "said", retry_after=1.2, **more)))
    headers = dict(answer.headers)
    assert answer.status == CODES[code].status
    assert headers[b"retry-after"] == b"2"
    assert (b"www-authenticate" in headers) is (answer.status == 401)
    assert (b"allow" in headers) is (answer.status == 405)
    assert (headers.get(b"connection") == b"close") is (answer.status == 413)


def test_a_success_is_plain() -> None:
    assert result_response(Result(data=1)).status == 200


@pytest.mark.parametrize("details", [{}, {"allow": "GET"}, {"allow": [1]}, {"allow": ["GET\r\nx: y"]}])
def test_a_tools_405_without_methods_allows_none(details: dict[str, Any]) -> None:
    """A tool may raise any code, and does not know the methods of the route."""
    answer = result_response(Result(problem=problem("METHOD_NOT_ALLOWED", "…", details=details)))
    assert (answer.status, dict(answer.headers)[b"allow"]) == (405, b"")
