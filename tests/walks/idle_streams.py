"""Many clients that only listen: what they cost the calls of others, and how soon they all hear of a change.

Run by the suite for a few seconds, and by hand or a soak for long: `python -m tests.walks.idle_streams 60`.
"""

import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

import anyio

from tests.contract.asking import MODERN
from tests.walks.pressure import (
    CONFIG,
    GatewayUnderPressure,
    RawConnection,
    gateway_under_pressure,
    head,
    many,
    raw,
)

STREAMS, KEYS = 1000, 4
CALLS_PER_SECOND = 200
OPENED_AT_ONCE = 50
CHANGED, HEARD = b"notifications/tools/list_changed", b"notifications/subscriptions/acknowledged"
META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientInfo": {"name": "ear", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
LISTEN = json.dumps(
    {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "subscriptions/listen",
        "params": {"notifications": {"toolsListChanged": True}, "_meta": META},
    }
).encode()
CALL = json.dumps({"name": "pressed:pause", "arguments": {"seconds": 0}}).encode()
RELOAD = "/reload"


@dataclass
class Figures:
    """What was measured, in seconds and bytes."""

    alone_p99: float
    beside_p99: float
    calls: int
    """Beside the streams; all of them succeeded."""
    streams: int
    told: int
    told_within: float
    """From asking for the change until the last stream has heard of it."""
    resident: int

    @property
    def shortfalls(self) -> list[str]:
        """What is not as it should be on a machine that has nothing else to do."""
        expected = {
            "calls beside the streams take less than twice as long": self.beside_p99 < 2 * self.alone_p99,
            "all streams are told": self.told >= self.streams,
            "they are told within 2 s": self.told_within < 2,
        }
        return [what for what, is_so in expected.items() if not is_so]

    def __str__(self) -> str:
        """Say it in a line."""
        return (
            f"{self.calls} calls: p99 alone {self.alone_p99 * 1000:.1f} ms, beside the streams "
            f"{self.beside_p99 * 1000:.1f} ms; {self.told} told within {self.told_within:.2f} s; "
            f"{self.resident >> 20} MiB"
        )


async def idle_streams(
    seconds: float, *, streams: int = STREAMS, rate: int = CALLS_PER_SECOND, home: Path | None = None
) -> Figures:
    """Open streams, make calls beside them for so many seconds, then change the list for all."""
    with tempfile.TemporaryDirectory() as temporary:
        place = home or Path(temporary)
        async with gateway_under_pressure(place) as gateway, many(gateway, streams) as wires:
            keys = await gateway.keys(KEYS)
            alone = await _calls(gateway, keys[0], seconds, rate)
            for start in range(0, streams, OPENED_AT_ONCE):
                async with anyio.create_task_group() as tasks:
                    for number, wire in enumerate(wires[start : start + OPENED_AT_ONCE]):
                        tasks.start_soon(_listen, wire, keys[number % KEYS])
            beside = await _calls(gateway, keys[0], seconds, rate)
            resident = gateway.resident
            told, within = await _change(gateway, place, wires)
        return Figures(_p99(alone), _p99(beside), len(beside), streams, told, within, resident)


async def _listen(wire: RawConnection, key: str) -> None:
    more = b"Accept: application/json, text/event-stream\r\nMcp-Protocol-Version: %b\r\n" % MODERN.encode()
    more += b"Mcp-Method: subscriptions/listen\r\n\r\n"
    await wire.send(head("POST", "/mcp", key, LISTEN)[:-2] + more + LISTEN)
    with anyio.fail_after(60):
        await wire.reader.readuntil(HEARD)


async def _change(
    gateway: GatewayUnderPressure, home: Path, wires: Sequence[RawConnection]
) -> tuple[int, float]:
    """Take a tool off every list; return who heard of it, and how long the last took."""
    config = f"{CONFIG}limits: {{per_user: null}}\noverrides: {{'pressed:large': {{hidden: true}}}}\n"
    await anyio.Path(home / "toolcrib.yaml").write_text(config)
    times: list[float] = []
    began = perf_counter()

    async def hear(wire: RawConnection) -> None:
        await wire.reader.readuntil(CHANGED)
        times.append(perf_counter() - began)

    with anyio.move_on_after(60):
        async with anyio.create_task_group() as tasks:
            for wire in wires:
                tasks.start_soon(hear, wire)
            answer = await gateway.answer(RELOAD, body=b"{}")
            assert answer.status == 200, answer.text
    return len(times), max(times, default=0.0)


async def _calls(gateway: GatewayUnderPressure, key: str, seconds: float, rate: int) -> list[float]:
    """Call at a steady rate on one connection after another; return how long each took."""
    took: list[float] = []
    request = head("POST", "/api/tools/execute", key, CALL) + CALL
    began, connections = perf_counter(), 8

    async def some(first: int) -> None:
        async with raw(gateway) as wire:
            for number in range(first, int(seconds * rate), connections):
                await anyio.sleep(max(0.0, began + number / rate - perf_counter()))
                asked = perf_counter()
                await wire.send(request)
                assert (await wire.answer()).status == 200
                took.append(perf_counter() - asked)

    async with anyio.create_task_group() as tasks:
        for each in range(connections):
            tasks.start_soon(some, each)
    return took


def _p99(seconds: list[float]) -> float:
    return sorted(seconds)[int(len(seconds) * 0.99) - 1]


if __name__ == "__main__":
    measured = anyio.run(idle_streams, float(sys.argv[1]))
    print(measured)
    sys.exit("; ".join(measured.shortfalls) or 0)
