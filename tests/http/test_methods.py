"""Every method the parser knows, with the headers that change how a message is read, in bounded time."""

import asyncio
import re
import signal
from collections.abc import Generator
from contextlib import contextmanager
from itertools import combinations, pairwise
from types import FrameType
from typing import Any, cast

import pytest

from tests.http.test_request_cycle import App, connected, settle
from toolcrib.http import connection_limits
from toolcrib.http.connection_limits import ClientConnection, ConnectionLimits
from toolcrib.http.protocol import BoundedProtocol

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("I5")]

METHODS = (
    "ACL BIND CHECKOUT CONNECT COPY DELETE GET HEAD LINK LOCK M-SEARCH MERGE MKACTIVITY MKCALENDAR MKCOL "
    "MOVE NOTIFY OPTIONS PATCH POST PROPFIND PROPPATCH PURGE PUT QUERY REBIND REPORT SEARCH SOURCE "
    "SUBSCRIBE TRACE UNBIND UNLINK UNLOCK UNSUBSCRIBE"
)
FIELDS = (
    b"Expect: x",
    b"Expect: 100-continue",
    b"Upgrade: websocket",
    b"Connection: Upgrade",
    b"Connection: close",
    b"Transfer-Encoding: chunked",
)
SECOND = b"GET /second HTTP/1.1\r\nHost: localhost\r\n\r\n"
LIMIT_SECONDS = 5.0


@contextmanager
def in_time() -> Generator[None]:
    """Interrupt and fail what does not end; a task cannot, as the event loop itself would hang."""
    fired: list[int] = []

    def late(number: int, frame: FrameType | None) -> None:
        del frame
        fired.append(number)
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, LIMIT_SECONDS, 0.1)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert not fired


async def answers(words: bytes, size: int) -> tuple[list[int], bool]:
    """Send bytes in parts of a size; return the statuses, and whether the connection was closed."""
    protocol, line, state = connected(App())
    with in_time():
        for begin, end in pairwise((*range(0, len(words), size), len(words))):
            protocol.data_received(words[begin:end])
    await settle(state)
    closed = line.closed
    protocol.connection_lost(None)
    return [int(each) for each in re.findall(rb"HTTP/1\.1 ([2-5]\d\d) ", line.said)], closed


def message(method: str, fields: tuple[bytes, ...]) -> bytes:
    head = b"%b /first HTTP/1.1\r\nHost: localhost\r\n" % method.encode()
    body = b"0\r\n\r\n" if FIELDS[-1] in fields else b""
    return b"".join((head, *(each + b"\r\n" for each in fields), b"\r\n", body))


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS.split())
async def test_no_method_and_headers_hang_the_process(method: str) -> None:
    for count in range(4):
        for fields in combinations(FIELDS, count):
            for size in (1 << 16, 7):
                statuses, closed = await answers(message(method, fields) + SECOND, size)
                if method == "CONNECT":
                    assert (statuses, closed) == ([400], True), fields
                elif b"Connection: close" in fields:
                    assert (statuses, closed) == ([200], True), fields
                else:
                    assert (statuses, closed) == ([200, 200], False), fields


@pytest.mark.parametrize("target", [b"/app-ws", b"/health", b"localhost:443", b"http://localhost/"])
async def test_connect_is_always_refused(target: bytes) -> None:
    for field in (b"", b"Expect: x\r\n", b"Upgrade: a\r\nConnection: Upgrade\r\n"):
        words = b"CONNECT " + target + b" HTTP/1.1\r\nHost: localhost\r\n" + field + b"\r\n"
        assert await answers(words + SECOND, 1 << 16) == ([400], True)


async def test_connect_after_request_keeps_its_answer() -> None:
    assert await answers(SECOND + message("CONNECT", FIELDS[:1]), 1 << 16) == ([200], True)


async def test_repeated_head_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    words = message("GET", (b"Upgrade: h2c", b"Connection: Upgrade"))

    def unchanged(self: Any) -> bytes:
        del self
        return words

    monkeypatch.setattr(BoundedProtocol, "_head_without_upgrade", unchanged)
    assert await answers(words + SECOND, 1 << 16) == ([400], True)


async def test_malformed_requests_are_counted_and_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    limits = ConnectionLimits()
    transport = cast("asyncio.Transport", None)
    connection = ClientConnection(transport, "address 192.0.2.1", limits, is_proxied=False, is_spare=False)
    for _ in range(1000):
        limits.count_malformed(connection)
    assert limits.malformed == 1000
    assert [each.levelname for each in caplog.records if each.name == connection_limits.__name__] == [
        "WARNING"
    ]
