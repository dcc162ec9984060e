"""What was sent and what was not: every way in which a connection over HTTP can fail says which it is."""

import ssl
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import anyio
import orjson
import pytest
from aiohttp import web
from anyio.abc import SocketStream
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from tests.sources.mcp.upstream import (
    FREE,
    HEAD,
    Raw,
    Told,
    answer,
    ask,
    dialled,
    raw,
    serving,
)
from tests.texts import matches
from toolcrib.egress import Egress
from toolcrib.sources.mcp.connection import ConnectionLost, InvalidResponse, NotSent, ServerError
from toolcrib.sources.mcp.http_session import modern_headers
from toolcrib.sources.mcp.http_transport import HttpTransport

JSON, STREAM = b"application/json", b"text/event-stream"
CHUNKED = b"Transfer-Encoding: chunked\r\n"


async def reset(connection: SocketStream, _: bytes) -> None:
    pass


def saying(said: bytes) -> Callable[[SocketStream, bytes], Awaitable[None]]:
    async def behave(connection: SocketStream, _: bytes) -> None:
        await connection.send(said)

    return behave


@pytest.mark.requirement("I5")
@pytest.mark.parametrize(
    "behave,fault",
    [
        (reset, ConnectionLost),
        (saying(b"HTTP/1.1 200 OK\r\nContent-Ty"), ConnectionLost),
        (saying(b"HTTP/1.1 100 Continue\r\n\r\n"), ConnectionLost),
        (saying(HEAD % (JSON, b"Content-Length: 100\r\n") + b'{"id"'), ConnectionLost),
        (saying(HEAD % (JSON, CHUNKED) + b"5\r\n{"), ConnectionLost),
        (saying(HEAD % (STREAM, CHUNKED) + b"5\r\ndata:\r\n"), ConnectionLost),
        (saying(HEAD % (STREAM, b"") + b"data: {}"), ConnectionLost),
        (saying(HEAD % (JSON, CHUNKED) + b"zz\r\n"), InvalidResponse),
        (saying(b"SSH-2.0-OpenSSH\r\n\r\n"), InvalidResponse),
        (saying(b"HTTP/1.1 200 OK\r\nX: " + b"x" * 100_000 + b"\r\n\r\n"), InvalidResponse),
        (saying(b"HTTP/1.1 200 OK\r\n" + b"X: x\r\n" * 10_000 + b"\r\n"), InvalidResponse),
    ],
)
async def test_a_connection_that_breaks_after_sending_is_cut(behave: Raw, fault: type[ServerError]) -> None:
    async with raw(behave) as url:
        for era in ("modern", "legacy"):
            with pytest.raises(fault):
                await ask(url, era=era)


async def test_a_request_is_never_sent_twice() -> None:
    requests = 0

    async def once(connection: SocketStream, head: bytes) -> None:
        nonlocal requests
        requests += 1
        body = b'{"jsonrpc":"2.0","id":1,"result":{}}'
        await connection.send(HEAD % (JSON, b"Content-Length: %d\r\n" % len(body)) + body)
        await connection.receive()
        requests += 1

    async with raw(once) as url, dialled(url) as connection:
        assert await connection.request("x", b"{}") == {}
        # The connection is kept, and closed by the server the moment it is used again.
        with pytest.raises(ConnectionLost):
            await connection.request("x", b"{}")
        assert requests == 2


async def test_unsent_request_is_reported_as_unsent(free_port: int) -> None:
    for url in (f"http://127.0.0.1:{free_port}/mcp", "http://nowhere.invalid/mcp"):
        async with dialled(url) as connection:
            with pytest.raises(NotSent, match="cannot be reached: "):
                await connection.request("x", b"{}")
            with pytest.raises(NotSent):
                await connection.notify("x", b"{}")
    async with raw(saying(b"HTTP/1.1 400 this is not TLS\r\n\r\n")) as url:
        with pytest.raises(NotSent, match="TLS"):
            await ask(url.replace("http:", "https:"))


async def test_a_connection_that_takes_too_long_was_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolcrib.sources.mcp.http_session.CONNECT_TIMEOUT_SECONDS", 0.1)

    async def mute(connection: SocketStream, _: bytes) -> None:
        await anyio.sleep_forever()

    async with raw(mute) as url:
        with pytest.raises(NotSent, match=r"within 0\.1 s"):
            await ask(url.replace("http:", "https:"))


def certificate(folder: Path) -> ssl.SSLContext:
    """What a server needs to call itself `localhost`, signed by nobody but itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    signed = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now)
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    both = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()) + signed.public_bytes(
        Encoding.PEM
    )
    path = folder / "both.pem"
    path.write_bytes(both)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    return context


async def test_untrusted_certificate_is_refused(tmp_path: Path) -> None:
    async def handle(_: web.Request) -> web.StreamResponse:
        raise AssertionError

    async with serving(handle, certificate(tmp_path)) as url:
        with pytest.raises(NotSent, match="certificate is not valid"):
            await ask(url.replace("http://127.0.0.1", "https://localhost"))


async def test_headers_that_http_does_not_allow_are_never_sent() -> None:
    async def handle(_: web.Request) -> web.StreamResponse:
        raise AssertionError

    async with serving(handle) as url, dialled(url, headers={"X-Key": "a\r\nX-Other: b"}) as connection:
        with pytest.raises(NotSent) as raised:
            await connection.request("x", b"{}")
        assert matches("sources", "headers that http does not allow are never sent", str(raised.value))


@pytest.mark.requirement("I5")
async def test_a_guarded_server_is_not_reached_inside() -> None:
    reached: list[bytes] = []

    async def canary(connection: SocketStream, head: bytes) -> None:
        reached.append(head)

    async with raw(canary) as url:
        with pytest.raises(NotSent, match="private"):
            async with HttpTransport(url=url).dial(Told()):
                pytest.fail("it was dialled")
        egress = Egress(allow_private=("10.0.0.0/8", "::1/128"))
        async with HttpTransport(url=url.replace("127.0.0.1", "localhost"), egress=egress).dial(
            Told()
        ) as connection:
            # Where the name has an IPv6 address, that one is allowed, but nobody listens there.
            with pytest.raises(NotSent, match="cannot be reached"):
                await connection.request("x", b"{}")
    assert reached == []


async def test_large_request_is_sent_completely() -> None:
    async def handle(request: web.Request) -> web.StreamResponse:
        body = await request.json()
        return answer(body, {"size": len(body["params"]["x"])})

    async with serving(handle) as url:
        assert await ask(url, params=orjson.dumps({"x": "y" * (3 << 20)})) == {"size": 3 << 20}


@pytest.mark.parametrize("url", ["file:///etc/passwd", "http:///mcp", "not a url"])
async def test_invalid_address_is_not_dialled(url: str) -> None:
    with pytest.raises(NotSent, match="refused"):
        async with HttpTransport(url=url, egress=FREE).dial(Told()):
            pytest.fail("it was dialled")


@pytest.mark.parametrize("era", ["modern", "legacy"])
@pytest.mark.requirement("I5")
async def test_a_flood_of_events_is_taken_in_turns_with_others(
    era: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("toolcrib.cooperative.TIME_SLICE_SECONDS", 0.0)
    noise = b"data: 1\n\n" * 20_000
    right = b'data: {"jsonrpc":"2.0","id":1,"result":{}}\n\n'
    body = noise + right
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            await anyio.lowlevel.checkpoint()
            turns += 1

    whole = HEAD % (STREAM, b"Content-Length: %d\r\n" % len(body)) + body
    async with raw(saying(whole)) as url, anyio.create_task_group() as tasks:
        tasks.start_soon(others)
        assert await ask(url, era=era) == {}
        tasks.cancel_scope.cancel()
    assert turns >= len(noise) // 4096


async def test_resolved_address_is_not_disclosed(free_port: int) -> None:
    with pytest.raises(NotSent) as raised:
        await ask(f"http://localhost:{free_port}/mcp")
    assert str(free_port) not in str(raised.value)
    assert "127.0.0.1" not in str(raised.value)
    assert "::1" not in str(raised.value)


def test_only_short_names_are_kept_for_the_next_time() -> None:
    assert modern_headers("r", "tools/call", "a") is modern_headers("r", "tools/call", "a")
    long = "x" * 2_000
    assert modern_headers("r", "resources/read", long) is not modern_headers("r", "resources/read", long)
    assert modern_headers("r", "resources/read", long)["Mcp-Name"] == long
