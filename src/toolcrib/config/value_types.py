"""Annotated pydantic types for the values of settings, each with its validation message."""

import re
from collections.abc import Callable, Mapping
from datetime import date
from ipaddress import ip_network
from typing import Annotated, Any, Literal, cast, get_args
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field

from toolcrib.egress import INVALID_HOST, Egress, is_resolvable
from toolcrib.model import Category, RateLimit

RATE_MESSAGE = "must be a rate, such as 600/min, 10/s or {maxCalls: 600, windowMs: 60000}"

_RATE = re.compile(r"([0-9]{1,9})\s*/\s*([a-z]+)")
_UNITS = {"s": 1_000, "min": 60_000, "hour": 3_600_000, "day": 86_400_000}
_MILLISECONDS = {
    **_UNITS,
    "sec": 1_000,
    "second": 1_000,
    "m": 60_000,
    "minute": 60_000,
    "h": 3_600_000,
    "d": 86_400_000,
}
_MAX_PATTERN_CHARACTERS = 200

_HOST_NAME = re.compile(r"[A-Za-z0-9._-]+")
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}")
_OWN_HEADERS = frozenset(
    {
        "accept",
        "accept-encoding",
        "connection",
        "content-encoding",
        "content-length",
        "content-type",
        "expect",
        "host",
        "keep-alive",
        "last-event-id",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
"""Hop-by-hop and protocol headers: a configured value would break requests or allow request smuggling."""


def rate(value: object) -> RateLimit:
    """Parse `600/min`, `10/s`, `5000/hour` or `{maxCalls, windowMs}`."""
    if isinstance(value, RateLimit):
        return value
    if isinstance(value, str):
        return _parse_rate(value)
    if isinstance(value, Mapping):
        return _convert_rate(cast("Mapping[str, Any]", value))
    raise ValueError(RATE_MESSAGE)


def _parse_rate(text: str) -> RateLimit:
    match = _RATE.fullmatch(text.strip())
    if match is None or match[2] not in _MILLISECONDS or int(match[1]) == 0:
        raise ValueError(RATE_MESSAGE)
    return RateLimit(int(match[1]), _MILLISECONDS[match[2]])


def _convert_rate(parts: Mapping[str, Any]) -> RateLimit:
    if set(parts) != {"maxCalls", "windowMs"} or not all(_is_positive(number) for number in parts.values()):
        raise ValueError(RATE_MESSAGE)
    return RateLimit(int(parts["maxCalls"]), int(parts["windowMs"]))


def _is_positive(number: Any) -> bool:
    if isinstance(number, str):
        return re.fullmatch(r"[0-9]{1,12}", number) is not None and int(number) > 0
    return isinstance(number, int) and not isinstance(number, bool) and number > 0


def format_rate(limit: RateLimit) -> str:
    """Format a rate, in the short form if there is one."""
    for unit, milliseconds in _UNITS.items():
        if limit.window_ms == milliseconds:
            return f"{limit.max_calls}/{unit}"
    return f"{{maxCalls: {limit.max_calls}, windowMs: {limit.window_ms}}}"


def _blank_as_none(value: object) -> object:
    return None if value == "" else value


def _not_boolean(value: object) -> object:
    if value is True or value is False:
        raise ValueError("must be a number")
    return value


def _refuse_null(value: object) -> object:
    if value is None:
        raise ValueError("has no value; write [] for none, or leave the setting out for all")
    return value


def _matching(pattern: str, message: str) -> Callable[[str], str]:
    compiled = re.compile(pattern)

    def check(text: str) -> str:
        if compiled.fullmatch(text) is None:
            raise ValueError(message)
        return text

    return check


def _pattern(text: str) -> str:
    """Validate a tool name or a glob: only `*` is a wildcard, and both sides of a colon are non-empty."""
    if not text or len(text) > _MAX_PATTERN_CHARACTERS or not text.isprintable() or set(text) & set(" ?[]"):
        raise ValueError("must be a tool name or a glob with *, without spaces, ? or brackets")
    if text.startswith(":") or text.endswith(":"):
        raise ValueError("must have text on both sides of the colon")
    return text


def _entry(text: str) -> str:
    kind, _, name = _pattern(text).partition(":")
    if kind == "category" and name not in get_args(Category):
        raise ValueError(f"must be one of the categories {', '.join(get_args(Category))}")
    return text


def host_fault(address: str) -> str | None:
    """Return why a URL can never be connected to, independent of DNS; None if it may be."""
    host = urlsplit(address).hostname or ""
    # Fast path: the URL parser is slow to load, and only unusual hosts need it.
    if _HOST_NAME.fullmatch(host):
        reason = None if is_resolvable(host) else INVALID_HOST
    else:
        reason = Egress(guarded=False).refusal(address)
    return None if reason is None else f"is unusable: {reason}"


def _with_usable_host(address: str) -> str:
    if fault := host_fault(address):
        raise ValueError(fault)
    return address


def _web_address(text: str) -> str:
    message = "must be a URL, such as https://tools.example.com"
    try:
        parts = urlsplit(text)
        valid_port = parts.port is None or parts.port > 0
    except ValueError:
        raise ValueError(message) from None
    if parts.scheme not in ("http", "https") or not parts.hostname or not valid_port:
        raise ValueError(message)
    if not text.isprintable() or " " in text:
        raise ValueError(message)
    return text


def _tool_name(text: str) -> str:
    source, _, local = text.partition(":")
    if not source or not local or not text.isprintable() or "*" in text:
        raise ValueError("must be the full name of a tool, such as files:read_file")
    return text


def _header_name(text: str) -> str:
    if _HEADER.fullmatch(text) is None:
        raise ValueError("is not a valid header name; use letters, digits and -")
    if text.lower() in _OWN_HEADERS or text.lower().startswith("mcp-"):
        raise ValueError("is set by the gateway itself; remove it")
    return text


def _one_line(text: str) -> str:
    if any(ord(char) < 32 or ord(char) == 127 for char in text.replace("\t", " ")):
        raise ValueError("must be one line, without control characters")
    return text


def _no_nul(text: str) -> str:
    if "\0" in text:
        raise ValueError("contains a NUL character")
    return text


def _network(text: str) -> str:
    try:
        return str(ip_network(text, strict=False))
    except ValueError:
        raise ValueError("must be an IP address or network, such as 10.0.0.0/8") from None


def is_day(text: str) -> bool:
    """Whether a text is a date in the format `2027-01-31`, the ISO 8601 form that sorts by time."""
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def _refuse_prefix(prefix: str, message: str) -> BeforeValidator:
    def check(value: object) -> object:
        if isinstance(value, str) and value.startswith(prefix):
            raise ValueError(message)
        return value

    return BeforeValidator(check)


BLANK_AS_UNSET = BeforeValidator(_blank_as_none)
"""Treats an empty string as unset, such as from `${NAME:-}`."""

NOT_NULL = BeforeValidator(_refuse_null)
"""Rejects null, which would be ambiguous between all and none."""

Rate = Annotated[RateLimit, BeforeValidator(rate)]
Whole = Annotated[int, BeforeValidator(_not_boolean)]
Count = Annotated[Whole, Field(ge=1)]
Amount = Annotated[float, BeforeValidator(_not_boolean), Field(ge=0, allow_inf_nan=False)]
Share = Annotated[Amount, Field(le=1)]
Port = Annotated[Whole, Field(ge=0, le=65535)]
Milliseconds = Annotated[Whole, Field(ge=1, le=86_400_000)]
LongMilliseconds = Annotated[Whole, Field(ge=1, le=31_536_000_000)]
"""Milliseconds, up to one year."""
Text = Annotated[str, Field(min_length=1)]

ContextName = Annotated[
    str,
    AfterValidator(
        _matching(
            r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}",
            "is not a valid context name; use letters, digits, -, _ and ., at most 64 of them",
        )
    ),
]
SourceName = Annotated[
    str,
    AfterValidator(
        _matching(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}", "is not a valid name; use letters, digits, -, _ and .")
    ),
]
SafeName = Annotated[
    str,
    AfterValidator(
        _matching(r"[a-z][a-z0-9_]{0,63}", "must be a safe name: ^[a-z][a-z0-9_]{0,63}$, such as get_weather")
    ),
]
MetricPrefix = Annotated[
    str, AfterValidator(_matching(r"[a-zA-Z_][a-zA-Z0-9_]*", "must consist of letters, digits and _"))
]
Host = Annotated[
    str,
    AfterValidator(
        _matching(r"[A-Za-z0-9._:\[\]%-]+", "must be an IP address or a host name, such as 127.0.0.1")
    ),
]
HeaderHost = Annotated[
    str,
    AfterValidator(
        _matching(
            r"(?:\[[0-9a-fA-F:.]{2,45}\]|[A-Za-z0-9_][A-Za-z0-9._-]{0,252})(?::[0-9]{1,5})?|[0-9a-fA-F:.]{2,45}",
            "must be a host name, such as tools.example.com or tools.example.com:8443",
        )
    ),
]
Module = Annotated[
    str,
    AfterValidator(
        _matching(
            r"[^\W\d]\w*(?:\.[^\W\d]\w*)*", "must be the name of a Python module, such as my_package.tools"
        )
    ),
]
StoreAddress = Annotated[
    str,
    AfterValidator(
        _matching(
            r"sqlite://(?:/.+)?|postgresql://.+",
            "must be sqlite:///PATH or postgresql://USER:PASSWORD@HOST/NAME",
        )
    ),
]
Pattern = Annotated[str, AfterValidator(_pattern)]
Entry = Annotated[str, AfterValidator(_entry)]
ServerAddress = Annotated[str, AfterValidator(_web_address)]
"""URL of an MCP server. Its host is checked later, since a stored one must not prevent the start."""
WebAddress = Annotated[ServerAddress, AfterValidator(_with_usable_host)]
ToolName = Annotated[str, AfterValidator(_tool_name)]
HeaderName = Annotated[str, AfterValidator(_header_name)]
HeaderValue = Annotated[str, AfterValidator(_one_line)]
EnvName = Annotated[
    str,
    AfterValidator(_matching(r"[!-<>-~]{1,255}", "is not a valid variable name; use letters, digits and _")),
]
Argument = Annotated[str, AfterValidator(_no_nul)]
Network = Annotated[str, AfterValidator(_network)]
Mode = Annotated[
    Literal["keys", "trust_header"],
    _refuse_prefix("jwt", "jwt is not implemented yet; use keys or trust_header"),
]
SharedAddress = Annotated[
    Literal["memory"], _refuse_prefix("redis", "Redis is not implemented yet; use memory")
]
