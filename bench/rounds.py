"""Measures all cases in interleaved rounds, so that disturbances of the machine affect all of them."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from bench.load_generator import RunLoad
from bench.requests import UnexpectedResponse
from bench.running_servers import Case, CaseId

_WARM_UP_SECONDS = 1.0
_CHARTED_CONNECTIONS = 16


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Number and duration of rounds, and numbers of connections."""

    rounds: int
    seconds: float
    connections: tuple[int, ...]

    @property
    def charted_connections(self) -> int:
        """Return the number of connections that charts show: 16 saturate a core and keep queues short."""
        return _CHARTED_CONNECTIONS if _CHARTED_CONNECTIONS in self.connections else max(self.connections)

    def connection_counts(self, case: Case) -> list[int]:
        """Return the numbers of connections a case is measured with: at least one of `connections`."""
        return [count for count in self.connections if count <= case.max_connections] or [
            min(self.connections)
        ]


@dataclass(frozen=True, kw_only=True)
class Round:
    """Measured values of one case in one round."""

    rate: float
    """Successful responses per second."""
    cpu: float | None
    """CPU time of the server per call, in microseconds."""
    p50: float
    p99: float
    failures: int


LoadPoint = tuple[CaseId, int]
"""A case and a number of connections."""


@dataclass(frozen=True)
class CaseResult:
    """The rounds of one case at one number of connections, and their medians."""

    rounds: tuple[Round, ...]

    @property
    def rate(self) -> float:
        return median(each.rate for each in self.rounds)

    @property
    def cpu(self) -> float | None:
        measured = [each.cpu for each in self.rounds if each.cpu is not None]
        return median(measured) if measured else None

    @property
    def p50(self) -> float:
        return median(each.p50 for each in self.rounds)

    @property
    def p99(self) -> float:
        return median(each.p99 for each in self.rounds)

    @property
    def failures(self) -> int:
        return sum(each.failures for each in self.rounds)


def measure(cases: Mapping[CaseId, Case], run_load: RunLoad, plan: Plan) -> dict[LoadPoint, CaseResult]:
    """Warm up every server, run all rounds and return the results."""
    results: dict[LoadPoint, list[Round]] = {
        (key, count): [] for key, case in cases.items() for count in plan.connection_counts(case)
    }
    warm_up_seconds = min(_WARM_UP_SECONDS, plan.seconds)
    for case in cases.values():
        run_load(case.server.port, case.request, max(plan.connection_counts(case)), warm_up_seconds)
    for number in range(plan.rounds):
        print(f"round {number + 1} of {plan.rounds}", file=sys.stderr, flush=True)
        # Every second round runs in reverse, so that no case always follows the same one. Cases that are
        # compared run right after each other, since the speed of a shared machine changes within seconds.
        for count in plan.connections:
            for key in _alternate(list(cases), number):
                if (key, count) in results:
                    seconds = max(plan.seconds, cases[key].seconds)
                    results[key, count].append(_run_round(cases[key], run_load, count, seconds))
    return {point: CaseResult(tuple(rounds)) for point, rounds in results.items()}


def _alternate(keys: list[CaseId], number: int) -> Sequence[CaseId]:
    return keys if number % 2 == 0 else keys[::-1]


def _run_round(case: Case, run_load: RunLoad, connections: int, seconds: float) -> Round:
    cpu_before = case.server.cpu()
    result = run_load(case.server.port, case.request, connections, seconds)
    cpu_after = case.server.cpu()
    successful = result.calls - result.failures
    if result.calls and successful <= 0:
        raise UnexpectedResponse(f"{case.server.name} returned no successful response in a round")
    cpu_seconds = None if cpu_before is None or cpu_after is None else cpu_after - cpu_before
    return Round(
        rate=successful / result.seconds,
        cpu=None if cpu_seconds is None or not result.calls else cpu_seconds / result.calls * 1e6,
        p50=result.p50,
        p99=result.p99,
        failures=result.failures,
    )
