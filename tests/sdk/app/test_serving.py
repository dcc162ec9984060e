"""An app as a server: for a block, until cancelled, or as a program of its own."""

import signal
import subprocess
import sys
from functools import partial
from urllib.request import urlopen

import anyio
import pytest

from tests.sdk.app.fake_gateway import PACKAGE, an_app

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

PROGRAM = """
from toolcrib.sdk import AppServer
app = AppServer(package="com.example.reminder", api_key="k")
app.run(port=0)
"""


async def fail_in_a_block() -> None:
    """Raise an error while an app is served."""
    async with an_app().serving() as address:
        assert address.startswith("http://127.0.0.1:")
        raise LookupError("mine")


async def test_exception_of_block_is_not_wrapped() -> None:
    with pytest.raises(LookupError, match="mine"):
        await fail_in_a_block()


async def test_until_cancelled() -> None:
    async with an_app().serving() as address:
        port = int(address.rpartition(":")[2])
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(partial(an_app().serve, port=port))
        with anyio.fail_after(20):
            while not await anyio.to_thread.run_sync(answers, port):
                await anyio.lowlevel.checkpoint()
        tasks.cancel_scope.cancel()
    assert not answers(port)


def answers(port: int) -> bool:
    """Whether an app is there."""
    try:
        with urlopen(f"http://127.0.0.1:{port}/health") as response:
            return PACKAGE.encode() in response.read()
    except OSError:
        return False


def test_a_program_ends_on_a_signal() -> None:
    process = subprocess.Popen([sys.executable, "-c", PROGRAM], stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        assert any("running on" in line for line in process.stderr)
        process.send_signal(signal.SIGTERM)
        _, rest = process.communicate(timeout=20)
    finally:
        process.kill()
    assert process.returncode in {0, -signal.SIGTERM}
    assert "shutdown complete" in rest
