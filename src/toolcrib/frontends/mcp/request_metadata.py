"""Parses the request metadata of the modern era from `_meta`, and checks the headers that mirror it."""

from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from collections.abc import Mapping
from typing import Any, cast

from toolcrib.formats.mirrored_headers import Mirrors
from toolcrib.frontends.mcp.request import NOBODY, Peer, ProtocolError, meta_of
from toolcrib.frontends.mcp.revisions import (
    CAPABILITIES_KEY,
    CLIENT_KEY,
    HEADER_MISMATCH,
    INVALID_PARAMS,
    LEVEL_KEY,
    LEVELS,
    MODERN,
    UNSUPPORTED_VERSION,
    VERSION_KEY,
)
from toolcrib.model import Caller, JsonObject

Headers = Mapping[bytes, bytes]

_NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
"""The parameter that the header Mcp-Name mirrors, by method."""
_BEFORE, _AFTER = b"=?base64?", b"?="


def peer_of(message: JsonObject, caller: Caller, headers: Headers | None) -> Peer:
    """Parse the client's metadata; refuses a request that lacks some, or that its headers contradict."""
    said = meta_of(message.get("params", {}))
    if VERSION_KEY not in said or CAPABILITIES_KEY not in said:
        wanted = f"params._meta must be an object with {VERSION_KEY} and {CAPABILITIES_KEY}"
        raise ProtocolError(INVALID_PARAMS, wanted)
    version = said[VERSION_KEY]
    if headers is not None:
        _check_headers(message, version, headers)
    if version != MODERN:
        raise _unsupported(version)
    capabilities = said[CAPABILITIES_KEY]
    if type(capabilities) is not dict:
        raise ProtocolError(INVALID_PARAMS, f"{CAPABILITIES_KEY} must be an object")
    level = said.get(LEVEL_KEY, "info")
    if type(level) is not str or level not in LEVELS:
        raise ProtocolError(INVALID_PARAMS, f"{LEVEL_KEY} must be one of {', '.join(LEVELS)}")
    return Peer(
        caller=caller,
        revision=MODERN,
        capabilities=cast("JsonObject", capabilities),
        client=named(said.get(CLIENT_KEY)),
    )


def stated(headers: Headers, name: bytes) -> bytes | None:
    """Return a header value, stripped: the HTTP parser leaves trailing spaces."""
    value = headers.get(name)
    return None if value is None else value.strip()


def named(client: Any) -> tuple[str, str]:
    """Return the name and version from a client's info."""
    if client is None:
        return NOBODY
    if type(client) is dict:
        said = cast("dict[str, Any]", client)
        name, version = said.get("name"), said.get("version")
        if type(name) is str and type(version) is str:
            return name, version
    raise ProtocolError(INVALID_PARAMS, "the client's info must be an object with a name and a version")


def _check_headers(message: JsonObject, version: Any, headers: Headers) -> None:
    if type(version) is not str or stated(headers, b"mcp-protocol-version") != version.encode():
        raise ProtocolError(HEADER_MISMATCH, f"MCP-Protocol-Version must repeat {VERSION_KEY}")
    method: str = message["method"]
    if stated(headers, b"mcp-method") != method.encode():
        raise ProtocolError(HEADER_MISMATCH, "Mcp-Method must repeat the method of the message")
    key = _NAMED.get(method)
    name = None if key is None else message["params"].get(key)
    if name is not None and decoded(stated(headers, b"mcp-name")) != name:
        raise ProtocolError(HEADER_MISMATCH, f"Mcp-Name must repeat the {key} in the parameters")


def _unsupported(version: Any) -> ProtocolError:
    if type(version) is not str:
        return ProtocolError(INVALID_PARAMS, f"{VERSION_KEY} must be text")
    known = {"supported": [MODERN], "requested": version}
    return ProtocolError(UNSUPPORTED_VERSION, f"this revision is not spoken here; use {MODERN}", known)


def check_mirrors(mirrors: Mirrors, arguments: JsonObject, headers: Headers) -> None:
    """Refuse a call with arguments that differ from the headers that mirror them."""
    for path, header in mirrors:
        value: Any = arguments
        for name in path:
            value = cast("JsonObject", value).get(name) if type(value) is dict else None
        raw = stated(headers, header.lower().encode())
        if raw is None and not _shown(value):
            continue
        if not _same(decoded(raw), value):
            raise ProtocolError(HEADER_MISMATCH, f"{header} must repeat the argument {'.'.join(path)}")


def _shown(value: Any) -> bool:
    """Whether an argument can be mirrored in a header."""
    return isinstance(value, str | int | float)


def _same(header: str | None, value: Any) -> bool:
    if header is None or not _shown(value):
        return False
    if type(value) is bool:
        return header == ("true" if value else "false")
    if isinstance(value, str):
        return header == value
    return header == str(value) or _is_number(header, value)


def _is_number(header: str, value: float) -> bool:
    """Whether a header denotes this number: decimal digits, no exponent, only zeros after the point."""
    whole, point, fraction = header.partition(".")
    digits = whole.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 1000):
        return False
    if point and (not fraction or fraction.strip("0")):
        return False
    return value == int(whole)


def decoded(value: bytes | None) -> str | None:
    """Decode a header value; None where it is missing, or is invalid base64."""
    if value is None:
        return None
    if not (value.startswith(_BEFORE) and value.endswith(_AFTER) and len(value) >= len(_BEFORE + _AFTER)):
        return value.decode("latin-1")
    payload = value[len(_BEFORE) : -len(_AFTER)]
    try:
        found = b64decode(payload, validate=True)
        # Canonical base64 only: other encodings of the same bytes are refused.
        return found.decode() if b64encode(found) == payload else None
    except (NotBase64, UnicodeDecodeError):
        return None
