"""Requests of the client: one server, kept-alive connections, exact heads, and nothing sent twice."""

import base64
import gc
import ssl
import weakref
from pathlib import Path

import anyio
import pytest
from anyio.abc import SocketAttribute
from anyio.streams.tls import TLSListener, TLSStream
from yarl import URL

from tests.egress.peers import FREE, OK, Peer, client_for, fetched, peer
from tests.sources.mcp.test_http_session import certificate
from tests.waiting import until
from toolcrib.egress import client as clients
from toolcrib.egress.client import Client
from toolcrib.egress.response import ConnectionClosed, NoConnection

pytestmark = pytest.mark.anyio


@pytest.fixture(params=[False, True], ids=["asyncio", "uvloop"])
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, bool]]:
    """Transports differ: the gateway has uvloop's, and does without where there is none."""
    return ("asyncio", {"use_uvloop": request.param})


class Server:
    """Answers everything, and remembers the connections and the requests."""

    def __init__(self) -> None:
        self.connections, self.open, self.requests = 0, 0, list[bytes]()

    async def behave(self, peer: Peer) -> None:
        self.connections += 1
        self.open += 1
        try:
            while True:
                self.requests.append(await peer.request())
                await peer.say(OK)
        finally:
            self.open -= 1


async def test_a_connection_is_used_again() -> None:
    server = Server()
    async with peer(server.behave) as url, client_for(url) as client:
        for _ in range(5):
            assert await fetched(client, url, b"{}") == b"ok"
    assert (server.connections, len(server.requests)) == (1, 5)


async def test_closed_client_is_garbage_collected() -> None:
    server = Server()
    async with peer(server.behave) as url:
        client = client_for(url)
        async with client:
            assert await fetched(client, url) == b"ok"
        kept = weakref.ref(client)
        del client

        def is_gone() -> bool:
            gc.collect()
            return kept() is None

        # Half of the time after which a timer would have let it go anyway.
        await until(is_gone, within=clients.IDLE_SECONDS / 4)


async def test_requests_at_the_same_time_have_connections_of_their_own() -> None:
    server = Server()
    async with peer(server.behave) as url, client_for(url) as client:
        for _ in range(2):
            async with anyio.create_task_group() as tasks:
                for _ in range(3):
                    tasks.start_soon(fetched, client, url)
    assert (server.connections, len(server.requests)) == (3, 6)


async def test_request_head_has_only_given_headers() -> None:
    server = Server()
    async with peer(server.behave) as url, client_for(url, Accept="a", X_Key="k") as client:
        await client.send("POST", url.with_fragment("f"), {"accept": "b", "X-Name": "é"}, b"body")
    head, _, body = server.requests[0].partition(b"\r\n\r\n")
    assert head.decode().split("\r\n") == [
        "POST /there?x=1 HTTP/1.1",
        f"Host: 127.0.0.1:{url.port}",
        "X_Key: k",
        "Content-Type: application/octet-stream",
        "accept: b",
        "X-Name: é",
        "Content-Length: 4",
    ]
    assert body == b"body"


async def test_only_short_heads_are_kept_for_the_next_time() -> None:
    """What is in a header may be a caller's own, and of any length."""
    server = Server()
    async with peer(server.behave) as url, client_for(url) as client:
        for value in ("short", "long" * 1_000):
            (await client.send("POST", url, {"X-Name": value}, b"")).close()
        assert client._cached_head.cache_info().currsize == 1  # pyright: ignore[reportPrivateUsage]
    assert b"X-Name: %b\r\n" % (b"long" * 1_000) in server.requests[1]


async def test_a_name_and_password_in_the_url_become_a_header() -> None:
    server = Server()
    async with peer(server.behave) as url:
        named = url.with_user("me").with_password("sécret")
        for client in (client_for(named), client_for(named, authorization="Bearer x")):
            async with client:
                await fetched(client, named)
    first, second = (
        [line for line in each.split(b"\r\n") if b"uthorization" in line] for each in server.requests
    )
    assert first == [b"Authorization: Basic " + base64.b64encode("me:sécret".encode("latin-1"))]
    assert second == [b"authorization: Bearer x"]


@pytest.mark.parametrize(
    "name,value", [("X-A", "a\r\nX-B: b"), ("X-A", "a\0"), ("X A", "a"), ("", "a"), ("X:", "a"), ("X\n", "a")]
)
async def test_headers_that_http_does_not_allow_are_never_sent(name: str, value: str) -> None:
    url = URL("http://127.0.0.1:1/")
    async with client_for(url) as client:
        with pytest.raises(ValueError, match="HTTP"):
            await client.send("GET", url, {name: value})


async def test_it_is_for_one_server_only() -> None:
    url = URL("http://127.0.0.1:1/")
    async with client_for(url) as client:
        for other in ("http://127.0.0.1:2/", "https://127.0.0.1:1/", "http://127.0.0.2:1/"):
            with pytest.raises(ValueError, match="origin"):
                await client.send("GET", URL(other), {})


async def test_a_connection_the_server_has_closed_is_not_used_again() -> None:
    requests = 0

    async def once(peer: Peer) -> None:
        nonlocal requests
        await peer.request()
        requests += 1
        await peer.say(OK)

    async with peer(once) as url, client_for(url) as client:
        for _ in range(3):
            assert await fetched(client, url) == b"ok"
            await until(lambda: not client._connections)  # pyright: ignore[reportPrivateUsage]
    assert requests == 3


async def test_connection_with_surplus_bytes_is_not_reused() -> None:
    server = Server()

    async def chatty(peer: Peer) -> None:
        server.connections += 1
        while True:
            await peer.request()
            await peer.say(OK + OK)

    async with peer(chatty) as url, client_for(url) as client:
        for _ in range(3):
            assert await fetched(client, url) == b"ok"
    assert server.connections == 3


async def test_a_connection_that_rests_for_long_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clients, "IDLE_SECONDS", 0.02)
    server = Server()
    async with peer(server.behave) as url, client_for(url) as client:
        await fetched(client, url)
        await until(lambda: server.open == 0)
        await fetched(client, url)
    assert server.connections == 2


async def test_idle_connections_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clients, "MAX_IDLE_CONNECTIONS", 1)
    server = Server()
    async with peer(server.behave) as url, client_for(url) as client:
        async with anyio.create_task_group() as tasks:
            for _ in range(3):
                tasks.start_soon(fetched, client, url)
        await until(lambda: server.open == 1)


async def test_a_request_that_is_given_up_closes_its_connection() -> None:
    came, gone = anyio.Event(), anyio.Event()

    async def mute(peer: Peer) -> None:
        await peer.request()
        came.set()
        await peer.gone()
        gone.set()

    async with peer(mute) as url, client_for(url) as client:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(fetched, client, url)
            await came.wait()
            tasks.cancel_scope.cancel()
        with anyio.fail_after(10):
            await gone.wait()


async def test_closing_client_fails_waiting_requests() -> None:
    async def half(peer: Peer) -> None:
        await peer.request()
        await peer.say(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n")
        await peer.gone()

    async def mute(peer: Peer) -> None:
        await peer.request()
        await peer.gone()

    async def reads(client: Client, url: URL) -> None:
        with pytest.raises(ConnectionClosed):
            await fetched(client, url)

    for behave in (half, mute):
        async with peer(behave) as url, anyio.create_task_group() as tasks:
            async with client_for(url) as client:
                tasks.start_soon(reads, client, url)
                await anyio.wait_all_tasks_blocked()
            with pytest.raises(NoConnection):
                await client.send("GET", url, {})


async def test_tls_hostname_is_verified(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    context = certificate(tmp_path)
    trusting = ssl.create_default_context(cafile=tmp_path / "both.pem")
    monkeypatch.setattr(clients, "tls_context", lambda: trusting)
    server = Server()
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    secure = TLSListener(listener, context, standard_compatible=False)

    async def accept(stream: TLSStream) -> None:
        async with stream:
            with pytest.raises((anyio.EndOfStream, anyio.BrokenResourceError)):
                await server.behave(Peer(stream))

    port = listener.extra(SocketAttribute.local_port)  # noqa: S610 -- anyio's, not Django's
    async with secure, anyio.create_task_group() as tasks:
        tasks.start_soon(secure.serve, accept)
        url = URL(f"https://localhost:{port}/")
        async with Client(url, {}, FREE, connect_seconds=3.0) as client:
            for _ in range(2):
                assert await fetched(client, url) == b"ok"
        assert server.connections == 1
        other = URL(f"https://127.0.0.1:{port}/")
        async with Client(other, {}, FREE, connect_seconds=3.0) as client:
            with pytest.raises(NoConnection, match="certificate"):
                await fetched(client, other)
        tasks.cancel_scope.cancel()
