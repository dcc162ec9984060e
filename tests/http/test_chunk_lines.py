"""What a chunked body brings beside its content is bounded exactly, whichever way it is cut into reads."""

import re
from collections.abc import Iterable

import anyio
import pytest

from tests.http.test_request_cycle import App, connected, settle
from toolcrib.http.framing import MAX_FRAMING_BYTES

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("I5")]

HEAD = b"POST /there HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n%b\r\n"
LARGE = HEAD % (b"X-Large: " + b"a" * 6000 + b"\r\n")
LAST = b"0\r\n\r\n"
SIZES = (1 << 18, 1000, 7, 3, 1)


def chunks(count: int, line: bytes, content: bytes) -> bytes:
    return (line + b"\r\n" + content + b"\r\n") * count


async def statuses(*reads: bytes) -> list[int]:
    protocol, line, state = connected(App())
    for read in reads:
        if not line.closed:
            protocol.data_received(read)
        # Now and then, what was read is taken up.
        await anyio.lowlevel.checkpoint()
    await settle(state)
    protocol.connection_lost(None)
    return [int(each) for each in re.findall(rb"HTTP/1\.1 (\d\d\d) ", line.said)]


def cut(words: bytes, size: int) -> Iterable[bytes]:
    return (words[at : at + size] for at in range(0, len(words), size))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    "line, content, extra",
    [
        (b"1;a=2345678", b"x", 10),
        (b"10;abc", b"x" * 16, 4),
        (b"00000001", b"x", 7),
        (b'1;a=" HTTP/1."', b"x", 13),
    ],
)
async def test_chunk_extensions_are_bounded_in_total(
    line: bytes, content: bytes, extra: int, size: int
) -> None:
    most = MAX_FRAMING_BYTES // extra
    # A chunk that has begun counts in full until it ends, so that the last few bytes are not exact.
    for count, expected in ((most - 5, 200), (most + 1, 400)):
        words = HEAD % b"" + chunks(count, line, content) + LAST
        assert await statuses(*cut(words, size)) == [expected], count


async def test_plain_chunks_of_any_size_are_free() -> None:
    body = b"".join(b"%x\r\n%b\r\n" % (size, b"x" * size) for size in (1, 15, 16, 255, 256, 4096) * 200)
    for size in SIZES[:3]:
        assert await statuses(*cut(HEAD % b"" + body + LAST, size)) == [200]


@pytest.mark.parametrize("size", SIZES)
async def test_large_heads_are_not_counted_as_framing(size: int) -> None:
    assert await statuses(*cut(LARGE + chunks(3, b"1", b"x") + LAST, size)) == [200]


async def test_end_of_the_message_before_is_not_counted() -> None:
    first = HEAD % b"" + chunks(3, b"1", b"x")
    assert await statuses(first, LAST + LARGE + chunks(3, b"1", b"x") + LAST) == [200, 200]
    with_length = LARGE.replace(b"Transfer-Encoding: chunked", b"Content-Length: 8")
    assert await statuses(with_length + b"\r\n\r\n", b"\r\n\r\n" + LARGE + LAST) == [200, 200]
    assert await statuses(LARGE + LAST + LARGE + LAST) == [200, 200]


async def test_empty_lines_before_a_head_are_not_counted() -> None:
    assert await statuses(b"\r\n\r\n" + LARGE + LAST) == [200]
    assert await statuses(b"\r\n\r\n", LARGE + LAST) == [200]
    assert await statuses(HEAD % b"" + LAST, b"\r\n\r\n" + LARGE + LAST) == [200, 200]


async def test_framing_behind_another_message_is_bounded_later() -> None:
    first, more = HEAD % b"" + LAST, chunks(200, b"1;a=2345678", b"x")
    assert await statuses(first + HEAD % b"" + more, more, more, LAST) == [200, 200]
    assert await statuses(first + HEAD % b"" + more, more, more, more, LAST) == [200, 400]
