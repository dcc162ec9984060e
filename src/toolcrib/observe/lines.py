"""Formats calls and log records as lines: JSON for machines, coloured text for a terminal."""

import logging
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from json import dumps as dump_anything
from traceback import format_exception
from typing import Any, cast

import orjson

from toolcrib.model import Caller, Origin, Tool
from toolcrib.model.secret_names import SECRETS_FIELD, SecretArguments
from toolcrib.observe.call_entry import CallEntry, CallStart, error_class, outcome, summary_of
from toolcrib.observe.redact import MASK, SHORTEST, Redactor

Line = Callable[[Mapping[str, Any]], bytes]
"""Formats one event, which is already redacted, as a line."""

_LONGEST_TEXT = 16_384
_LONGEST_STACK = 65_536
_ORDINARY = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName", SECRETS_FIELD}

_IDS = ("call_id", "trace_id", "correlation_id")
_NAMES = ("caller", "user_id", "context_name", "tool", "exposed_name", "agent_id", "provider_name")
_LEVELS = {logging.INFO: "info", logging.WARNING: "warning", logging.ERROR: "error"}
_COLOURS = {"debug": "2", "info": "32", "warning": "33", "error": "31", "critical": "1;31"}
_TOLD_FIRST = frozenset(
    {"ts", "level", "event", "message", "tool", "outcome", "duration_ms", "exception", "logger"}
)
_CONTROLS = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160))}


def level_of(entry: CallEntry) -> int:
    """Return the log level: INFO for a success, ERROR for a system error, WARNING for anything else."""
    if entry.problem is None:
        return logging.INFO
    return logging.ERROR if error_class(entry.problem.code) == "system" else logging.WARNING


def start_event(start: CallStart, redactor: Redactor) -> dict[str, Any]:
    """Return the log event of a call that starts; the caller adds its arguments."""
    event = {
        "ts": datetime.fromtimestamp(start.at, UTC),
        "level": "info",
        "event": "call_started",
        **_who(start.id, start.tool, start.caller, start.origin),
    }
    return _cleaned(event, redactor)


def call_event(entry: CallEntry, redactor: Redactor) -> dict[str, Any]:
    """Return the log event of a finished call."""
    call_id, tool, caller, origin, problem, cached, seconds, at, _, _, _ = entry
    sort, items, size = summary_of(entry)
    event = {
        "ts": datetime.fromtimestamp(at, UTC),
        "level": _LEVELS[level_of(entry)],
        "event": "call",
        **_who(call_id, tool, caller, origin),
        "duration_ms": round(seconds * 1000.0, 3),
        "outcome": outcome(problem),
        "code": problem.code if problem else None,
        "cached": cached,
        "deprecated": tool.deprecated is not None,
        "result": sort,
        "items": items,
        "bytes": size,
    }
    return _cleaned(event, redactor)


def _who(call_id: str, tool: Tool, caller: Caller, origin: Origin) -> dict[str, str | None]:
    return {
        "call_id": call_id,
        "context_name": caller.context,
        "provider_name": origin.provider,
        "server": tool.source,
        "tool": tool.name,
        "exposed_name": tool.exposed,
        "caller": caller.id,
        "user_id": caller.user,
        "trace_id": origin.trace_id,
        "correlation_id": origin.correlation_id,
        "face": origin.face,
        "agent_id": origin.agent_id,
    }


def _cleaned(event: dict[str, Any], redactor: Redactor) -> dict[str, Any]:
    ids = "\n".join(event[name] for name in _IDS)
    if redactor.passes(tuple(event[name] for name in _NAMES)) and redactor.text(ids) == ids:
        return event
    return {name: redactor.text(value) if isinstance(value, str) else value for name, value in event.items()}


def record_event(record: logging.LogRecord, redactor: Redactor) -> dict[str, Any]:
    """Return the log event of a `logging` record, including its `extra` fields."""
    secrets = getattr(record, SECRETS_FIELD, None)
    event: dict[str, Any] = {
        "ts": datetime.fromtimestamp(record.created, UTC),
        "level": record.levelname.lower(),
        "event": "log",
        "logger": record.name,
        "message": redactor.text(_without(secrets, _message(record)))[:_LONGEST_TEXT],
    }
    more = {name: value for name, value in vars(record).items() if name not in _ORDINARY}
    if more:
        event |= {name: value for name, value in redactor.clean(more).items() if name not in event}
    if record.exc_info and record.exc_info[1]:
        event["exception"] = _exception(record.exc_info[1], redactor, secrets)
    if record.stack_info:
        event["stack"] = redactor.text(record.stack_info)[:_LONGEST_STACK]
    return event


def json_line(event: Mapping[str, Any]) -> bytes:
    """Return an event as one JSON object and a newline."""
    try:
        return orjson.dumps(event, option=orjson.OPT_APPEND_NEWLINE | orjson.OPT_UTC_Z)
    except TypeError:  # half a surrogate pair, or a number past 64 bits
        return dump_anything(event, default=_plain).encode() + b"\n"


def text_line(event: Mapping[str, Any], *, colour: bool) -> bytes:
    """Return an event as one human-readable line, details last; a stack trace follows on further lines."""
    when = event["ts"].astimezone().strftime("%H:%M:%S.%f")[:-3]
    level = str(event["level"])
    words = [when, _paint(f"{level:<8}", _COLOURS.get(level, "0") if colour else ""), _headline(event)]
    words += [
        _paint(f"{name}={_shown(_brief(name, value))}", "2" if colour else "")
        for name, value in event.items()
        if name not in _TOLD_FIRST and value is not None and value is not False and value != ""
    ]
    exception = event.get("exception")
    stack = "\n".join(map(_shown, exception["stack"].splitlines())) + "\n" if exception else ""
    return f"{' '.join(words)}\n{stack}".encode(errors="backslashreplace")


def _brief(name: str, value: Any) -> Any:
    """Reduce an audit record to its hash: the record is long, and the message already names the action."""
    if name != "audit" or not isinstance(value, dict):
        return value
    return cast("dict[str, Any]", value).get("hash", "not written")


def _headline(event: Mapping[str, Any]) -> str:
    if event["event"] == "log":
        return _shown(event["message"])
    if event["event"] == "call_started":
        return f"{_shown(event['tool'])} started"
    return f"{_shown(event['tool'])} {event['outcome']} {event['duration_ms']:g} ms"


def _paint(text: str, colour: str) -> str:
    return f"\x1b[{colour}m{text}\x1b[0m" if colour else text


def _shown(value: object) -> str:
    """Escape control characters, which could forge log lines or send terminal escape sequences."""
    return str(value).translate(_CONTROLS)


def _message(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except (TypeError, ValueError, KeyError):  # the arguments do not fit the text
        return f"{record.msg} {record.args!r}"


def _exception(error: BaseException, redactor: Redactor, secrets: object) -> dict[str, str]:
    stack = _without(secrets, "".join(format_exception(error)))
    return {
        "type": type(error).__qualname__,
        "message": redactor.text(_without(secrets, _said(error)))[:_LONGEST_TEXT],
        "stack": redactor.text(stack)[-_LONGEST_STACK:],
    }


def _without(secrets: object, text: str) -> str:
    """Mask the secret arguments of a failed call in a text; a tool's error may contain any of them."""
    if isinstance(secrets, SecretArguments):
        for each in sorted(secrets.values, key=len, reverse=True):
            if len(each) >= SHORTEST:
                text = text.replace(each, MASK)
    return text


def _said(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - boundary: an error without a working `str` still has its stack
        return ""


def _plain(value: object) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)
