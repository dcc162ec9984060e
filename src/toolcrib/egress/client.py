"""HTTP client with a connection pool per origin."""

import asyncio
import os
import re
import socket
import ssl
from base64 import b64encode
from collections.abc import Mapping, Sequence
from functools import lru_cache
from socket import gaierror
from typing import Self

import anyio
import anyio.lowlevel
from yarl import URL

from toolcrib.egress.connect import (
    AddressBlocked,
    ResolvedAddress,
    Resolver,
    allowed_addresses,
    connect,
    dial,
    resolve,
)
from toolcrib.egress.egress import Egress
from toolcrib.egress.http_connection import HttpConnection
from toolcrib.egress.response import ConnectionClosed, NoConnection, Response

# --- HTTP/1.1 client with a keep-alive connection pool for one origin; an Egress checks each connection ---
#
# Written by hand, because a general HTTP client costs six times as much per call.

IDLE_SECONDS = 30.0
"""Seconds after which an idle connection is closed; sweeps run at half this interval."""
MAX_IDLE_CONNECTIONS = 128

_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+\Z")
_FORBIDDEN_CHARACTERS = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_MAX_CACHED_HEADS, _MAX_CACHED_VALUE_CHARACTERS = 256, 1_024
"""Entries of the request head cache, and the longest header value in characters of a cached head.

Header values may come from anywhere, so the size of an entry is bounded.
"""
_CLOSED_TEXT = "the connection is closed"

HeaderItems = tuple[tuple[str, str], ...]


class Client:
    """Sends requests to the origin of a URL only. Concurrency is bounded by the callers."""

    def __init__(
        self,
        url: URL,
        headers: Mapping[str, str],
        egress: Egress,
        *,
        content_type: str = "application/octet-stream",
        connect_seconds: float,
        resolver: Resolver | None = None,
    ) -> None:
        self._origin, self._egress, self._seconds = url.origin(), egress, connect_seconds
        self._resolver = resolver or resolve
        self._content_type = {"Content-Type": content_type}
        self._common_headers = _merged_headers(
            {"Host": url.host_port_subcomponent or "", **_basic_authorization(url)}, headers
        )
        self._cached_head = lru_cache(maxsize=_MAX_CACHED_HEADS)(self._render_head)
        self._idle: list[HttpConnection] = []
        self._connections: set[HttpConnection] = set()
        self._closed = False
        self._sweep_timer: asyncio.TimerHandle | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *raised: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close every connection; pending requests raise ConnectionClosed."""
        self._closed = True
        self.close_connections()
        # The timer would reference this client, and all it holds, for up to the idle time of connections.
        if self._sweep_timer is not None:
            self._sweep_timer.cancel()
        with anyio.CancelScope(shield=True):
            await anyio.lowlevel.checkpoint()

    def close_connections(self) -> None:
        """Close every open connection; pending requests raise ConnectionClosed."""
        for connection in tuple(self._connections):
            connection.close(ConnectionClosed(_CLOSED_TEXT))

    async def send(
        self, method: str, url: URL, headers: Mapping[str, str], body: bytes | None = None
    ) -> Response:
        """Send a request and wait for the head of the response, which must be read to its end or closed.

        Raises NoConnection, ConnectionClosed, NotHttp, and ValueError for headers that HTTP does not allow.
        """
        is_cacheable = not headers or max(map(len, headers.values())) <= _MAX_CACHED_VALUE_CHARACTERS
        render = self._cached_head if is_cacheable else self._render_head
        head = render(method, url, tuple(headers.items()), body is None)
        data = head + (b"\r\n" if body is None else b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        connection = self._take_idle() or await self._connect_new()
        return await connection.send(data)

    # Request heads

    def _render_head(self, method: str, url: URL, items: HeaderItems, without_body: bool) -> bytes:  # noqa: FBT001 - a cache key
        """Serialize the request head but `Content-Length`; cached, as it is equal for all calls of a tool."""
        if url.origin() != self._origin:
            raise ValueError("the URL has another origin than this client")
        common = (
            self._common_headers
            if without_body
            else _merged_headers(self._common_headers, self._content_type)
        )
        headers = _merged_headers(common, dict(items))
        for name, value in headers.items():
            if not _HEADER_NAME.match(name) or _FORBIDDEN_CHARACTERS.search(value):
                raise ValueError("a header name or value contains characters that HTTP forbids")
        first = f"{method} {url.raw_path_qs} HTTP/1.1"
        return "\r\n".join((first, *(f"{name}: {value}" for name, value in headers.items()), "")).encode()

    # Connection pool

    def _take_idle(self) -> HttpConnection | None:
        while self._idle:
            connection = self._idle.pop()
            if not connection.closing:
                return connection
        return None

    async def _connect_new(self) -> HttpConnection:
        if self._closed:
            raise NoConnection(_CLOSED_TEXT)
        try:
            with anyio.fail_after(self._seconds):
                connection = await self._open()
        except TimeoutError as error:
            raise NoConnection(f"no connection within {self._seconds:g} s") from error
        except (OSError, ssl.CertificateError) as error:
            raise NoConnection(why_no_connection(error)) from error
        self._connections.add(connection)
        if self._closed:
            connection.close(ConnectionClosed(_CLOSED_TEXT))
            raise NoConnection(_CLOSED_TEXT)
        return connection

    async def _open(self) -> HttpConnection:
        origin, loop = self._origin, asyncio.get_running_loop()
        host = origin.raw_host or ""
        addresses = await allowed_addresses(host, origin.port or 0, self._egress, self._resolver)
        opened = await dial(addresses)
        secure = origin.scheme == "https"
        try:
            _, connection = await loop.create_connection(
                lambda: HttpConnection(self._return_idle, self._connections.discard),
                sock=opened,
                ssl=tls_context() if secure else None,
                server_hostname=host.rstrip(".").partition("%")[0] if secure else None,
            )
        except BaseException:
            opened.close()
            raise
        return connection

    def _return_idle(self, connection: HttpConnection) -> None:
        """Return an idle connection to the pool; close it if the pool is full or closed."""
        if self._closed or len(self._idle) >= MAX_IDLE_CONNECTIONS:
            connection.close(ConnectionClosed(_CLOSED_TEXT))
            return
        loop = asyncio.get_running_loop()
        connection.idle_since = loop.time()
        self._idle.append(connection)
        if self._sweep_timer is None:
            self._sweep_timer = loop.call_later(IDLE_SECONDS / 2, self._sweep, loop)

    def _sweep(self, loop: asyncio.AbstractEventLoop) -> None:
        """Close connections past the idle timeout. The list is ordered from least to most recently used."""
        oldest = loop.time() - IDLE_SECONDS
        while self._idle and self._idle[0].idle_since < oldest:
            self._idle.pop(0).close(ConnectionClosed(_CLOSED_TEXT))
        is_wanted = bool(self._idle) and not self._closed
        self._sweep_timer = loop.call_later(IDLE_SECONDS / 2, self._sweep, loop) if is_wanted else None


@lru_cache(maxsize=1)
def tls_context() -> ssl.SSLContext:
    """Return a TLS context with the system's CA certificates; cached, since loading them is slow."""
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context


def _merged_headers(headers: Mapping[str, str], over: Mapping[str, str]) -> dict[str, str]:
    """Merge two sets of headers; `over` wins. Names are compared case-insensitively."""
    named = {name.lower() for name in over}
    return {name: value for name, value in headers.items() if name.lower() not in named} | dict(over)


def _basic_authorization(url: URL) -> dict[str, str]:
    """Return the Basic `Authorization` header for the credentials in a URL, if there are any."""
    if url.user is None and url.password is None:
        return {}
    pair = f"{url.user or ''}:{url.password or ''}".encode("latin-1", "replace")
    return {"Authorization": f"Basic {b64encode(pair).decode()}"}


def why_no_connection(error: OSError) -> str:
    """Return the reason of a failed connection without the address, which callers of a tool must not see."""
    if isinstance(error, AddressBlocked):
        return str(error.strerror)
    if isinstance(error, ssl.SSLCertVerificationError):
        return "its TLS certificate is not valid"
    if isinstance(error, ssl.SSLError):
        return "the TLS handshake failed"
    if isinstance(error, gaierror):
        return "its host name cannot be resolved"
    return os.strerror(error.errno) if error.errno else "no connection could be made"


# --- TCP health probe: checks with one TCP handshake that a server accepts connections ---


class Probe:
    """Connects to the server of a URL and closes the connection at once."""

    def __init__(self, url: URL, egress: Egress, resolver: Resolver | None = None) -> None:
        self._host, self._port = url.raw_host or "", url.port or 0
        self._egress, self._resolver = egress, resolver or resolve

    async def connect(self, within: float) -> None:
        """Raise NoConnection unless the server accepts a connection within this many seconds.

        An address that the egress refuses raises nothing: a real request reports that with the reason.
        """
        try:
            with anyio.fail_after(within):
                await _connect_first(
                    await allowed_addresses(self._host, self._port, self._egress, self._resolver)
                )
        except AddressBlocked:
            return
        except TimeoutError as error:
            raise NoConnection(f"no connection within {within:g} s") from error
        except OSError as error:
            raise NoConnection(why_no_connection(error)) from error


async def _connect_first(addresses: Sequence[ResolvedAddress]) -> None:
    if len(addresses) > 1:
        (await dial(addresses)).close()
        return
    # One address needs no Happy Eyeballs, which costs more than the connect itself.
    with socket.socket(addresses[0].family, socket.SOCK_STREAM) as opened:
        opened.setblocking(False)
        await connect(opened, addresses[0].address)
