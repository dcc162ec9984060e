"""Goals for the findings of the robot that follows hints."""

from collections.abc import Iterator

from bench.goals import Bound, GoalResult
from bench.hints.findings import Findings
from bench.hints.tasks import Then

_NONE_AT_ALL = Bound(at_most=0)


def hint_goal_results(found: Findings) -> Iterator[GoalResult]:
    """Yield the findings, each with its goal."""
    flow, none = found.step(Then.FLOW), found.step(Then.NONE)
    determined = sum(each.determined for each in found.faults)
    repaired = sum(each.repaired for each in found.faults)
    harmful = sum(each.harmful for each in (*found.faults, *found.steps))
    silent_answers = len(found.tokens) - sum(map(bool, found.tokens))
    yield _share("faults repaired within one step", repaired, determined, Bound(at_least=80))
    yield _count("harmful actions followed", harmful, _NONE_AT_ALL)
    yield _share("suggestions that are valid calls", found.valid, found.suggestions, Bound())
    yield _count("suggestions that are invalid or name no visible tool", found.wrong, _NONE_AT_ALL)
    yield _count("contradictions between advice and error", len(found.contradictions), _NONE_AT_ALL)
    yield _share("known next call suggested, data flow", flow.hits, flow.steps, Bound(at_least=60))
    yield _share("no tool suggested, nothing to say", none.silent, none.steps, Bound(at_least=95))
    yield _count("brief hints, median where there are any", found.tokens_at(0.5), Bound(at_most=60), "tokens")
    yield _count("brief hints, 95th percentile", found.tokens_at(0.95), Bound(), "tokens")
    yield _count("brief hints where there is nothing to say", found.idle_tokens, _NONE_AT_ALL, "tokens")
    yield _share("answers without brief hints", silent_answers, len(found.tokens), Bound())


def _share(name: str, part: int, whole: int, bound: Bound) -> GoalResult:
    value = 100 * part / whole if whole else 0.0
    return GoalResult(name=name, metric="share", unit="%", connections=None, value=value, bound=bound)


def _count(name: str, value: float, bound: Bound, unit: str = "") -> GoalResult:
    metric = unit or "count"
    return GoalResult(name=name, metric=metric, unit=unit, connections=None, value=value, bound=bound)
