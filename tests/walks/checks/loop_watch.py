"""Measures the event loop and the memory of a gateway in this process while a healthy server is called."""

import gc
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import anyio

from tests.gateways import InProcessGateway
from tests.servers.client import until
from tests.walks.checks.starvation import starved_seconds

TICK_SECONDS = 0.005
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


def resident_bytes() -> int:
    """Return how much memory this process holds."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE_BYTES


@dataclass
class Watch:
    """The longest stall of the loop, the most memory, and the calls of the healthy server."""

    stall: float = 0.0
    memory: int = 0
    calls: int = 0
    slowest: float = 0.0
    errors: list[str] = field(default_factory=list[str])

    async def tick(self) -> None:
        while True:
            began, starved = anyio.current_time(), starved_seconds()
            await anyio.sleep(TICK_SECONDS)
            # Time in which this thread was ready but the machine was busy is not the loop's.
            late = anyio.current_time() - began - TICK_SECONDS - (starved_seconds() - starved)
            self.stall = max(self.stall, late)
            self.memory = max(self.memory, resident_bytes())

    async def call_the_twin(self, gateway: InProcessGateway) -> None:
        while True:
            began = anyio.current_time()
            reply = await gateway.call("twin:misbehave", {"kind": "fine"})
            self.slowest = max(self.slowest, anyio.current_time() - began)
            self.calls += 1
            if reply.status != 200:
                self.errors.append(reply.body.decode())


@asynccontextmanager
async def watched(gateway: InProcessGateway) -> AsyncGenerator[Watch]:
    """Measure, with calls to the healthy server going on, until the block ends."""
    gc.collect()
    watch = Watch()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(watch.tick)
        tasks.start_soon(watch.call_the_twin, gateway)
        yield watch
        tasks.cancel_scope.cancel()


async def up(gateway: InProcessGateway, *names: str) -> None:
    """Wait until each of these answers."""
    for name in names:

        async def answers(server: str = name) -> bool:
            return (await gateway.call(f"{server}:misbehave", {"kind": "fine"})).status == 200

        await until(answers)
