"""Compares the CPU time of calls in this checkout with that in another one, in interleaved rounds."""

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from bench.asking import mcp_call, rest_call
from bench.process import UPSTREAM
from bench.rounds import Measured, Place
from bench.stage import Stage

NOW, OTHER = "this checkout", "the other one"
CPU_ROUNDS = 7
"""Rounds where nothing else is said: fewer do not tell a few per cent from noise."""


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """CPU time of one kind of call, this checkout divided by the other one, per round."""

    what: str
    connections: int
    now: float
    other: float
    ratios: tuple[float, ...]

    @property
    def row(self) -> str:
        """Return a line for the terminal."""
        spread = f"{min(self.ratios):.3f} to {max(self.ratios):.3f}"
        ratio = f"{median(self.ratios):.3f}"
        return (
            f"{self.what:<20} {self.connections:>4} {self.other:>9.1f} {self.now:>9.1f} {ratio:>7}  {spread}"
        )


HEADER = f"{'call':<20} {'conn':>4} {'other µs':>9} {'now µs':>9} {'ratio':>7}  spread of the rounds"


def set_up(stage: Stage, other: Path) -> None:
    """Start both gateways with a function and before a stdio server, and add their calls."""
    pythons = {NOW: sys.executable, OTHER: str(other.resolve() / ".venv/bin/python")}
    core = "" if stage.cores.load is None else str(stage.cores.load)
    server = {"PYTHON": sys.executable, "UPSTREAM": str(UPSTREAM), "CORE": core, "TOOLS": "1"}
    keys = {name: stage.crib(name, "small.yaml", rest_call(), python=each) for name, each in pythons.items()}
    # Both of a kind come right after each other, so that they find the machine alike.
    for kind, call in (("rest", rest_call()), ("mcp", mcp_call())):
        for name, key in keys.items():
            stage.add(kind, name, call.signed(key))
    for name, python in pythons.items():
        piped, call = f"{name}, stdio", mcp_call("pipe:echo")
        stage.add("pipe", piped, call.signed(stage.crib(piped, "pipe.yaml", call, server, python=python)))


def comparisons(measured: Mapping[Place, Measured]) -> Iterator[Comparison]:
    """Divide round by round, since both of a round had the same machine."""
    for ((what, name), connections), found in measured.items():
        if not name.startswith(NOW):
            continue
        before = measured[(what, name.replace(NOW, OTHER)), connections]
        pairs = [(a.cpu, b.cpu) for a, b in zip(found.rounds, before.rounds, strict=True)]
        ratios = tuple(a / b for a, b in pairs if a is not None and b)
        if ratios:
            yield Comparison(
                what=what,
                connections=connections,
                now=found.cpu or 0.0,
                other=before.cpu or 0.0,
                ratios=ratios,
            )
