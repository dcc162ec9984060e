"""Our ends of a server's streams close at once, whatever is on its way, and never write to nobody."""

import asyncio
import io
import os
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

import anyio
import pytest

from tests.sources.mcp.marked_servers import PATIENT
from toolcrib.mcp.lines import OverlongLine
from toolcrib.sources.mcp.connection import NotSent
from toolcrib.sources.mcp.process_streams import ProcessInput, ProcessOutput

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module", params=[False, True], ids=["asyncio", "uvloop"])
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, bool]]:
    return ("asyncio", {"use_uvloop": request.param})


def nothing() -> None:
    """Nobody wants to know."""


@asynccontextmanager
async def written(lost: Callable[[], None] = nothing) -> AsyncGenerator[tuple[ProcessInput, io.FileIO]]:
    out, into = os.pipe()
    pipe = ProcessInput(lost)
    with io.FileIO(out, "rb") as far_end, io.FileIO(into, "wb") as near:
        await asyncio.get_running_loop().connect_write_pipe(lambda: pipe, near)
        yield pipe, far_end
        await pipe.abort()


async def test_nothing_is_written_before_there_is_a_pipe_or_after() -> None:
    pipe = ProcessInput(nothing)
    with pytest.raises(NotSent):
        pipe.write(b"x")
    pipe.close()
    await pipe.abort()
    assert pipe.unread == 0
    async with written() as (open_pipe, far_end):
        open_pipe.write(b"x")
        assert os.read(far_end.fileno(), 10) == b"x"
        open_pipe.close()
        with pytest.raises(NotSent):
            open_pipe.write(b"y")


async def test_unread_output_does_not_delay_close() -> None:
    ends: list[int] = []
    async with written(lambda: ends.append(1)) as (pipe, _):
        pipe.write(b"x" * (1 << 20))
        assert pipe.full
        assert pipe.unread > 1 << 19
        pipe.close()
        with anyio.fail_after(PATIENT):
            await pipe.abort()
            await pipe.wait_writable()
    assert ends == [1]


async def test_abandoned_stream_releases_waiting_writers() -> None:
    async with written() as (pipe, _):
        pipe.release_waiters()
        pipe.write(b"x" * (1 << 20))
        assert not pipe.full


async def test_messages_that_come_while_others_wait_keep_their_order() -> None:
    taken: list[bytes | OverlongLine] = []
    output = ProcessOutput(taken.append, nothing, nothing)
    output.data_received(b"".join(b"%d\n" % number for number in range(1_000)))
    output.data_received(b"1000\n")
    with anyio.fail_after(PATIENT):
        while len(taken) <= 1_000:
            await anyio.lowlevel.checkpoint()
    assert taken == [b"%d" % number for number in range(1_001)]
