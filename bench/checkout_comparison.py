"""Compares the CPU time of calls between this checkout and another one, in interleaved rounds."""

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from bench.requests import mcp_call, rest_call
from bench.rounds import CaseResult, LoadPoint
from bench.running_servers import RunningServers
from bench.server_process import UPSTREAM

THIS_CHECKOUT, OTHER_CHECKOUT = "this checkout", "other checkout"
CPU_ROUNDS = 7
"""Default number of rounds: with fewer, a difference of a few per cent is lost in noise."""


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Ratios of the CPU time of one case per round, this checkout divided by the other one."""

    kind: str
    connections: int
    this_cpu: float
    other_cpu: float
    ratios: tuple[float, ...]

    @property
    def row(self) -> str:
        """Return the line of the printed table."""
        spread = f"{min(self.ratios):.3f} to {max(self.ratios):.3f}"
        ratio = f"{median(self.ratios):.3f}"
        cpu = f"{self.other_cpu:>9.1f} {self.this_cpu:>9.1f}"
        return f"{self.kind:<20} {self.connections:>4} {cpu} {ratio:>7}  {spread}"


HEADER = f"{'call':<20} {'conn':>4} {'other µs':>9} {'this µs':>9} {'ratio':>7}  range of rounds"


def set_up(servers: RunningServers, other: Path) -> None:
    """Start both gateways, with a function and with a stdio server, and add the cases."""
    pythons = {THIS_CHECKOUT: sys.executable, OTHER_CHECKOUT: str(other.resolve() / ".venv/bin/python")}
    core = "" if servers.cores.load is None else str(servers.cores.load)
    env = {"PYTHON": sys.executable, "UPSTREAM": str(UPSTREAM), "CORE": core, "TOOLS": "1"}
    keys = {
        name: servers.start_toolcrib(name, "small.yaml", rest_call(), python=python)
        for name, python in pythons.items()
    }
    # The two cases of a kind run right after each other, under the same conditions of the machine.
    for kind, call in (("rest", rest_call()), ("mcp", mcp_call())):
        for name, key in keys.items():
            servers.add_case(kind, name, call.with_key(key))
    for name, python in pythons.items():
        stdio_name, call = f"{name}, stdio", mcp_call("pipe:echo")
        key = servers.start_toolcrib(stdio_name, "pipe.yaml", call, env, python=python)
        servers.add_case("pipe", stdio_name, call.with_key(key))


def comparisons(measured: Mapping[LoadPoint, CaseResult]) -> Iterator[Comparison]:
    """Compare round by round, since both values of a round were measured under the same conditions."""
    for ((kind, name), connections), result in measured.items():
        if not name.startswith(THIS_CHECKOUT):
            continue
        baseline = measured[(kind, name.replace(THIS_CHECKOUT, OTHER_CHECKOUT)), connections]
        pairs = [(a.cpu, b.cpu) for a, b in zip(result.rounds, baseline.rounds, strict=True)]
        ratios = tuple(a / b for a, b in pairs if a is not None and b)
        if ratios:
            yield Comparison(
                kind=kind,
                connections=connections,
                this_cpu=result.cpu or 0.0,
                other_cpu=baseline.cpu or 0.0,
                ratios=ratios,
            )
