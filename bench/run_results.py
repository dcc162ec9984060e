"""Results of a run and their JSON form, which contains nothing that identifies the machine."""

import platform
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bench.goals import GoalResult, goal_results
from bench.hints.findings import Findings
from bench.hints.goals import hint_goal_results
from bench.rounds import CaseResult, LoadPoint, Plan
from bench.server_process import ServerProcess


@dataclass(frozen=True, kw_only=True)
class RunResults:
    """Measured values of a run, and the conditions under which they were measured."""

    plan: Plan
    load: str
    cores: int
    pinned: bool
    notes: tuple[str, ...]
    versions: Mapping[str, str]
    processes: Mapping[str, ServerProcess]
    measured: Mapping[LoadPoint, CaseResult]
    findings: Findings | None = None

    @property
    def goal_results(self) -> tuple[GoalResult, ...]:
        of_hints = () if self.findings is None else hint_goal_results(self.findings)
        return (*goal_results(self.measured, self.processes), *of_hints)

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
            "goals": [_goal_json(each) for each in self.goal_results],
            "cases": [_case_json(point, case) for point, case in self.measured.items()],
            "servers": {name: _server_json(server) for name, server in self.processes.items()},
            **({} if self.findings is None else {"hints": self.findings.as_json()}),
        }


def _goal_json(result: GoalResult) -> dict[str, Any]:
    return {
        "name": result.name,
        "figure": result.metric,
        "connections": result.connections,
        "value": round(result.value, 3),
        "unit": result.unit,
        "goal": result.bound.description,
        "reached": result.reached,
    }


def _case_json(point: LoadPoint, case: CaseResult) -> dict[str, Any]:
    (kind, server), connections = point
    return {
        "case": kind,
        "server": server,
        "connections": connections,
        "callsPerSecond": round(case.rate, 1),
        "cpuMicroseconds": _rounded(case.cpu, 1),
        "p50Milliseconds": round(case.p50, 3),
        "p99Milliseconds": round(case.p99, 3),
        "failures": case.failures,
    }


def _server_json(server: ServerProcess) -> dict[str, Any]:
    return {
        "startSeconds": round(server.start_seconds, 2),
        "idleMegabytes": _rounded(server.idle_megabytes, 1),
    }


def _rounded(value: float | None, digits: int) -> float | None:
    return None if value is None else round(value, digits)
