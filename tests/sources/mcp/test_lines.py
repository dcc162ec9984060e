"""A stream is the same lines however it is cut, and a line without an end costs nothing but its end."""

import tracemalloc
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib.mcp.jsonrpc import END_BYTES
from toolcrib.mcp.lines import EndlessLine, LineSplitter, OverlongLine

CAP = 300
LINE = st.binary(max_size=12) | st.integers(CAP - 3, 3 * CAP).map(lambda size: b"ab" * size)


def taken(lines: LineSplitter, *chunks: bytes) -> list[bytes | OverlongLine]:
    return [line for chunk in chunks for line in lines.feed(chunk)]


def cut(data: bytes, places: list[int]) -> list[bytes]:
    edges = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    return [data[start:end] for start, end in pairwise(edges)]


@pytest.mark.requirement("C3")
@given(st.lists(LINE, max_size=8), st.lists(st.integers(0, 10_000), max_size=12))
def test_any_chunking_gives_the_same_lines(parts: list[bytes], places: list[int]) -> None:
    data = b"\n".join(parts)
    expected: list[bytes | OverlongLine] = []
    for line in data.split(b"\n")[:-1]:
        if len(line) > CAP:
            expected += [OverlongLine(line[:END_BYTES]), OverlongLine(line[:END_BYTES], line[-END_BYTES:])]
        elif line and line != b"\r":
            expected.append(line)
    rest = data.rpartition(b"\n")[2]
    if len(rest) > CAP:
        expected.append(OverlongLine(rest[:END_BYTES]))
    assert taken(LineSplitter(CAP), *cut(data, places)) == expected
    assert taken(LineSplitter(CAP), *(bytes([byte]) for byte in data)) == expected


def test_crlf_is_accepted_and_empty_lines_are_ignored() -> None:
    assert taken(LineSplitter(), b'{"a":1}\r\n\r\n\n\n{"b"', b":2}\r", b"\n\r", b"\n") == [
        b'{"a":1}\r',
        b'{"b":2}\r',
    ]


def test_a_line_of_exactly_the_cap_is_a_line() -> None:
    assert taken(LineSplitter(CAP), b"x" * CAP + b"\n") == [b"x" * CAP]
    assert taken(LineSplitter(CAP), b"x" * CAP, b"\n") == [b"x" * CAP]


def test_overlong_line_is_reported_before_its_end() -> None:
    lines = LineSplitter(CAP)
    assert lines.feed(b"a" * CAP) == []
    assert lines.feed(b"b") == [OverlongLine(b"a" * END_BYTES)]
    assert lines.feed(b"c" * 10_000) == []
    assert lines.feed(b"\nnext\n") == [OverlongLine(b"a" * END_BYTES, b"c" * END_BYTES), b"next"]


def test_a_line_without_an_end_is_given_up() -> None:
    lines = LineSplitter(CAP, max_skipped_bytes=10 * CAP)
    lines.feed(b"x" * 10 * CAP)
    with pytest.raises(EndlessLine):
        lines.feed(b"x" * (CAP + END_BYTES))


def test_skipped_bytes_are_not_buffered() -> None:
    lines, chunk = LineSplitter(), b"x" * (1 << 16)
    tracemalloc.start()
    for _ in range(60 << 4):
        lines.feed(chunk)
    kept, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept < 64 << 10
    assert most < 24 << 20
    assert lines.feed(b"\n") == [OverlongLine(b"x" * END_BYTES, b"x" * END_BYTES)]


def test_empty_lines_are_counted_across_chunks() -> None:
    lines = LineSplitter()
    assert taken(lines, b"\n\r\n", b"\r", b"\n", b"a\n\n") == [b"a"]
    assert lines.blank == 4
