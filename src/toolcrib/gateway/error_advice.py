"""The next action for an agent after a problem, a pending question, or a call of a deprecated tool."""

from toolcrib.gateway.related_tools import example_of, kebab
from toolcrib.model import JsonObject, Kind, Problem, Tool
from toolcrib.model.hints import ActionCategory, Dependency, Level, NextAction

_AFTER: dict[Kind, tuple[str, Level, str]] = {
    Kind.INVALID: ("correct-arguments", "high", "Mend what the error names and call again."),
    Kind.NOT_FOUND: ("list-tools", "high", "Look at the tools there are and choose one of them."),
    Kind.DENIED: (
        "ask-for-permission",
        "medium",
        "Tell the user what is missing; calling again does not help.",
    ),
    Kind.LIMITED: ("wait-and-retry", "medium", "Wait as long as the error says, then call again."),
    Kind.UNAVAILABLE: ("retry-later", "medium", "Call again later, or choose another tool."),
    Kind.TIMEOUT: ("retry-once", "medium", "It is safe to call again."),
    Kind.UNKNOWN: ("check-outcome", "critical", "Find out whether it happened before you do anything else."),
    Kind.FAILED: ("reconsider", "high", "Read what the tool says and choose another way."),
    Kind.BAD_RESULT: ("ask-for-less", "medium", "Ask for a smaller part, or choose another tool."),
    Kind.CANCELLED: ("start-over", "low", "Call again if it is still wanted."),
    Kind.INTERNAL: ("report-to-operator", "medium", "Tell the operator; calling again may not help."),
}
_ASTRAY = ("check-address", "high", "Look at the name or the address again; this one leads nowhere.")
_CORRECTION: ActionCategory = "correction"

ANSWER = NextAction(
    action="answer-questions",
    priority="high",
    description="Have the questions answered, then make the same call again with answers and state.",
)
_CHECKED_FIRST = Dependency(
    action="call-again",
    depends_on=("check-outcome",),
    reason="It may have taken effect already; a second time may do harm.",
)


def after(problem: Problem, tool: Tool | None) -> NextAction:
    """Return the next action after a problem; invalid arguments get an example of valid ones."""
    action, priority, description = _ASTRAY if problem.code == "NOT_FOUND" else _AFTER[problem.kind]
    data: JsonObject | None = None
    if problem.code == "INVALID_ARGUMENTS" and tool is not None:
        example = example_of(tool)
        data = None if example is None else {"tool": tool.name, "arguments": example}
    return NextAction(
        action=action, priority=priority, data=data, description=description, category=_CORRECTION
    )


def before(problem: Problem | None) -> tuple[Dependency, ...]:
    """Return what must be done before a retry."""
    return (_CHECKED_FIRST,) if problem is not None and problem.kind == Kind.UNKNOWN else ()


def instead(tool: Tool) -> NextAction | None:
    """Return the call of the replacement, where the tool is deprecated and has one."""
    gone = tool.deprecated
    if gone is None or not gone.replacement:
        return None
    return NextAction(
        action="use-replacement",
        priority="medium",
        data={"tool": gone.replacement, "action": kebab(gone.replacement.rpartition(":")[2])},
        description=f"{tool.name} is deprecated; call {gone.replacement} from now on.",
    )
