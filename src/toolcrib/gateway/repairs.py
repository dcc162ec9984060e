"""Repaired calls: the first suggested action after an error whose correction is determined."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple
from urllib.parse import quote

from toolcrib.errors import ADVICE
from toolcrib.gateway.author_actions import ArgumentCheck
from toolcrib.hints.value_types import OBJECT
from toolcrib.model import Call, Json, JsonObject, Problem, Tool
from toolcrib.model.hints import NextAction
from toolcrib.model.value import SecretArguments
from toolcrib.names import clearly_nearest, words_of
from toolcrib.schemas import holds_secret, nearest_name, repaired

FindTool = Callable[[str], Tool | None]
"""Returns the tool of a name if the caller can see and use it now, else None."""

_WAITING_CODES = frozenset({"RATE_LIMITED", "IN_PROGRESS", "OVERLOADED"})
_MAY_CHANGE = "It may change something."
_MAX_DESCRIBED_CHARACTERS = 160
"""Characters of a tool's name in a description."""
_VERBS = frozenset(
    (
        *(
            "add",
            "archive",
            "cancel",
            "change",
            "check",
            "clear",
            "close",
            "count",
            "create",
            "delete",
            "disable",
        ),
        *("edit", "enable", "fetch", "find", "get", "hide", "list", "lock", "mute", "open", "pause"),
        *("play", "post", "publish", "put", "read", "remove", "rename", "reset", "resume", "search", "send"),
        *("set", "show", "start", "stop", "undo", "unlock", "unmute", "update", "write"),
    )
)
"""Words that no misspelling of another one may turn into a call that changes something."""


class RequestedCall(NamedTuple):
    """What a caller sent: a tool's name, arguments and idempotency key."""

    name: str
    arguments: JsonObject
    idempotency_key: str = ""


@dataclass(slots=True)
class Repairs:
    """Derives repaired calls. Keeps the compiled schemas of the tools whose calls were repaired."""

    _accepts: ArgumentCheck = field(default_factory=ArgumentCheck)

    def repair_of(self, call: Call | None, problem: Problem, find: FindTool) -> NextAction | None:
        """Return the repair of a failed call; None where there is none, or several are possible."""
        if problem.code == "NO_SESSION":
            return session_request(problem)
        if call is None:
            return None
        sent = RequestedCall(call.tool.name, call.arguments, call.idempotency_key)
        if problem.code in _WAITING_CODES:
            return _repeated(call.tool, sent, problem)
        if problem.code == "INVALID_ARGUMENTS":
            return self._corrected(call.tool, sent) or self._replaced(call.tool, sent, find)
        return self._replaced(call.tool, sent, find) if problem.code == "TOOL_REMOVED" else None

    def repair_of_name(self, sent: RequestedCall, problem: Problem, find: FindTool) -> NextAction | None:
        """Return the call of the tool with the clearly nearest name, where the arguments match its schema."""
        near: Json = problem.details.get("near")
        if problem.code != "TOOL_NOT_FOUND" or not near or not _fits(sent.arguments):
            return None
        tools = {name: tool for name in near if (tool := find(name)) is not None}
        name = clearly_nearest(sent.name, tools)
        if name is None:
            # Of equally near names, only one may have a schema that the arguments match.
            matching = [each for each, tool in tools.items() if self._accepts(tool, sent.arguments)]
            name = clearly_nearest(sent.name, matching)
        if name is None or not _may_mean(sent.name, tools[name]):
            return None
        words = "Call {tool}, which has the nearest name, with the arguments you sent."
        return self._call("call-nearest-tool", tools[name], sent, words)

    def _corrected(self, tool: Tool, sent: RequestedCall) -> NextAction | None:
        if not _fits(sent.arguments) or self._accepts(tool, sent.arguments):
            return None
        return self._call("make-corrected-call", tool, sent, "Call {tool} with the corrected arguments.")

    def _replaced(self, tool: Tool, sent: RequestedCall, find: FindTool) -> NextAction | None:
        replacement = _replacement_of(tool, find)
        if replacement is None or not _fits(sent.arguments):
            return None
        words = "Call {tool}, which replaces the tool you called, with the arguments you sent."
        return self._call("call-replacement", replacement, sent, words)

    def _call(self, action: str, tool: Tool, sent: RequestedCall, words: str) -> NextAction | None:
        """Return the call of a tool with the arguments sent, corrected where necessary and possible."""
        arguments = sent.arguments
        if not self._accepts(tool, arguments):
            arguments = repaired(arguments, tool.input_schema)
            if not self._accepts(tool, arguments):
                return None
        description = words.replace("{tool}", _shown(tool))
        if len(arguments) < len(sent.arguments):
            description = f"{description} Those that it does not have are left out."
        return _action(action, tool, sent._replace(arguments=arguments), description)


def session_request(problem: Problem) -> NextAction | None:
    """Return the HTTP request that begins a session, for the user that the problem names."""
    user: Json = problem.details.get("user")
    if problem.code != "NO_SESSION" or not isinstance(user, str):
        return None
    path = f"/api/users/{quote(user, safe='')}/session"
    data: JsonObject = {"request": {"method": "PUT", "path": path, "body": {}}, "repair": True}
    description = "Begin a session of this user, then make the same call."
    if not OBJECT.fits(data):
        return None
    return NextAction(
        action=ADVICE[problem.code].action,
        priority="high",
        data=data,
        description=description,
        category="correction",
    )


def _repeated(tool: Tool, sent: RequestedCall, problem: Problem) -> NextAction | None:
    """Return the same call after the time that the problem states."""
    if not problem.retryable or problem.retry_after is None:
        return None
    with_key = ", with the same idempotency key" if sent.idempotency_key else ""
    description = f"Wait {problem.retry_after:g} s, then make the same call of {_shown(tool)}{with_key}."
    return _action(ADVICE[problem.code].action, tool, sent, description, after=problem.retry_after)


def _action(
    action: str, tool: Tool, sent: RequestedCall, description: str, *, after: float | None = None
) -> NextAction | None:
    if SecretArguments(sent.arguments).values or holds_secret(sent.arguments, tool.input_schema):
        # Results are logged and shown more freely than calls, so they repeat no secret.
        return None
    data: dict[str, Json] = {"tool": tool.name, "arguments": dict(sent.arguments), "repair": True}
    if after is not None:
        data["after"] = after
    if sent.idempotency_key:
        data["idempotencyKey"] = sent.idempotency_key
    if not OBJECT.fits(data):
        return None
    if not (tool.read_only or tool.annotations.get("readOnlyHint") is True):
        description = f"{description} {_MAY_CHANGE}"
    return NextAction(
        action=action,
        priority="high",
        data=data,
        description=description,
        category="correction",
        reversible=True if tool.read_only else None,
    )


def _fits(arguments: JsonObject) -> bool:
    """Whether arguments are small enough for the data of an action, which also bounds the repair."""
    return OBJECT.fits(arguments)


def _shown(tool: Tool) -> str:
    return tool.name[:_MAX_DESCRIBED_CHARACTERS]


def _replacement_of(tool: Tool, find: FindTool) -> Tool | None:
    name = tool.deprecated.replacement if tool.deprecated is not None else None
    if not name:
        return None
    # Without a source, it means the same source.
    found = (None if ":" in name else find(f"{tool.source}:{name}")) or find(name)
    return None if found is None or found.name == tool.name else found


def _may_mean(name: str, tool: Tool) -> bool:
    """Whether a name may be a misspelling of this tool's; strict for a tool that changes something.

    `get-card` is near to `set-card`, and `enable` to `disable`: a verb is not a misspelling of another one.
    """
    if tool.read_only:
        return True
    given, own = words_of(name), words_of(tool.name)
    verbs = [word for word in own if word in _VERBS]
    if any(word in _VERBS and word not in own for word in given):
        return False
    if verbs:
        return all(word in given or nearest_name(word, given) is not None for word in verbs)
    return len(given) == len(own)
