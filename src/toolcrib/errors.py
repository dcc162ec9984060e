"""The error model: the tables of codes and of advice, and the exceptions that carry a `Problem`.

* ToolcribError            carries a Problem; `steps.recover` turns it into a Result
  x Refused                not attempted: invalid, not found, denied, limited
  x Unavailable            could not be attempted: the source is down, or nothing was sent
  x Lost                   attempted, outcome unknown: it may have taken effect
  x Failed                 attempted, and the tool or its source reports a failure
    x BusinessRuleError    raised by tool authors: a rule of their domain forbids it
  x Broken                 the result violates the contract or the size limit
"""

from dataclasses import dataclass
from typing import Any, Literal

from toolcrib.model import Hints, Kind, Problem
from toolcrib.model.hints import Level

ErrorClass = Literal["validation", "business", "system"]


@dataclass(frozen=True, slots=True)
class Code:
    """One row of the table: the meaning of a code on every frontend."""

    kind: Kind
    status: int
    error_class: ErrorClass
    retryable: bool
    speak: str
    """Sentence for speech output: no codes, no addresses."""
    mcp: Literal["result", "error"] = "result"
    """Representation in MCP: a result with `isError`, or a protocol error."""


CODES: dict[str, Code] = {
    "INVALID_REQUEST": Code(
        Kind.INVALID, 400, "validation", False, "I could not understand that request.", "error"
    ),
    "INVALID_TOOL_NAME": Code(
        Kind.INVALID, 400, "validation", False, "That is not a valid tool name.", "error"
    ),
    "INVALID_ARGUMENTS": Code(Kind.INVALID, 400, "validation", False, "Some of the details were not right."),
    "METHOD_NOT_ALLOWED": Code(
        Kind.INVALID, 405, "validation", False, "That cannot be done this way.", "error"
    ),
    "ALREADY_EXISTS": Code(Kind.INVALID, 409, "validation", False, "That exists already."),
    "PAYLOAD_TOO_LARGE": Code(
        Kind.INVALID, 413, "validation", False, "That is more than I can take in at once.", "error"
    ),
    "IDEMPOTENCY_MISMATCH": Code(
        Kind.INVALID, 422, "validation", False, "That request was already used for something else."
    ),
    "NOT_FOUND": Code(Kind.NOT_FOUND, 404, "validation", False, "I could not find that.", "error"),
    "TOOL_NOT_FOUND": Code(
        Kind.NOT_FOUND, 404, "validation", False, "I do not have a tool for that.", "error"
    ),
    "TOOL_REMOVED": Code(
        Kind.NOT_FOUND, 410, "validation", False, "That tool is no longer available.", "error"
    ),
    "UNAUTHENTICATED": Code(
        Kind.DENIED, 401, "validation", False, "I need to know who is asking first.", "error"
    ),
    "NO_SESSION": Code(
        Kind.DENIED, 401, "validation", False, "There is no active session for this user.", "error"
    ),
    "PERMISSION_DENIED": Code(Kind.DENIED, 403, "business", False, "I am not allowed to do that for you."),
    "SCOPE_DENIED": Code(Kind.DENIED, 403, "business", False, "That is outside what I may do here.", "error"),
    "ORIGIN_REFUSED": Code(
        Kind.DENIED, 403, "validation", False, "That request came from a place I do not trust.", "error"
    ),
    "HOST_REFUSED": Code(
        Kind.DENIED, 421, "validation", False, "That request was sent to the wrong place.", "error"
    ),
    "RATE_LIMITED": Code(
        Kind.LIMITED, 429, "business", True, "That was too many requests. Please try again in a moment."
    ),
    "IN_PROGRESS": Code(Kind.LIMITED, 409, "business", True, "I am still working on that."),
    "OVERLOADED": Code(
        Kind.LIMITED, 503, "system", True, "I am very busy right now. Please try again in a moment."
    ),
    "APP_NOT_AVAILABLE": Code(Kind.UNAVAILABLE, 503, "system", True, "That app is not available right now."),
    "SOURCE_DOWN": Code(Kind.UNAVAILABLE, 503, "system", True, "The tool I need is not running right now."),
    "NETWORK_ERROR": Code(Kind.UNAVAILABLE, 502, "system", True, "I could not reach what I need for that."),
    "HTTP_ERROR": Code(Kind.UNAVAILABLE, 502, "system", True, "What I asked did not answer properly."),
    "TIMEOUT": Code(Kind.TIMEOUT, 504, "system", True, "That took too long."),
    "OUTCOME_UNKNOWN": Code(Kind.UNKNOWN, 504, "system", False, "I do not know whether that went through."),
    "TOOL_FAILED": Code(Kind.FAILED, 422, "business", False, "That did not work."),
    "HANDLER_ERROR": Code(Kind.FAILED, 500, "system", False, "Something went wrong inside the tool."),
    "ANSWER_NOT_KEPT": Code(
        Kind.BAD_RESULT, 410, "business", False, "That was done, but I no longer have the answer."
    ),
    "RESULT_TOO_LARGE": Code(Kind.BAD_RESULT, 502, "system", False, "The answer was too large to pass on."),
    "CONTRACT_VIOLATION": Code(
        Kind.BAD_RESULT, 500, "system", False, "The tool gave an answer I cannot use."
    ),
    "CANCELLED": Code(Kind.CANCELLED, 499, "system", False, "That was cancelled."),
    "EXECUTION_ERROR": Code(Kind.INTERNAL, 500, "system", False, "Something went wrong on my side."),
}


# --- Advice per code: what to do, whether a retry helps, whether the call may have taken effect ---

Retry = Literal["never", "corrected", "checked", "later", "after_wait", "once"]
"""When to repeat the call: never, only corrected, only after a check, later, after `retryAfter`, or once."""
Happened = Literal["no", "maybe", "yes"]


@dataclass(frozen=True, slots=True)
class Advice:
    """What an agent should do after an error."""

    action: str
    """Name of the action in kebab-case."""
    priority: Level
    text: str
    retry: Retry = "never"
    happened: Happened = "no"
    """Whether the call may have taken effect."""
    check: str = ""
    """What to check before anything else, where the tool may have changed something."""

    @property
    def repeats(self) -> bool:
        """Whether it suggests the same call once more."""
        return self.retry in ("later", "after_wait", "once")


_CHECK_CHANGE = "First check whether the change was made, by reading what the call was meant to change."
_WAIT = "Wait as long as `retryAfter` says, then make the same call."
_THEN_DECIDE = "Then decide what to do; a repetition may make the change twice."
_TELL_OPERATOR = "Tell the operator the trace id, or choose another tool; the cause is in the operator's log."

ADVICE: dict[str, Advice] = {
    "INVALID_REQUEST": Advice(
        "correct-request", "high", "Correct what `path` and the message name, then send it.", "corrected"
    ),
    "INVALID_TOOL_NAME": Advice(
        "correct-tool-name", "high", "Write `source:tool`, or any other name of the tool.", "corrected"
    ),
    "INVALID_ARGUMENTS": Advice(
        "correct-arguments",
        "high",
        "Correct the arguments that `details.faults` names, then make the corrected call.",
        "corrected",
    ),
    "METHOD_NOT_ALLOWED": Advice(
        "use-allowed-method", "high", "Use one of the methods that `Allow` lists.", "corrected"
    ),
    "ALREADY_EXISTS": Advice("choose-another-name", "high", "Choose another name.", "corrected"),
    "PAYLOAD_TOO_LARGE": Advice(
        "send-less", "high", "Send less, or split it into several calls.", "corrected"
    ),
    "IDEMPOTENCY_MISMATCH": Advice(
        "use-new-key", "high", "Use a new idempotency key for a new request.", "corrected"
    ),
    "NOT_FOUND": Advice(
        "check-address", "high", "Check the path or the name; nothing was found under this one.", "corrected"
    ),
    "TOOL_NOT_FOUND": Advice(
        "list-tools", "high", "Choose one of the names in `details.near`, or list the tools.", "corrected"
    ),
    "TOOL_REMOVED": Advice(
        "use-replacement",
        "high",
        "Call the replacement that the message names; if it names none, list the tools.",
    ),
    "UNAUTHENTICATED": Advice(
        "authenticate", "high", "Send a valid key, or sign in; without a key, tell the user.", "corrected"
    ),
    "NO_SESSION": Advice(
        "begin-session",
        "high",
        "Begin a session with `PUT /api/users/{id}/session`, or wait until the user's device does.",
        "corrected",
    ),
    "PERMISSION_DENIED": Advice(
        "ask-for-permission",
        "medium",
        "Tell the user which permission is missing; without it, the call cannot succeed.",
    ),
    "SCOPE_DENIED": Advice(
        "use-another-key", "medium", "Use a key that may do this, or ask the operator for one."
    ),
    "ORIGIN_REFUSED": Advice("use-own-page", "medium", "Use the gateway's own page, or call from a program."),
    "HOST_REFUSED": Advice(
        "use-served-host",
        "medium",
        "Use an address that the gateway serves; an operator can add the name to `server.allowed_hosts`.",
    ),
    "RATE_LIMITED": Advice("wait-and-retry", "medium", _WAIT, "after_wait"),
    "IN_PROGRESS": Advice(
        "wait-for-result",
        "medium",
        "Wait as long as `retryAfter` says, then make the same call with the same key to get its result.",
        "after_wait",
        "maybe",
    ),
    "OVERLOADED": Advice("wait-and-retry", "medium", _WAIT, "after_wait"),
    "APP_NOT_AVAILABLE": Advice(
        "retry-app-later",
        "medium",
        "Make the same call later, or use another tool; `stage` says what the app failed at.",
        "later",
    ),
    "SOURCE_DOWN": Advice(
        "retry-later",
        "medium",
        "Make the same call after `retryAfter` if that is given, else later, or use another tool.",
        "later",
        "maybe",
    ),
    "NETWORK_ERROR": Advice("retry-later", "medium", "Make the same call later.", "later", "maybe"),
    "HTTP_ERROR": Advice(
        "retry-service-later",
        "medium",
        "Make the same call later; the service that the tool uses failed or is limiting requests.",
        "later",
        "maybe",
        _CHECK_CHANGE,
    ),
    "TIMEOUT": Advice(
        "retry-once",
        "medium",
        "Make the same call once more, perhaps with a longer timeout.",
        "once",
        "maybe",
    ),
    "OUTCOME_UNKNOWN": Advice("check-outcome", "critical", _THEN_DECIDE, "checked", "maybe", _CHECK_CHANGE),
    "TOOL_FAILED": Advice("reconsider", "high", "Read the message and choose another way.", "never", "maybe"),
    "HANDLER_ERROR": Advice("report-tool-error", "medium", _TELL_OPERATOR, "never", "maybe", _CHECK_CHANGE),
    "ANSWER_NOT_KEPT": Advice(
        "read-what-changed",
        "high",
        "Read what the call has changed; it was carried out, and its result is gone.",
        "never",
        "yes",
    ),
    "RESULT_TOO_LARGE": Advice(
        "ask-for-less",
        "medium",
        "Request less: a page, a range, fewer fields.",
        "corrected",
        "yes",
        "The call was carried out: if it was to change something, read that instead.",
    ),
    "CONTRACT_VIOLATION": Advice(
        "report-tool-bug",
        "medium",
        "Tell the operator that the tool has a bug, or choose another tool; the call was carried out.",
        "never",
        "yes",
    ),
    "CANCELLED": Advice(
        "ask-whether-wanted",
        "low",
        "Find out whether the result is still wanted; nobody waits for this call any more.",
        "checked",
        "maybe",
        _CHECK_CHANGE,
    ),
    "EXECUTION_ERROR": Advice(
        "report-to-operator",
        "medium",
        "Tell the operator the trace id; the gateway failed, and the cause is in its log.",
        "never",
        "maybe",
        _CHECK_CHANGE,
    ),
}
"""For each code, the advice on a problem with the code's own retryability."""

EXCEPTIONAL_ADVICE: dict[str, Advice] = {
    "APP_NOT_AVAILABLE": Advice(
        "use-another-tool",
        "medium",
        "Use another tool, or tell the user what the app lacks; `stage` says what it failed at.",
    ),
    "HTTP_ERROR": Advice(
        "reconsider-service",
        "medium",
        "Choose another way; the service that the tool uses rejects this request.",
        "never",
        "maybe",
        _CHECK_CHANGE,
    ),
    "TOOL_FAILED": Advice(
        "retry-later", "medium", "Read the message, then make the same call later.", "later", "maybe"
    ),
    "HANDLER_ERROR": Advice(
        "retry-later",
        "medium",
        "Make the same call later; a service that the tool needs could not be reached.",
        "later",
        "maybe",
        _CHECK_CHANGE,
    ),
}
"""For codes whose problems differ in retryability: the advice on those that differ from the table."""
_RETRYABLE = Advice("retry-later", "medium", "Make the same call later.", "later", "maybe", _CHECK_CHANGE)
_FINAL = Advice("use-another-tool", "medium", "Choose another tool or another way.", "never", "maybe")


def advice_on(problem: Problem) -> Advice:
    """Return the advice on a problem; it suggests the same call only where the problem is retryable."""
    advice = ADVICE[problem.code]
    if problem.retryable == CODES[problem.code].retryable or problem.kind == Kind.UNKNOWN:
        return advice
    return EXCEPTIONAL_ADVICE.get(problem.code) or (_RETRYABLE if problem.retryable else _FINAL)


def problem(code: str, message: str, **more: Any) -> Problem:
    """Create the `Problem` of a code; kind and, unless given, retryability come from the table."""
    row = CODES[code]
    more.setdefault("retryable", row.retryable)
    return Problem(code=code, kind=row.kind, message=message, **more)


def problem_json(problem: Problem) -> dict[str, Any]:
    """Serialize a problem in the format of all frontends."""
    more = {
        "retryAfter": problem.retry_after,
        "path": problem.path,
        "toolCode": problem.tool_code,
        "stage": problem.stage,
        "details": dict(problem.details) or None,
    }
    return {
        "code": problem.code,
        "kind": str(problem.kind),
        "class": CODES[problem.code].error_class,
        "message": problem.message,
        "retryable": problem.retryable,
        **{key: value for key, value in more.items() if value is not None},
    }


class ToolcribError(Exception):
    """Base class: its problem contains everything the caller may know about the error."""

    hints: Hints | None = None
    """Hints for the agent's next step, if the code that raised it provides them."""
    recorded = False
    """Whether the failed administrative action has an audit record already."""

    def __init__(self, code: str, message: str, **more: Any) -> None:
        super().__init__(message)
        self.problem = problem(code, message, **more)


class Refused(ToolcribError):
    """The call was not attempted."""


class Unavailable(ToolcribError):
    """The call could not be attempted: nothing was sent."""


class Lost(ToolcribError):
    """The call was attempted and its outcome is unknown."""


class Failed(ToolcribError):
    """The call was attempted, and the tool or its source reports a failure."""


class BusinessRuleError(Failed):
    """A rule of the tool's domain forbids the call. The agent receives `code` as `toolCode`."""

    def __init__(
        self, code: str, message: str, *, retryable: bool = False, hints: Hints | None = None
    ) -> None:
        super().__init__("TOOL_FAILED", message, tool_code=code, retryable=retryable)
        self.hints = hints


class Broken(ToolcribError):
    """The result violates the contract or the size limit; the message names the rule."""
