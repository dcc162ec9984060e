"""The error model: the table of error codes, and the exceptions that carry a `Problem`.

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
