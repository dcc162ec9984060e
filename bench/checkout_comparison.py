"""Compares the CPU time of calls in this checkout with that in another one, in interleaved rounds."""

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from bench.requests import mcp_call, rest_call
from bench.rounds import CaseResult, LoadPoint
from bench.running_servers import RunningServers
from bench.server_process import UPSTREAM

THIS_CHECKOUT, OTHER_CHECKOUT = "this checkout", "the other one"
CPU_ROUNDS = 7
"""Rounds where nothing else is said: fewer do not tell a few per cent from noise."""


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """CPU time of one kind of call, this checkout divided by the other one, per round."""

    kind: str
    connections: int
    this_cpu: float
    other_cpu: float
    ratios: tuple[float, ...]

    @property
    def row(self) -> str:
        """Return a line for the terminal."""
        spread = f"{min(self.ratios):.3f} to {max(self.ratios):.3f}"
        ratio = f"{median(self.ratios):.3f}"
        cpu = f"{self.other_cpu:>9.1f} {self.this_cpu:>9.1f}"
        return f"{self.kind:<20} {self.connections:>4} {cpu} {ratio:>7}  {spread}"


HEADER = f"{'call':<20} {'conn':>4} {'other µs':>9} {'now µs':>9} {'ratio':>7}  spread of the rounds"


def set_up(servers: RunningServers, other: Path) -> None:
    """Start both gateways with a function and before a stdio server, and add their calls."""
    pythons = {THIS_CHECKOUT: sys.executable, OTHER_CHECKOUT: str(other.resolve() / ".venv/bin/python")}
    core = "" if servers.cores.load is None else str(servers.cores.load)
    env = {"PYTHON": sys.executable, "UPSTREAM": str(UPSTREAM), "CORE": core, "TOOLS": "1"}
    keys = {
        name: servers.start_toolcrib(name, "small.yaml", rest_call(), python=python)
        for name, python in pythons.items()
    }
    # Both of a kind come right after each other, so that they find the machine alike.
    for kind, call in (("rest", rest_call()), ("mcp", mcp_call())):
        for name, key in keys.items():
            servers.add_case(kind, name, call.with_key(key))
    for name, python in pythons.items():
        stdio_name, call = f"{name}, stdio", mcp_call("pipe:echo")
        key = servers.start_toolcrib(stdio_name, "pipe.yaml", call, env, python=python)
        servers.add_case("pipe", stdio_name, call.with_key(key))


def comparisons(measured: Mapping[LoadPoint, CaseResult]) -> Iterator[Comparison]:
    """Divide round by round, since both of a round had the same machine."""
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
