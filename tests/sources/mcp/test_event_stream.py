"""Event streams are read the same however they are cut into pieces, in linear time, up to a limit."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.texts import matches
from toolcrib.mcp.sse import BYTES_PER_MESSAGE, EventStreamParser, ServerSentEvent
from toolcrib.sources.mcp.connection import ResponseTooLarge


def read(data: bytes, size: int | None = None) -> list[ServerSentEvent]:
    events = EventStreamParser()
    size = size or max(1, len(data))
    return [event for at in range(0, len(data), size) for event in events.feed(data[at : at + size])]


@pytest.mark.parametrize("size", [None, 1, 2, 3])
@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"])
def test_an_event_is_a_type_and_data(end: bytes, size: int | None) -> None:
    stream = end.join(
        [b"event: endpoint", b"data: /messages?x=1", b"", b": a comment", b"data:one", b"data: two", b"", b""]
    )
    assert read(stream, size) == [
        ServerSentEvent("endpoint", b"/messages?x=1"),
        ServerSentEvent("message", b"one\ntwo"),
    ]


def test_unusual_lines_follow_the_sse_standard() -> None:
    assert read(b"\xef\xbb\xbfdata: a\n\n") == [ServerSentEvent("message", b"a")]
    assert read(b"data\n\n") == [ServerSentEvent("message", b"")]
    assert read(b"data:  two blanks\n\n") == [ServerSentEvent("message", b" two blanks")]
    assert read(b"event: x\n\ndata: y\n\n") == [ServerSentEvent("message", b"y")]
    assert read(b"nothing: known\nDATA: a\n\n") == []
    assert read(b"data: never ended\n") == []
    assert read(b"\n\n\n\r\r\n\n") == []
    assert read(b"data: a\x0bb\x0c\x1c\xc2\x85\n\n") == [
        ServerSentEvent("message", b"a\x0bb\x0c\x1c\xc2\x85")
    ]
    assert read(b"event: \xff\ndata: a\n\n") == [ServerSentEvent("\ufffd", b"a")]


def test_stream_sets_resume_id_and_retry_delay() -> None:
    events = EventStreamParser()
    assert (events.last_id, events.retry) == ("", None)
    events.feed(b"id: 7\nretry: 1500\n\n")
    assert (events.last_id, events.retry) == ("7", 1.5)
    events.feed(b"id: a\x00b\nid: \xc3\xa9\nretry: soon\nretry: -1\n\nid: " + b"x" * 600 + b"\n")
    assert (events.last_id, events.retry) == ("7", 1.5)
    events.feed(b"retry: 99999999999999999999\nid\n\n")
    assert (events.last_id, events.retry) == ("", 30.0)


def test_a_new_stream_owes_nothing_to_one_that_broke_off() -> None:
    events = EventStreamParser()
    events.feed(b"id: 7\nretry: 20\ndata: lost\nevent: x\nda\r")
    events.restart()
    assert events.feed(b"\ndata: new\n\n") == [ServerSentEvent("message", b"new")]
    assert (events.last_id, events.retry) == ("7", 0.02)


@given(st.lists(st.sampled_from([b"data: a", b"data", b"event: b", b": c", b"id: 1", b"", b"x"])), st.data())
def test_where_a_stream_is_cut_does_not_matter(lines: list[bytes], data: st.DataObject) -> None:
    ends = data.draw(
        st.lists(st.sampled_from([b"\n", b"\r", b"\r\n"]), min_size=len(lines), max_size=len(lines))
    )
    stream = b"".join(line + end for line, end in zip(lines, ends, strict=True))
    assert read(stream, data.draw(st.integers(1, 9))) == read(stream)


@given(st.binary(max_size=200))
def test_no_bytes_are_an_accident(stream: bytes) -> None:
    assert read(stream, 1) == read(stream)


@pytest.mark.requirement("I5")
@pytest.mark.parametrize("piece", [b"x" * 100, b"data: " + b"x" * 94 + b"\n", b":" + b"x" * 98 + b"\n"])
def test_an_endless_event_ends_at_the_limit(piece: bytes) -> None:
    events = EventStreamParser(1 << 20, ResponseTooLarge)
    for _ in range((1 << 20) // len(piece)):
        events.feed(piece)
    with pytest.raises(ResponseTooLarge) as raised:
        events.feed(piece * 110)
    assert matches("sources", "an endless event ends at the limit", str(raised.value))


def test_the_limit_is_for_one_event_not_for_the_stream() -> None:
    events = EventStreamParser(1000)
    assert sum(len(events.feed(b"data: " + b"x" * 900 + b"\n\n")) for _ in range(100)) == 100


@pytest.mark.requirement("I5")
def test_a_large_event_in_tiny_pieces_is_put_together_once() -> None:
    # A reader that joins what it has again with every piece would have to copy a terabyte here.
    events, piece = EventStreamParser(), b"x" * 32
    events.feed(b"data: ")
    for _ in range(250_000):
        events.feed(piece)
    (event,) = events.feed(b"\n\n")
    assert event.data == piece * 250_000


@pytest.mark.parametrize(
    "stream, idle",
    [
        (b": ping\n\n", 1),
        (b"id: 1\nevent: message\ndata: {}\n\n", 0),
        (b"id: 1\ndata: {}\n\n" * 1_000, 0),
        (b"data: " + b"x" * 100_000 + b"\n\n", 0),
        (b"\n" * 1_000, 1_000),
        (b": x\n" * 1_000, 992),
        (b"event: x\n" * 1_000 + b"\n", 993 + 7_999 // BYTES_PER_MESSAGE),
        (b":" + b"x" * 100_000 + b"\n\n", 1 + 100_001 // BYTES_PER_MESSAGE),
        (b":" + b"x" * 100_000 + b"\ndata: {}\n\n", 100_001 // BYTES_PER_MESSAGE),
    ],
)
def test_lines_without_event_are_counted(stream: bytes, idle: int) -> None:
    events = EventStreamParser()
    for at in range(0, len(stream), 4096):
        events.feed(stream[at : at + 4096])
    assert events.idle == idle
