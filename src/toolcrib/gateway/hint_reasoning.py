"""Explains generated hints in words: what was concluded about a result, and from what."""

from collections.abc import Iterator

from toolcrib.gateway.result_pages import ResultPage
from toolcrib.hints.parts import effect_of
from toolcrib.model import Problem, Tool

_UNITS = ((86_400, "day"), (3_600, "hour"), (60, "minute"))


def age_text(seconds: float) -> str:
    """Return an age in words, rounded so that results of about the same age have the same hints."""
    for length, unit in _UNITS:
        count = int(seconds / length)
        if count:
            return f"about {count} {unit}{'' if count == 1 else 's'}"
    return "less than a minute"


def reasoning_of_failure(problem: Problem, success: float | None) -> str:
    """Return what failed, and whether it may have taken effect; `success` is the recent rate, if known."""
    return f"The call failed with {problem.code}. {effect_of(problem)}{_record_sentence(success)}"


def reasoning_of_question(success: float | None) -> str:
    """Return why there is no result yet."""
    return f"The call waits for answers to its questions.{_record_sentence(success)}"


def reasoning_of_result(
    tool: Tool | None, confidence: float, success: float | None, page: ResultPage | None, *, partial: bool
) -> str:
    """Return what part of all results this is, and what its confidence is derived from."""
    reasons = [*_reasons(tool, success, partial=partial)]
    last = f", and {reasons.pop()}" if len(reasons) > 2 else f" and {reasons.pop()}" if reasons[1:] else ""
    conclusion = f"The confidence is {confidence:g}: {', '.join(reasons)}{last}."
    return conclusion if page is None else f"{page.as_text()} {conclusion}"


def _reasons(tool: Tool | None, success: float | None, *, partial: bool) -> Iterator[str]:
    if tool is not None:
        yield "the tool runs in this gateway" if tool.inside else "the tool runs outside this gateway"
        if tool.degraded:
            yield "its source is down"
        if tool.changed:
            yield "its definition has changed without approval"
        if tool.output_schema is not None:
            yield "its result has a schema" if not tool.inside else "its result matches its schema"
    if partial:
        yield "the result is empty or lacks fields"
    yield "there are no earlier calls" if success is None else f"{success:.0%} of the latest calls succeeded"


def _record_sentence(success: float | None) -> str:
    return "" if success is None else f" {success:.0%} of the latest calls succeeded."
