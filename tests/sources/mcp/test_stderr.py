"""Of what a server writes beside the protocol, the end is shown and a little is logged, without secrets."""

import logging

import anyio
import pytest

from tests.texts import matches
from toolcrib.sources.mcp.process_streams import (
    LOG_BURST_LINES,
    MAX_LINE_CHARS,
    MAX_TAIL_LINES,
    RateLimitedLog,
    StderrTail,
    display_line,
)

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("C3")]

SECRET = "hunter2hunter2"


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def redact(text: str) -> str:
    return text.replace(SECRET, "[redacted]")


def as_is(text: str) -> str:
    return text


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def tail(clock: Clock, caplog: pytest.LogCaptureFixture) -> StderrTail:
    caplog.set_level(logging.INFO, logger="toolcrib.sources.mcp")
    return StderrTail(redact, "time", clock)


def messages(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records]


async def test_last_lines_are_kept_across_chunks(tail: StderrTail) -> None:
    tail.feed(b"one\ntw")
    assert tail.lines() == ["one"]
    tail.feed(b"o\n\n  \nthr")
    tail.feed(b"e")
    tail.feed(b"e\n")
    assert tail.lines() == ["one", "two", "three"]
    tail.feed("".join(f"line {number}\n" for number in range(500)).encode())
    assert tail.lines() == [f"line {number}" for number in range(500 - MAX_TAIL_LINES, 500)]


async def test_partial_line_counts_at_the_end(tail: StderrTail) -> None:
    tail.feed(b"Segmentation fault")
    assert tail.lines() == []
    tail.close()
    tail.close()
    assert tail.lines() == ["Segmentation fault"]


async def test_a_line_goes_to_the_log_with_the_name_of_its_server(
    tail: StderrTail, caplog: pytest.LogCaptureFixture
) -> None:
    tail.feed(b"started\n")
    (record,) = caplog.records
    assert matches("sources", "a line goes to the log with the name of its server", record.getMessage())
    assert (record.name, record.levelname) == ("toolcrib.sources.mcp", "INFO")
    assert vars(record)["server"] == "time"


async def test_secrets_are_taken_out_everywhere(tail: StderrTail, caplog: pytest.LogCaptureFixture) -> None:
    tail.feed(f"the key is {SECRET}\n".encode())
    tail.feed(b"x" * (MAX_LINE_CHARS - 5) + SECRET.encode() + b"\n")
    assert tail.lines()[0] == "the key is [redacted]"
    assert "hunter" not in "".join(tail.lines()) + caplog.text


@pytest.mark.parametrize(
    "line, expected",
    [
        (b"\x1b[31mred\x1b[0m alert", "red alert"),
        (b"a\x00b\x07c\x7f\rd\te", "abcd\te"),
        ("\u202eevil\u2028 \x9bnew".encode(), "evil new"),
        (b"caf\xe9 \xff\xfe", "caf\ufffd \ufffd\ufffd"),
        ("café".encode(), "café"),
        (b"x" * 5_000, "x" * (MAX_LINE_CHARS - 1) + "…"),
        (b"x" * MAX_LINE_CHARS, "x" * MAX_LINE_CHARS),
    ],
)
def test_lines_are_shown_as_text_without_tricks(line: bytes, expected: str) -> None:
    assert display_line(line, as_is) == expected


async def test_an_endless_line_keeps_its_beginning(tail: StderrTail) -> None:
    for _ in range(1_000):
        tail.feed(b"abcd" * 1_000)
    tail.feed(b"\nnext\n")
    first, second = tail.lines()
    assert first.startswith("abcdabcd")
    assert len(first) == MAX_LINE_CHARS
    assert second == "next"


async def test_the_log_gets_a_burst_then_a_few_lines_a_second(
    tail: StderrTail, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    tail.feed(b"x\n" * 10_000)
    assert len(messages(caplog)) == LOG_BURST_LINES
    clock.now += 0.5
    tail.feed(b"y\n" * 30)
    assert (
        messages(caplog)[LOG_BURST_LINES]
        == f"time: {10_000 - LOG_BURST_LINES} more lines like these were left out"
    )
    assert messages(caplog)[LOG_BURST_LINES + 1 :] == ["time wrote to its standard error: y"] * 10
    tail.close()
    assert matches("sources", "the log gets a burst then a few lines a second", messages(caplog)[-1])
    clock.now += 1_000
    tail.feed(b"z\n" * 60)
    assert sum(message.endswith(": z") for message in messages(caplog)) == LOG_BURST_LINES


@pytest.mark.slow
async def test_dropped_line_count_is_logged(tail: StderrTail, caplog: pytest.LogCaptureFixture) -> None:
    tail.feed(b"x\n" * (LOG_BURST_LINES + 7))
    with anyio.fail_after(10):
        while len(messages(caplog)) == LOG_BURST_LINES:  # noqa: ASYNC110 - a log knows nothing of events
            await anyio.sleep(0.01)
    assert matches("sources", "dropped line count is logged", messages(caplog)[-1])
    tail.close()
    assert len(messages(caplog)) == LOG_BURST_LINES + 1


async def test_no_dropped_count_without_drops(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="toolcrib.sources.mcp")
    log = RateLimitedLog("%s: %s", as_is, "time", clock)
    log.write([b"a"])
    log.close()
    assert messages(caplog) == ["time: a"]
