"""The descriptor of a pipe is closed once, on every event loop, and never under another owner."""

import asyncio
import os
import threading
from collections.abc import Callable

import anyio
import pytest
import uvloop

from toolcrib.descriptors import PipeEnd, open_pipe

pytestmark = pytest.mark.requirement("C2", "I5")

PIPES = 4000
LOOPS: list[Callable[[], asyncio.AbstractEventLoop]] = [asyncio.new_event_loop, uvloop.new_event_loop]


def is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


def test_close_twice_closes_once() -> None:
    reading, writing = open_pipe()
    descriptor = reading.fileno()
    reading.close()
    assert not is_open(descriptor)
    os.dup2(writing.fileno(), descriptor)  # somebody else has the number now
    reading.close()
    assert is_open(descriptor)
    with pytest.raises(ValueError, match="closed"):
        reading.fileno()
    os.close(descriptor)
    writing.close()


async def read_and_close(end: PipeEnd) -> None:
    loop, lost = asyncio.get_running_loop(), anyio.Event()

    class Reader(asyncio.Protocol):
        def connection_lost(self, exc: Exception | None) -> None:
            lost.set()

    transport, _ = await loop.connect_read_pipe(Reader, end.give_to(loop))
    transport.close()
    await lost.wait()


@pytest.mark.parametrize("loop", LOOPS)
def test_a_loop_closes_the_descriptor(loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
    reading, writing = open_pipe()
    descriptor = reading.fileno()
    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(read_and_close(reading))
    assert not is_open(descriptor)
    os.dup2(writing.fileno(), descriptor)
    reading.close()
    assert is_open(descriptor)
    os.close(descriptor)
    writing.close()


@pytest.mark.slow
@pytest.mark.no_cover
@pytest.mark.parametrize("loop", LOOPS)
def test_files_of_other_threads_stay_open(loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
    faults: list[OSError] = []
    over = threading.Event()

    def open_files() -> None:
        while not over.is_set():
            try:
                descriptor = os.open(__file__, os.O_RDONLY)
                os.pread(descriptor, 1, 0)
                os.close(descriptor)
            except OSError as error:
                faults.append(error)

    async def open_pipes() -> None:
        for _ in range(PIPES):
            reading, writing = open_pipe()
            await read_and_close(reading)
            writing.close()

    threads = [threading.Thread(target=open_files, daemon=True) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        with asyncio.Runner(loop_factory=loop) as runner:
            runner.run(open_pipes())
    finally:
        over.set()
        for thread in threads:
            thread.join(10.0)
    assert faults == []
