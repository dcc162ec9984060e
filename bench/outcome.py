"""What a run found out, and how JSON spells it: facts about the run, none about whose machine it was."""

import platform
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bench.goals import Verdict, verdicts
from bench.hints.findings import Findings
from bench.hints.goals import hint_verdicts
from bench.process import Peer
from bench.rounds import Measured, Place, Plan


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The numbers, and how they came about."""

    plan: Plan
    load: str
    cores: int
    pinned: bool
    notes: tuple[str, ...]
    versions: Mapping[str, str]
    peers: Mapping[str, Peer]
    measured: Mapping[Place, Measured]
    findings: Findings | None = None

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        of_hints = () if self.findings is None else hint_verdicts(self.findings)
        return (*verdicts(self.measured, self.peers), *of_hints)

    def as_json(self) -> dict[str, Any]:
        return {
            "python": platform.python_version(),
            "versions": dict(self.versions),
            "cores": self.cores,
            "pinned": self.pinned,
            "load": self.load,
            "rounds": self.plan.rounds,
            "seconds": self.plan.seconds,
            "notes": list(self.notes),
            "goals": [_verdict(each) for each in self.verdicts],
            "cases": [_case(place, found) for place, found in self.measured.items()],
            "servers": {name: _server(peer) for name, peer in self.peers.items()},
            **({} if self.findings is None else {"hints": self.findings.as_json()}),
        }


def _verdict(verdict: Verdict) -> dict[str, Any]:
    return {
        "name": verdict.name,
        "figure": verdict.figure,
        "connections": verdict.connections,
        "value": round(verdict.value, 3),
        "unit": verdict.unit,
        "goal": verdict.bound.wanted,
        "reached": verdict.reached,
    }


def _case(place: Place, found: Measured) -> dict[str, Any]:
    (what, server), connections = place
    return {
        "case": what,
        "server": server,
        "connections": connections,
        "callsPerSecond": round(found.rate, 1),
        "cpuMicroseconds": _rounded(found.cpu, 1),
        "p50Milliseconds": round(found.p50, 3),
        "p99Milliseconds": round(found.p99, 3),
        "failures": found.failures,
    }


def _server(peer: Peer) -> dict[str, Any]:
    return {
        "startSeconds": round(peer.start_seconds, 2),
        "idleMegabytes": _rounded(peer.idle_megabytes, 1),
    }


def _rounded(value: float | None, digits: int) -> float | None:
    return None if value is None else round(value, digits)
