"""Records calls as fast as a busy gateway and prints their count; test_kill kills it."""

import sys

import anyio

from toolcrib.model import Result
from toolcrib.observe import CallRecorder, Metrics, RecentCalls, UsageTally
from toolcrib.store import open_store
from toolcrib.testing import a_call


async def main(url: str) -> None:
    store = await open_store(url)
    journal = CallRecorder(Metrics(), [UsageTally(store.usage), RecentCalls(store.calls)])
    call, count = a_call(), 0
    async with anyio.create_task_group() as tasks:
        await tasks.start(journal.run)
        while True:
            for _ in range(50):
                journal.record(call, Result(), 0.001)
            count += 50
            sys.stdout.write(f"{count}\n")
            sys.stdout.flush()
            await anyio.sleep(0.01)


if __name__ == "__main__":
    anyio.run(main, sys.argv[1])
