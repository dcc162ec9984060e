"""Rounds of load, one case after the other, so that what disturbs the machine disturbs all of them."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from bench.asking import WrongAnswer
from bench.load import Drive
from bench.stage import Case, Key

_WARM_SECONDS = 1.0
_USUAL = 16


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How much is measured."""

    rounds: int
    seconds: float
    connections: tuple[int, ...]

    @property
    def usual(self) -> int:
        """Return the number of connections that pictures show: enough to fill a core, few enough to wait."""
        return _USUAL if _USUAL in self.connections else max(self.connections)

    def counts(self, case: Case) -> list[int]:
        """Return the numbers of connections a case is measured with, all of them among `connections`."""
        return [count for count in self.connections if count <= case.most] or [min(self.connections)]


@dataclass(frozen=True, kw_only=True)
class Round:
    """One case in one round."""

    rate: float
    """Right answers a second."""
    cpu: float | None
    """Microseconds of processor time of the server for one call."""
    p50: float
    p99: float
    failures: int


Place = tuple[Key, int]
"""A case and a number of connections."""


@dataclass(frozen=True)
class Measured:
    """The rounds of one case at one number of connections, and what is in the middle of them."""

    rounds: tuple[Round, ...]

    @property
    def rate(self) -> float:
        return median(each.rate for each in self.rounds)

    @property
    def cpu(self) -> float | None:
        known = [each.cpu for each in self.rounds if each.cpu is not None]
        return median(known) if known else None

    @property
    def p50(self) -> float:
        return median(each.p50 for each in self.rounds)

    @property
    def p99(self) -> float:
        return median(each.p99 for each in self.rounds)

    @property
    def failures(self) -> int:
        return sum(each.failures for each in self.rounds)


def measure(cases: Mapping[Key, Case], drive: Drive, plan: Plan) -> dict[Place, Measured]:
    """Run every round."""
    rows: dict[Place, list[Round]] = {
        (key, count): [] for key, case in cases.items() for count in plan.counts(case)
    }
    warm = min(_WARM_SECONDS, plan.seconds)
    for case in cases.values():
        drive(case.peer.port, case.request, max(plan.counts(case)), warm)
    for number in range(plan.rounds):
        print(f"round {number + 1} of {plan.rounds}", file=sys.stderr, flush=True)
        # There and back: no case always comes after the same one. Cases that are compared come right
        # after each other, since the speed of a shared machine changes within seconds.
        for count in plan.connections:
            for key in _turned(list(cases), number):
                if (key, count) in rows:
                    seconds = max(plan.seconds, cases[key].seconds)
                    rows[key, count].append(_one(cases[key], drive, count, seconds))
    return {place: Measured(tuple(found)) for place, found in rows.items()}


def _turned(keys: list[Key], number: int) -> Sequence[Key]:
    return keys if number % 2 == 0 else keys[::-1]


def _one(case: Case, drive: Drive, connections: int, seconds: float) -> Round:
    before = case.peer.cpu()
    driven = drive(case.peer.port, case.request, connections, seconds)
    after = case.peer.cpu()
    right = driven.calls - driven.failures
    if driven.calls and right <= 0:
        raise WrongAnswer(f"{case.peer.name} gave no right answer in a whole round")
    spent = None if before is None or after is None else after - before
    return Round(
        rate=right / driven.seconds,
        cpu=None if spent is None or not driven.calls else spent / driven.calls * 1e6,
        p50=driven.p50,
        p99=driven.p99,
        failures=driven.failures,
    )
