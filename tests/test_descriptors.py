"""What is known of this process's file descriptors, also while it has none left."""

import gc
import os
import subprocess
import sys

import pytest

from toolcrib.descriptors import ProcFile, free_descriptors, soft_limit

pytestmark = [
    pytest.mark.requirement("I5"),
    pytest.mark.skipif(sys.platform == "win32", reason="has no such limit"),
]

WITHOUT = """
import os, resource
import anyio
from toolcrib.http.memory import ResidentMemory
from toolcrib.descriptors import free_descriptors
from toolcrib.observe.loop_lag import LoopLag

class Noted(LoopLag):
    noted = 0
    def note(self, late):
        self.noted += 1

async def main():
    lag, resident = Noted(), ResidentMemory()
    async with lag.measuring():
        while lag.noted < 1:
            await anyio.sleep(0.01)
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
        seen = lag.noted
        while lag.noted < seen + 2:
            await anyio.sleep(0.01)
        print(free_descriptors(), resident() > 0 or not os.path.exists("/proc/self"))

anyio.run(main)
"""


def test_memory_and_lag_are_measured_without_descriptors() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT], check=False, capture_output=True, text=True, timeout=60
    )
    assert (done.stdout, done.returncode) == ("0 True\n", 0), done.stderr


def test_free_descriptors_are_counted() -> None:
    gc.collect()  # files that others left open are closed now, not while they are counted
    before, limit = free_descriptors(), soft_limit()
    if before is None or limit is None:
        pytest.skip("this system has no limit, or does not list them")
    opened = os.open(os.devnull, os.O_RDONLY)
    try:
        assert free_descriptors() == before - 1
        assert 0 < before < limit
    finally:
        os.close(opened)


def test_missing_file_is_silent() -> None:
    missing = ProcFile("/nowhere/at/all")
    assert missing.read() == b""
    missing.close()
