"""File descriptors are raised for the gateway alone; when they run out, the operator is served."""

import json
import resource
import sys
from pathlib import Path

import anyio
import pytest

from tests.walks.pressure import GatewayUnderPressure, gateway_under_pressure, many
from tests.walks.test_fairness import SERVER

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.slow,
    pytest.mark.no_cover,
    pytest.mark.requirement("I5"),
    pytest.mark.skipif(sys.platform != "linux", reason="reads and sets limits of another process"),
]


def _lower(gateway: GatewayUnderPressure, free: int) -> None:
    """Leave a process so many descriptors beside those it has."""
    used = len(list(Path(f"/proc/{gateway.process.pid}/fd").iterdir()))
    _, hard = resource.prlimit(gateway.process.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(gateway.process.pid, resource.RLIMIT_NOFILE, (used + free, hard))


async def test_operator_is_served_while_descriptors_are_out(tmp_path: Path) -> None:
    async with gateway_under_pressure(tmp_path) as gateway:
        (key,) = await gateway.keys(1)
        _lower(gateway, 40)
        async with many(gateway, 400):
            assert (await gateway.answer("/api/keys")).status == 200
            assert (await gateway.answer("/api/tools", key)).status in {503, 0}
            began = gateway.processor_seconds
            await anyio.sleep(2)
            used = gateway.processor_seconds - began
            assert (await gateway.answer("/api/keys")).status == 200
        print(f"\n400 connections, 40 descriptors: {used:.2f} s of the processor in 2 s")
        assert used < 1
        with anyio.fail_after(20):
            while (await gateway.answer("/api/tools", key)).status != 200:  # noqa: ASYNC110 - until it recovers
                await anyio.sleep(0.05)
    lines = (await anyio.Path(tmp_path / "log").read_text()).splitlines()
    said = [each["level"] for each in map(json.loads, lines) if each.get("logger") == "toolcrib.http.runner"]
    assert said == ["error", "warning"]


async def test_limit_is_raised_for_the_gateway_alone(tmp_path: Path) -> None:
    limited = tmp_path / "limited"
    limited.write_text(f'#!/bin/sh\nulimit -S -n 200\nulimit -H -n 900\nexec {sys.executable} "$@"\n')
    limited.chmod(0o700)
    server = f"{{transport: stdio, command: [{sys.executable}, {SERVER}, stdio]}}"
    more = f"mcp: {{servers: {{paced: {server}}}}}\n"
    async with gateway_under_pressure(tmp_path, python=limited, more=more) as gateway:
        assert resource.prlimit(gateway.process.pid, resource.RLIMIT_NOFILE) == (900, 900)
        with anyio.fail_after(60):
            while not (started := _servers(gateway.process.pid)):  # noqa: ASYNC110 - until it has started
                await anyio.sleep(0.05)
        assert {resource.prlimit(each, resource.RLIMIT_NOFILE) for each in started} == {(200, 900)}


def _servers(gateway: int) -> list[int]:
    """The servers that run under the guards of a gateway."""
    found: list[int] = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            parts, name = path.joinpath("cmdline").read_bytes().split(b"\0"), str(SERVER).encode()
            parent = int(path.joinpath("stat").read_text().rpartition(")")[2].split()[1])
            grandparent = int(Path(f"/proc/{parent}/stat").read_text().rpartition(")")[2].split()[1])
        except (OSError, ValueError, IndexError):
            continue
        if grandparent == gateway and name in parts:
            found.append(int(path.name))
    return found
