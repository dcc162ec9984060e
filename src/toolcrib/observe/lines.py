"""Log lines as JSON, with redacted arguments."""

import logging
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from json import dumps as dump_anything
from traceback import format_exception
from typing import Any, cast

import orjson

from toolcrib.model import Caller, JsonObject, Origin, Tool
from toolcrib.model.value import SECRETS_FIELD, SecretArguments
from toolcrib.observe.call_entry import CallEntry, CallStart, error_class, outcome, summary_of
from toolcrib.observe.redact import MASK, MIN_SECRET_CHARACTERS, Redactor

# --- Formats calls and log records as lines: JSON for machines, coloured text for a terminal ---

Line = Callable[[Mapping[str, Any]], bytes]
"""Formats one event, which is already redacted, as a line."""

_MAX_MESSAGE_CHARACTERS = 16_384
_MAX_STACK_CHARACTERS = 65_536
_STANDARD_FIELDS = frozenset(vars(logging.makeLogRecord({}))) | {
    "message",
    "asctime",
    "taskName",
    SECRETS_FIELD,
}

_ID_FIELDS = ("call_id", "trace_id", "correlation_id")
_NAME_FIELDS = ("caller", "user_id", "context_name", "tool", "exposed_name", "agent_id", "provider_name")
_LEVEL_NAMES = {logging.INFO: "info", logging.WARNING: "warning", logging.ERROR: "error"}
_LEVEL_COLOURS = {"debug": "2", "info": "32", "warning": "33", "error": "31", "critical": "1;31"}
_HEADLINE_FIELDS = frozenset(
    {"ts", "level", "event", "message", "tool", "outcome", "duration_ms", "exception", "logger"}
)
_CONTROL_ESCAPES = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160))}


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
        **_call_fields(start.id, start.tool, start.caller, start.origin),
    }
    return _redacted(event, redactor)


def call_event(entry: CallEntry, redactor: Redactor) -> dict[str, Any]:
    """Return the log event of a finished call."""
    call_id, tool, caller, origin, problem, cached, seconds, at, _, _, _ = entry
    kind, items, size = summary_of(entry)
    event = {
        "ts": datetime.fromtimestamp(at, UTC),
        "level": _LEVEL_NAMES[level_of(entry)],
        "event": "call",
        **_call_fields(call_id, tool, caller, origin),
        "duration_ms": round(seconds * 1000.0, 3),
        "outcome": outcome(problem),
        "code": problem.code if problem else None,
        "cached": cached,
        "deprecated": tool.deprecated is not None,
        "result": kind,
        "items": items,
        "bytes": size,
    }
    return _redacted(event, redactor)


def _call_fields(call_id: str, tool: Tool, caller: Caller, origin: Origin) -> dict[str, str | None]:
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


def _redacted(event: dict[str, Any], redactor: Redactor) -> dict[str, Any]:
    ids = "\n".join(event[name] for name in _ID_FIELDS)
    if redactor.passes(tuple(event[name] for name in _NAME_FIELDS)) and redactor.text(ids) == ids:
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
        "message": redactor.text(_mask_arguments(secrets, _record_message(record)))[:_MAX_MESSAGE_CHARACTERS],
    }
    more = {name: value for name, value in vars(record).items() if name not in _STANDARD_FIELDS}
    if more:
        event |= {name: value for name, value in redactor.clean(more).items() if name not in event}
    if record.exc_info and record.exc_info[1]:
        event["exception"] = _exception_fields(record.exc_info[1], redactor, secrets)
    if record.stack_info:
        event["stack"] = redactor.text(record.stack_info)[:_MAX_STACK_CHARACTERS]
    return event


def json_line(event: object) -> bytes:
    """Return an event, or a part of one, as JSON and a newline."""
    try:
        return orjson.dumps(event, option=orjson.OPT_APPEND_NEWLINE | orjson.OPT_UTC_Z)
    except TypeError:  # half a surrogate pair, or a number past 64 bits
        return dump_anything(event, default=_json_default).encode() + b"\n"


def text_line(event: Mapping[str, Any], *, colour: bool) -> bytes:
    """Return an event as one human-readable line, details last; a stack trace follows on further lines."""
    when = event["ts"].astimezone().strftime("%H:%M:%S.%f")[:-3]
    level = str(event["level"])
    words = [when, _paint(f"{level:<8}", _LEVEL_COLOURS.get(level, "0") if colour else ""), _headline(event)]
    words += [
        _paint(f"{name}={_escaped(_abbreviated(name, value))}", "2" if colour else "")
        for name, value in event.items()
        if name not in _HEADLINE_FIELDS and value is not None and value is not False and value != ""
    ]
    exception = event.get("exception")
    stack = "\n".join(map(_escaped, exception["stack"].splitlines())) + "\n" if exception else ""
    return f"{' '.join(words)}\n{stack}".encode(errors="backslashreplace")


def _abbreviated(name: str, value: Any) -> Any:
    """Reduce an audit record to its hash: the record is long, and the message already names the action."""
    if name != "audit" or not isinstance(value, dict):
        return value
    return cast("dict[str, Any]", value).get("hash", "not written")


def _headline(event: Mapping[str, Any]) -> str:
    if event["event"] == "log":
        return _escaped(event["message"])
    if event["event"] == "call_started":
        return f"{_escaped(event['tool'])} started"
    return f"{_escaped(event['tool'])} {event['outcome']} {event['duration_ms']:g} ms"


def _paint(text: str, colour: str) -> str:
    return f"\x1b[{colour}m{text}\x1b[0m" if colour else text


def _escaped(value: object) -> str:
    """Escape control characters, which could forge log lines or send terminal escape sequences."""
    return str(value).translate(_CONTROL_ESCAPES)


def _record_message(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except (TypeError, ValueError, KeyError):  # the arguments do not fit the text
        return f"{record.msg} {record.args!r}"


def _exception_fields(error: BaseException, redactor: Redactor, secrets: object) -> dict[str, str]:
    stack = _mask_arguments(secrets, "".join(format_exception(error)))
    return {
        "type": type(error).__qualname__,
        "message": redactor.text(_mask_arguments(secrets, _error_message(error)))[:_MAX_MESSAGE_CHARACTERS],
        "stack": redactor.text(stack)[-_MAX_STACK_CHARACTERS:],
    }


def _mask_arguments(secrets: object, text: str) -> str:
    """Mask the secret arguments of a failed call in a text; a tool's error may contain any of them."""
    if isinstance(secrets, SecretArguments):
        for secret in sorted(secrets.values, key=len, reverse=True):
            if len(secret) >= MIN_SECRET_CHARACTERS:
                text = text.replace(secret, MASK)
    return text


def _error_message(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - boundary: an error without a working `str` still has its stack
        return ""


def _json_default(value: object) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)


# --- Call arguments for the log: redacted and truncated ---

MAX_ARGUMENT_CHARACTERS = 2_048
"""Approximate maximum of logged characters; longer arguments are truncated, with a marker."""

UNSERIALIZABLE_ARGUMENTS = "[unreadable]"
"""Placeholder for arguments that cannot be serialized."""

_MAX_CACHED_ARGUMENTS = 10_000
_MAX_SCHEMA_DEPTH = 32


class LoggedArguments:
    """Serializes call arguments. Small ones without a sign of a secret skip the redaction of each value."""

    def __init__(self, redactor: Redactor, *, enabled: bool = True) -> None:
        self._redactor, self._enabled = redactor, enabled
        self._hidden: dict[tuple[str, str], frozenset[str]] = {}

    def to_json(self, call: CallStart | CallEntry) -> bytes:
        """Return redacted arguments as JSON; `null` if arguments are not logged."""
        if not self._enabled:
            return b"null"
        try:
            return self._to_json(call)
        except Exception:  # noqa: BLE001 - boundary: arguments may be anything, and the line is worth more
            return json_line(UNSERIALIZABLE_ARGUMENTS)[:-1]

    def to_value(self, call: CallStart | CallEntry) -> Any:
        """Return redacted arguments as a JSON value; None if arguments are not logged."""
        if not self._enabled:
            return None
        try:
            return self._clean(call)
        except Exception:  # noqa: BLE001 - boundary: arguments may be anything, and the line is worth more
            return UNSERIALIZABLE_ARGUMENTS

    def _to_json(self, call: CallStart | CallEntry) -> bytes:
        arguments = call.arguments
        assert arguments is not None  # noqa: S101 - for the type checker: callers look first
        if not self._secret_names(call.tool) and _may_be_small(arguments):
            encoded = json_line(arguments)[:-1]
            if len(encoded) <= MAX_ARGUMENT_CHARACTERS and self._redactor.is_plain(encoded.decode()):
                return encoded
        return json_line(self._clean(call))[:-1]

    def _clean(self, call: CallStart | CallEntry) -> Any:
        names = self._secret_names(call.tool)
        return self._redactor.clean(call.arguments, max_characters=MAX_ARGUMENT_CHARACTERS, hidden=names)

    def _secret_names(self, tool: Tool) -> frozenset[str]:
        key = (tool.name, tool.fingerprint)
        names = self._hidden.get(key)
        if names is None:
            if len(self._hidden) >= _MAX_CACHED_ARGUMENTS:
                self._hidden.clear()
            names = self._hidden[key] = frozenset(_secret_fields(tool.input_schema, _MAX_SCHEMA_DEPTH))
        return names


def _may_be_small(arguments: JsonObject) -> bool:
    """Whether the arguments may fit the limit as they are; stops counting as soon as they do not."""
    left = MAX_ARGUMENT_CHARACTERS
    for value in arguments.values():
        if type(value) is not str:
            return _may_be_small_inside(arguments)
        left -= len(value)
    return left >= len(arguments)


def _may_be_small_inside(arguments: JsonObject) -> bool:
    left, nested = MAX_ARGUMENT_CHARACTERS, list[JsonObject | list[Any]]((arguments,))
    for value in nested:  # grows as it is walked
        parts = value if isinstance(value, list) else value.values()
        left -= len(parts)
        if left < 0:
            return False
        for part in parts:
            if isinstance(part, str):
                left -= len(part)
            elif isinstance(part, dict | list):
                nested.append(cast("JsonObject | list[Any]", part))
    return left >= 0


def _secret_fields(schema: object, depth: int) -> set[str]:
    """Return the field names a schema declares secret: `writeOnly`, or `format: password`."""
    found: set[str] = set()
    if depth == 0:
        return found
    if isinstance(schema, list):
        return found.union(*(_secret_fields(each, depth - 1) for each in cast("list[object]", schema)))
    if not isinstance(schema, Mapping):
        return found
    for word, part in cast("Mapping[str, object]", schema).items():
        if word == "properties" and isinstance(part, Mapping):
            fields = cast("Mapping[str, object]", part)
            found |= {name for name, field in fields.items() if _is_secret_field(field)}
            found = found.union(*(_secret_fields(field, depth - 1) for field in fields.values()))
        else:
            found |= _secret_fields(part, depth - 1)
    return found


def _is_secret_field(field: object) -> bool:
    if not isinstance(field, Mapping):
        return False
    schema = cast("Mapping[str, object]", field)
    return schema.get("writeOnly") is True or schema.get("format") == "password"


# --- Fast JSON log lines: the fields that calls share are redacted and serialized once, then cached ---

_MAX_CACHED_LINES = 10_000
_PER_CALL_FIELDS = ("ts", *_ID_FIELDS, "duration_ms", "items", "bytes")


class FastLines:
    """Produces the lines of `json_line(call_event(…))`, with the fields that vary per call placed first."""

    def __init__(self, redactor: Redactor, arguments: LoggedArguments | None = None) -> None:
        self._redactor = redactor
        self._arguments = arguments or LoggedArguments(redactor, enabled=False)
        self._secrets_version = redactor.learned
        self._cached: dict[tuple[object, ...], str] = {}
        self._second = (-1, "")

    def line(self, entry: CallEntry) -> bytes:
        """Return the line of a finished call."""
        call_id, tool, caller, origin, problem, cached, seconds, at, _, _, arguments = entry
        ids = self._id_fields(call_id, origin)
        code = problem.code if problem is not None else None
        kind, items, size = summary_of(entry)
        key = (_caller_key(tool, caller, origin), code, cached, tool.deprecated is None, kind)
        rest = self._cached.get(key) or self._add(key, call_event(entry, self._redactor))
        counted = f'"items":{"null" if items is None else items},"bytes":{"null" if size is None else size}'
        took = f'"duration_ms":{seconds * 1000.0:.3f}'
        head = f'{{"ts":"{self._timestamp(at)}",{ids},{took},{counted},'
        if arguments is None:
            return f"{head}{rest}\n".encode()
        return f'{head}"arguments":{self._arguments.to_json(entry).decode()},{rest}\n'.encode()

    def start(self, start: CallStart) -> bytes:
        """Return the line of a call that starts."""
        ids = self._id_fields(start.id, start.origin)
        key = _caller_key(start.tool, start.caller, start.origin)
        rest = self._cached.get(key) or self._add(key, start_event(start, self._redactor))
        head = f'{{"ts":"{self._timestamp(start.at)}",{ids},"arguments":'.encode()
        return b"%b%b,%b\n" % (head, self._arguments.to_json(start), rest.encode())

    def _id_fields(self, call_id: str, origin: Origin) -> str:
        """Return the ids of a call as JSON fields; only ids that are not plain hexadecimal are redacted."""
        if self._secrets_version != self._redactor.learned or len(self._cached) >= _MAX_CACHED_LINES:
            self._secrets_version, self._cached = self._redactor.learned, {}
        trace, correlation = origin.trace_id, origin.correlation_id
        ids = f"{call_id}\n{trace}" if trace == correlation else f"{call_id}\n{trace}\n{correlation}"
        if self._redactor.is_id(ids):
            return f'"call_id":"{call_id}","trace_id":"{trace}","correlation_id":"{correlation}"'
        values = map(self._redactor.text, (call_id, trace, correlation))
        return json_line(dict(zip(_ID_FIELDS, values, strict=True))).decode()[1:-2]

    def _add(self, key: tuple[object, ...], event: dict[str, Any]) -> str:
        """Cache and return the fields of an event that do not vary per call, without the opening brace."""
        fields = {name: value for name, value in event.items() if name not in _PER_CALL_FIELDS}
        rest = self._cached[key] = json_line(fields).decode()[1:-1]
        return rest

    def _timestamp(self, at: float) -> str:
        """Format a timestamp; the part down to the second is formatted once per second."""
        second = int(at)
        if second != self._second[0]:
            self._second = (second, datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%S"))
        return f"{self._second[1]}.{int((at - second) * 1_000_000):06d}Z"


def _caller_key(tool: Tool, caller: Caller, origin: Origin) -> tuple[object, ...]:
    about = (origin.face, origin.agent_id, origin.provider)
    return (tool.name, tool.exposed, caller.id, caller.user, caller.context, *about)
