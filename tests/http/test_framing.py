"""Framing of HTTP/1 messages on the wire: trailers, chunk extensions, transfer codings, ignored upgrades."""

import json
from collections.abc import AsyncGenerator

import anyio
import pytest

from tests.frontends.rest.tools import add
from tests.gateways import ADMIN, listening, open_gateway
from tests.http.test_protocol import Place, calling, everything, refusal, say
from toolcrib.http.framing import MAX_FRAMING_BYTES
from toolcrib.http.request import DEFAULT_BODY_BYTES

pytestmark = [pytest.mark.anyio, pytest.mark.slow, pytest.mark.requirement("I5")]

CALL = json.dumps({"name": "add", "arguments": {"a": 1, "b": 2}}).encode()
METRIC = "toolcrib_http_trailer_fields_dropped_total "


@pytest.fixture
async def server() -> AsyncGenerator[Place]:
    async with open_gateway(tools=[add]) as gateway, listening(gateway.server) as url:
        host, port = url.removeprefix("http://").split(":")
        yield gateway, host, int(port)


def chunked_head(*lines: str, key: str | None = ADMIN, close: bool = True) -> bytes:
    head = ["POST /api/tools/execute HTTP/1.1", "Host: localhost", "Transfer-Encoding: chunked", *lines]
    head += [f"Authorization: Bearer {key}"] if key else []
    head += ["Connection: close"] if close else []
    return "\r\n".join((*head, "", "")).encode()


def chunks(body: bytes, size: int, extension: bytes = b"") -> bytes:
    parts = [body[at : at + size] for at in range(0, len(body), size)]
    return b"".join(b"%x%b\r\n%b\r\n" % (len(part), extension, part) for part in parts) + b"0\r\n"


async def say_together(server: Place, head: bytes, after: bytes) -> bytes:
    return await say(server, head + after)


async def say_apart(server: Place, head: bytes, after: bytes) -> bytes:
    """Send what follows on the head once the gateway waits for it."""
    _, host, port = server
    async with await anyio.connect_tcp(host, port) as stream:
        await stream.send(head.removesuffix(b"\r\n") + b"Expect: 100-continue\r\n\r\n")
        assert (await stream.receive()).startswith(b"HTTP/1.1 100 ")
        await stream.send(after)
        return await everything(stream)


def result(answer: bytes) -> tuple[int, object]:
    head, _, body = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body).get("data")


async def dropped(server: Place) -> int:
    metrics = (await server[0].request("GET", "/metrics")).body.decode()
    return int(float(metrics.partition("\n" + METRIC)[2].split("\n", 1)[0]))


async def test_small_trailers_are_dropped_and_counted(server: Place) -> None:
    trailers = b"X-Checksum: 1\r\nAuthorization: Bearer nobody\r\nHost: evil.example\r\n\r\n"
    before = await dropped(server)
    answer = await say(server, chunked_head() + chunks(CALL, 10) + trailers)
    assert result(answer) == (200, {"total": 3})
    assert await dropped(server) == before + 3


@pytest.mark.parametrize(
    "trailer",
    [
        f"Authorization: Bearer {ADMIN}",
        "Host: evil.example",
        "X-Forwarded-For: 127.0.0.1",
        "X-User-Id: eve",
        "Idempotency-Key: k",
        "Expect: 100-continue",
        "Upgrade: websocket",
    ],
)
async def test_trailer_fields_never_reach_the_request(server: Place, trailer: str) -> None:
    answer = await say(server, chunked_head(key=None) + chunks(CALL, 10) + f"{trailer}\r\n\r\n".encode())
    assert refusal(answer)[1]["code"] == "UNAUTHENTICATED"


@pytest.mark.parametrize("extra", [MAX_FRAMING_BYTES * 2, MAX_FRAMING_BYTES * 20])
@pytest.mark.parametrize("kind", ["one trailer", "many trailers", "unfinished trailer", "extension"])
@pytest.mark.parametrize("apart", [True, False])
async def test_a_few_kilobytes_of_framing_are_refused(
    server: Place, extra: int, kind: str, *, apart: bool
) -> None:
    after = {
        "one trailer": chunks(CALL, 100) + b"X: " + b"a" * extra + b"\r\n\r\n",
        "many trailers": chunks(CALL, 100) + b"X: 0123456789\r\n" * (extra // 15) + b"\r\n",
        "unfinished trailer": chunks(CALL, 100) + b"X: " + b"a" * extra,
        "extension": chunks(CALL, 100, b";x=" + b"a" * extra) + b"\r\n",
    }[kind]
    answer = await (say_apart if apart else say_together)(server, chunked_head(), after)
    assert refusal(answer)[0] == 400
    assert answer.count(b"HTTP/1.1 ") == 1


async def test_usual_framing_passes(server: Place) -> None:
    for after in (
        chunks(CALL, 1) + b"\r\n",
        chunks(CALL, 7, b";name=value") + b"X-Trailer: 1\r\n\r\n",
        b"%016x\r\n%b\r\n0\r\n\r\n" % (len(CALL), CALL),
    ):
        assert result(await say(server, chunked_head() + after)) == (200, {"total": 3})


@pytest.mark.no_cover  # four million callbacks: coverage takes four times as long
async def test_one_byte_chunks_up_to_the_body_limit_pass(server: Place) -> None:
    body = CALL.ljust(DEFAULT_BODY_BYTES)
    assert result(await say(server, chunked_head() + chunks(body, 1) + b"\r\n")) == (200, {"total": 3})


async def test_pipelined_chunked_requests_are_not_blamed(server: Place) -> None:
    long = calling(CALL + b" " * 20_000)
    one = chunked_head(close=False) + chunks(CALL, 5) + b"T: 1\r\n\r\n"
    answer = await say(server, long + one + long + chunked_head() + chunks(CALL, 5) + b"\r\n")
    assert answer.count(b"HTTP/1.1 200 OK") == 4
    assert answer.count(b"HTTP/1.1 ") == 4


@pytest.mark.parametrize(
    "lines",
    [
        b"Transfer-Encoding: gzip, chunked",
        b"Transfer-Encoding: chunked, chunked",
        b"Transfer-Encoding: identity",
        b"Transfer-Encoding: chunked;q=1",
        b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
        b"Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked",
        b"Transfer-Encoding:",
    ],
)
async def test_other_transfer_codings_are_refused(server: Place, lines: bytes) -> None:
    words = b"POST /api/tools/execute HTTP/1.1\r\nHost: localhost\r\n" + lines + b"\r\n\r\n0\r\n\r\n"
    answer = await say(server, words)
    assert refusal(answer)[0] == 400
    assert answer.count(b"HTTP/1.1 ") == 1


async def test_transfer_coding_names_ignore_case(server: Place) -> None:
    head = chunked_head().replace(b": chunked", b": ChunkeD ")
    assert result(await say(server, head + chunks(CALL, 10) + b"\r\n")) == (200, {"total": 3})


@pytest.mark.parametrize("version", [b"1.0", b"2.0", b"0.9"])
async def test_chunked_needs_the_version_that_has_it(server: Place, version: bytes) -> None:
    head = chunked_head().replace(b"HTTP/1.1", b"HTTP/" + version)
    assert refusal(await say(server, head + chunks(CALL, 10) + b"\r\n"))[0] == 400


@pytest.mark.parametrize(
    "words", [b"GET /health\r\n\r\n", b"GET /health HTTP/2.0\r\nHost: localhost\r\n\r\n"]
)
async def test_other_versions_are_refused(server: Place, words: bytes) -> None:
    assert refusal(await say(server, words))[0] == 400


UPGRADE = ("Upgrade: h2c", "HTTP2-Settings: AAMAAABk", "Connection: Upgrade, HTTP2-Settings")


@pytest.mark.parametrize("apart", [True, False])
@pytest.mark.parametrize("framing", ["length", "chunked"])
async def test_body_after_an_ignored_upgrade_is_a_body(server: Place, framing: str, *, apart: bool) -> None:
    body = CALL if framing == "length" else chunks(CALL, 10) + b"\r\n"
    head = (
        calling(CALL, *UPGRADE).removesuffix(CALL)
        if framing == "length"
        else chunked_head(*UPGRADE, close=False)
    )
    last = b"GET /api/none HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    answer = await (say_apart if apart else say_together)(server, head, body + last)
    assert b'"total":3' in answer
    assert answer.count(b"HTTP/1.1 ") == 2


async def test_several_ignored_upgrades_in_one_read(server: Place) -> None:
    one = calling(CALL, *UPGRADE)
    broken = b"GET / HTTP/1.1\r\nHost localhost\r\n\r\n"
    answer = await say(server, one + one + broken)
    assert answer.count(b"HTTP/1.1 200 OK") == 2
    assert answer.count(b"HTTP/1.1 ") == 2


async def test_fault_after_request_keeps_its_answer(server: Place) -> None:
    bad_body = chunked_head(close=False) + b"5\r\nabcdeX"
    for fault in (b"NONSENSE\r\n\r\n", bad_body):
        answer = await say(server, calling(CALL) + fault)
        assert result(answer) == (200, {"total": 3})
        assert answer.count(b"HTTP/1.1 ") == 1
        assert b"connection: close" in answer


async def test_framing_of_a_pipelined_request_is_bounded_too(server: Place) -> None:
    answer = await say(server, calling(CALL) + chunked_head() + b"1;" + b"a" * 1_000_000)
    assert answer.startswith(b"HTTP/1.1 200 OK")
    assert answer.count(b"HTTP/1.1 ") <= 2


async def test_fault_in_the_body_of_an_answered_request(server: Place) -> None:
    head = b"GET /health HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    _, host, port = server
    async with await anyio.connect_tcp(host, port) as stream:
        await stream.send(head)
        assert (await stream.receive()).startswith(b"HTTP/1.1 200 OK")
        await stream.send(b"zz\r\n")
        assert await everything(stream) == b""


async def test_refused_socket_closes_the_connection(server: Place) -> None:
    hidden = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
    head = (
        b"GET /app-ws HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        b"Content-Length: %d\r\n\r\n" % len(hidden)
    )
    answer = await say(server, head + hidden)
    assert answer.count(b"HTTP/1.1 ") == 1
    assert b"connection: close" in answer
