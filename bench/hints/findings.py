"""What the robot has found: counts by kind of fault and of step, and what hints cost a model."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from bench.hints.judge import Advice
from bench.hints.robot import FollowedFault
from bench.hints.tasks import StepTaken, Then


@dataclass(frozen=True, kw_only=True)
class FaultCount:
    """The faults of one kind."""

    kind: str
    faults: int
    determined: int
    repaired: int
    harmful: int


@dataclass(frozen=True, kw_only=True)
class StepCount:
    """The steps after which the same can be said."""

    then: str
    steps: int
    hits: int
    silent: int
    harmful: int


@dataclass(frozen=True, kw_only=True)
class Findings:
    """The counts of a run."""

    faults: tuple[FaultCount, ...]
    tasks: int
    steps: tuple[StepCount, ...]
    suggestions: int
    """Suggestions that name a tool."""
    valid: int
    """Those that are complete calls, valid against the schema of a visible tool."""
    wrong: int
    """Those that name a tool the caller does not see, or arguments that its schema refuses."""
    errors: int
    """Answers with an error, whose advice could contradict it."""
    contradictions: tuple[str, ...]
    tokens: tuple[int, ...]
    """Of every answer's brief hints, sorted."""
    idle_tokens: int
    """The most tokens of an answer whose hints say nothing that a model could use."""
    missed: tuple[str, ...] = ()
    """Faults not repaired and steps not met; without arguments, which have paths of this machine."""
    notes: tuple[str, ...] = ()

    def step(self, then: Then) -> StepCount:
        """Return the count of the steps after which this can be said."""
        empty = StepCount(then=then, steps=0, hits=0, silent=0, harmful=0)
        return next((each for each in self.steps if each.then == then), empty)

    def tokens_at(self, share: float) -> float:
        """Return the tokens at a share of the answers that have brief hints, such as 0.5 for the median."""
        return _at([each for each in self.tokens if each], share)

    def as_json(self) -> dict[str, Any]:
        """Return the counts."""
        return {
            "faults": [asdict(each) for each in self.faults],
            "tasks": self.tasks,
            "steps": [asdict(each) for each in self.steps],
            "suggestions": {"named": self.suggestions, "valid": self.valid, "wrong": self.wrong},
            "errors": self.errors,
            "contradictions": list(self.contradictions),
            "missed": list(self.missed),
            "tokens": {
                "answers": len(self.tokens),
                "withHints": sum(map(bool, self.tokens)),
                "median": self.tokens_at(0.5),
                "p95": self.tokens_at(0.95),
                "idle": self.idle_tokens,
            },
        }


def gathered(
    followed: Sequence[FollowedFault],
    taken: Mapping[str, Sequence[StepTaken]],
    failures: Sequence[Advice],
    notes: Sequence[str],
) -> Findings:
    """Count what came of the faults, of the tasks by name, and of errors with every code."""
    steps = [step for each in taken.values() for step in each]
    advices = [*(each.advice for each in followed), *(each.advice for each in steps), *failures]
    calls = [call for advice in advices for call in advice.calls]
    idle = [step.advice.tokens for step in steps if step.idle]
    return Findings(
        faults=tuple(_by_kind(followed)),
        tasks=len(taken),
        steps=tuple(_by_then(steps)),
        suggestions=len(calls),
        valid=sum(each.is_valid for each in calls),
        wrong=sum(each.is_wrong for each in calls),
        errors=sum(advice.error is not None for advice in advices),
        contradictions=tuple(text for advice in advices for text in advice.contradictions()),
        tokens=tuple(sorted(advice.tokens for advice in advices)),
        idle_tokens=max(idle, default=0),
        missed=(*_unrepaired(followed), *_wrong_steps(taken)),
        notes=tuple(notes),
    )


def _unrepaired(followed: Sequence[FollowedFault]) -> Iterator[str]:
    for each in followed:
        if each.harmful or (each.fault.determined and not each.repaired):
            outcome = "harmful" if each.harmful else "not repaired"
            yield f"{each.fault.kind}: {each.fault.sent.tool}, {outcome}"


def _wrong_steps(taken: Mapping[str, Sequence[StepTaken]]) -> Iterator[str]:
    for name, steps in taken.items():
        for number, each in enumerate(steps, 1):
            if each.fails or each.harmful:
                wanted = each.next.tool if each.then is Then.FLOW and each.next else "nothing"
                yield f"{name}, step {number}: after {each.advice.asked.tool} {wanted} is to be suggested"


def _by_kind(followed: Sequence[FollowedFault]) -> Iterator[FaultCount]:
    for kind in dict.fromkeys(each.fault.kind for each in followed):
        of_kind = [each for each in followed if each.fault.kind is kind]
        yield FaultCount(
            kind=kind,
            faults=len(of_kind),
            determined=sum(each.fault.determined for each in of_kind),
            repaired=sum(each.repaired for each in of_kind),
            harmful=sum(each.harmful for each in of_kind),
        )


def _by_then(steps: Sequence[StepTaken]) -> Iterator[StepCount]:
    for then in Then:
        of_then = [each for each in steps if each.then is then]
        yield StepCount(
            then=then,
            steps=len(of_then),
            hits=sum(each.hit for each in of_then),
            silent=sum(each.silent for each in of_then),
            harmful=sum(each.harmful for each in of_then),
        )


def _at(ordered: Sequence[int], share: float) -> float:
    """Return the value at a share of sorted ones; the median is the mean of two where there is no middle."""
    if not ordered:
        return 0
    return median(ordered) if share == 0.5 else ordered[min(int(len(ordered) * share), len(ordered) - 1)]
