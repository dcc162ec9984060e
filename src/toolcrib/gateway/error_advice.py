"""Suggested actions after a problem, after a question, and after a call of a deprecated tool."""

from toolcrib.errors import advice_on
from toolcrib.gateway.related_tools import kebab_case
from toolcrib.model import JsonObject, Kind, Problem, Tool
from toolcrib.model.hints import Dependency, NextAction

ANSWER_QUESTIONS = NextAction(
    action="answer-questions",
    priority="high",
    description="Get the questions answered, then repeat the same call with the answers and the state.",
)
_CHECK_OUTCOME_FIRST = Dependency(
    action="call-again",
    depends_on=("check-outcome",),
    reason="It may have taken effect already; repeating it may do harm.",
)


def action_after(problem: Problem, tool: Tool | None) -> NextAction:
    """Return the next action after a problem, from the table of advice."""
    advice = advice_on(problem)
    may_change = problem.kind == Kind.UNKNOWN or tool is None or not tool.read_only
    sentences = (advice.check if may_change else "", advice.text)
    return NextAction(
        action=advice.action,
        priority=advice.priority,
        data=_replacement_data(tool) if problem.code == "TOOL_REMOVED" and tool is not None else None,
        description=" ".join(filter(None, sentences)),
        category="correction",
    )


def dependencies_before_retry(problem: Problem | None) -> tuple[Dependency, ...]:
    """Return what must be done before a retry."""
    return (_CHECK_OUTCOME_FIRST,) if problem is not None and problem.kind == Kind.UNKNOWN else ()


def replacement_action(tool: Tool, problem: Problem | None = None) -> NextAction | None:
    """Return the call of the replacement, where the tool is deprecated and has one.

    None after TOOL_REMOVED, as the advice on the problem is the same.
    """
    data = _replacement_data(tool)
    if data is None or (problem is not None and problem.code == "TOOL_REMOVED"):
        return None
    return NextAction(
        action="use-replacement",
        priority="medium",
        data=data,
        description=f"{tool.name} is deprecated; call {data['tool']} from now on.",
    )


def _replacement_data(tool: Tool) -> JsonObject | None:
    replacement = tool.deprecated.replacement if tool.deprecated is not None else None
    if not replacement:
        return None
    return {"tool": replacement, "action": kebab_case(replacement.rpartition(":")[2])}
