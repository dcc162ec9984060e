"""The log writer thread: blocked output does not block calls."""

import io
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest

from toolcrib.observe.log import LineWriterThread


@pytest.fixture
def pipe() -> Iterator[tuple[int, IO[bytes]]]:
    """A pipe that only the test reads."""
    reading, writing = os.pipe()
    with os.fdopen(writing, "wb", buffering=0) as stream:
        yield reading, stream
        os.close(reading)


def test_lines_arrive_in_order() -> None:
    with tempfile.TemporaryFile() as file:
        writer = LineWriterThread(file)
        for number in range(1_000):
            writer.put(f"{number}\n".encode())
        writer.close()
        file.seek(0)
        assert file.read() == b"".join(f"{number}\n".encode() for number in range(1_000))
    assert writer.dropped == 0


def test_stream_without_descriptor_gets_text() -> None:
    stream = io.StringIO()
    writer = LineWriterThread(stream)
    writer.put("ä\n".encode())
    writer.close()
    assert stream.getvalue() == "ä\n"


def test_a_blocked_pipe_fills_the_queue_and_then_counts(pipe: tuple[int, IO[bytes]]) -> None:
    _, stream = pipe
    writer = LineWriterThread(stream, limit=100_000)
    for _ in range(1_000):
        writer.put(b"x" * 999 + b"\n")
    assert writer.full
    assert 800 <= writer.dropped <= 900  # 100 lines wait, and some may have gone into the pipe before
    assert not writer.sync(0.01)
    writer.close(0.01)
    writer.put(b"too late\n")
    assert writer.dropped >= 801


def test_unblocked_pipe_gets_the_queued_lines(pipe: tuple[int, IO[bytes]]) -> None:
    reading, stream = pipe
    os.set_blocking(stream.fileno(), False)  # as another program that shares the pipe may do
    writer = LineWriterThread(stream, limit=1_000_000)
    for _ in range(500):
        writer.put(b"x" * 999 + b"\n")
    received = 0
    while received < 500_000:
        received += len(os.read(reading, 65_536))
    assert writer.sync(5)
    assert (received, writer.dropped) == (500_000, 0)
    writer.close()


def test_closed_reader_is_counted_not_raised() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb", buffering=0) as stream:
        writer = LineWriterThread(stream)
        writer.put(b"a\nb\n", lines=2)
        assert writer.sync(5)
        assert writer.dropped == 2
        writer.put(b"c\n")
        writer.close()
    assert writer.dropped == 3


def test_closing_an_unused_writer_is_fast() -> None:
    LineWriterThread(sys.stderr).close()


def test_stream_closed_by_its_owner_is_tolerated(tmp_path: Path) -> None:
    with (tmp_path / "log").open("ab", buffering=0) as stream:
        writer = LineWriterThread(stream)
    writer.put(b"still here\n")
    writer.close()
    writer.close()
    assert (tmp_path / "log").read_bytes() == b"still here\n"
