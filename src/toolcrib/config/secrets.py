"""Finds the secrets of a config, for redaction and masking: by setting, in URLs, commands and environment."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import unquote, urlsplit

from toolcrib.config.document_tree import rewrite, texts
from toolcrib.config.errors import Where
from toolcrib.config.expand import REFERENCE
from toolcrib.model import JsonObject

MASK = "***"

_OPEN = frozenset({"server", "log", "metrics", "limits"})
"""Sections that are printed on purpose and have no secrets, even if the environment supplies values."""

_WEB_ADDRESSES = frozenset({("traces", "endpoint"), ("search", "url")})
_OPENAPI_ADDRESSES = frozenset({("document",), ("base_url",)})
_ADMIN_KEYS = frozenset({("auth", "admin_key"), ("auth", "admin_key_old")})

Span = tuple[int, int]
Finder = Callable[[str], Iterable[Span]]
"""Yields the spans of secrets in a text."""

_TELLING = re.compile(
    r"token|secret|passw(?:or)?d|passphrase|credential|api[_-]?key|authorization|cookie"
    r"|(?<![a-z])(?:key|auth|pass|pwd)(?![a-z])",
    re.IGNORECASE,
)
_FLAG = re.compile(r"--?[\w.-]{1,100}")
_WORD = re.compile(r"\S+")
_BEFORE_PASSWORD = re.compile(r"://[^:/@\s]*:")
_PATH = re.compile(r"[/\\]")
_AUDITED = ("transport", "enabled", "start", "pin", "relay")
"""Settings of a server with enumerated values, which cannot be secrets."""
_SCHEME = re.compile(r"(?:Bearer|Basic|Token|ApiKey)?\s*", re.IGNORECASE)


def _found(pattern: str) -> Finder:
    compiled = re.compile(pattern, re.IGNORECASE | re.DOTALL)
    return lambda text: (match.span("secret") for match in compiled.finditer(text))


def _password(text: str) -> Iterator[Span]:
    """Match up to the last `@` of a word: masking too much of a URL is better than too little."""
    for word in _WORD.finditer(text):
        last = text.rfind("@", *word.span())
        before = _BEFORE_PASSWORD.search(text, word.start(), max(last, word.start()))
        if before is not None and before.end() < last:
            yield before.end(), last


_whole = _found("(?P<secret>.+)")
_user = _found(r"://(?P<secret>[^:/@\s]+)(?=@)")
_query = _found("[?&](?:[^=&#]{0,200}=)?(?P<secret>[^&#]+)")
_password_in_query = _found(
    rf"[?&][^=&#]{{0,40}}(?:{_TELLING.pattern})[^=&#]{{0,40}}=(?P<secret>(?:\$\{{[^}}]*\}}|[^&#}}])+)"
)
"""Postgres clients accept a password in the query; other parameters of the URL are not secrets."""
_key_in_path = _found(
    "(?<=/)(?P<secret>(?=[^/?#]*[0-9])[^/?#]*(?:[a-z0-9_]{20}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-)[^/?#]*)"
)
_ADDRESS = (_password, _user, _query, _key_in_path)
_named = _found(rf"(?:{_TELLING.pattern})[\w-]{{0,40}}\s{{0,8}}[:=]\s{{0,8}}(?P<secret>\S.*)")
_flag_in_text = _found(
    rf"(?<!\S)--?[\w.-]{{0,60}}?(?:{_TELLING.pattern})[\w.-]{{0,40}}\s{{1,8}}(?P<secret>[^\s-]\S*)"
)


def telling(name: str) -> bool:
    """Whether a name indicates a secret, such as `api_key`."""
    return _TELLING.search(name) is not None


def gather(values: Mapping[str, Any], taken: Iterable[tuple[Where, str]] = ()) -> frozenset[str]:
    """Collect every secret text of an expanded document, for redaction in logs."""
    found = {text for where, text in taken if where[0] not in _OPEN}
    flagged = frozenset(_flagged(values))
    for where, text in texts(values):
        for find in _finders(where, flagged):
            for start, end in find(text):
                found.update(_spellings(text[start:end], password=find is _password))
    return frozenset(found - {""})


def mask(raw: Any) -> Any:
    """Copy an unexpanded document with secrets masked; references stay, but their defaults are masked."""
    flagged = frozenset(_flagged(raw))

    def masked(where: Where, text: str) -> str:
        for find in _finders(where, flagged):
            text = _covered(text, find)
        return text

    return rewrite(raw, masked)


def audited_server(settings: Mapping[str, Any]) -> JsonObject:
    """Return the audited part of a server: its program or host, and the names, never the values, of the rest.

    Audit records are permanent, and an argument or a part of a URL may be a secret that looks harmless.
    """
    kept: JsonObject = {name: settings[name] for name in _AUDITED if name in settings}
    program, *arguments = settings.get("command") or ("",)
    if program:
        # Cut at a space: a whole command line is not a program name.
        kept |= {"program": _PATH.split(program)[-1].partition(" ")[0], "arguments": len(arguments)}
    if settings.get("url"):
        kept["url"] = _host_alone(settings["url"])
    return kept | {name: sorted(settings[name]) for name in ("env", "headers") if settings.get(name)}


def _host_alone(url: str) -> str:
    """Return the scheme, host and port of a URL, without the parts that may contain a token."""
    try:
        parts = urlsplit(url)
        port = "" if parts.port is None else f":{parts.port}"
    except ValueError:
        return MASK
    host = parts.hostname or ""
    return f"{parts.scheme}://{f'[{host}]' if ':' in host else host}{port}"


def _covered(text: str, find: Finder) -> str:
    parts, done = list[str](), 0
    for start, end in find(text):
        parts += (text[done:start], _references_alone(text[start:end]))
        done = end
    return "".join((*parts, text[done:]))


def _finders(where: Where, flagged: frozenset[Where]) -> tuple[Finder, ...]:
    """Return the finders that apply to the text at this path."""
    if where in _ADMIN_KEYS or where[:2] == ("traces", "headers") or where in flagged:
        return (_whole,)
    if where == ("store",):
        return (_password, _password_in_query)
    if where in _WEB_ADDRESSES or (where[:1] == ("openapi",) and where[2:] in _OPENAPI_ADDRESSES):
        return _ADDRESS
    if where[:2] != ("mcp", "servers") or len(where) < 4:
        return (_password,)
    if where[3] in ("headers", "env"):
        return (_whole,)
    if where[3] == "url":
        return _ADDRESS
    return (_password, _named, _flag_in_text) if where[3] == "command" else (_password,)


def _flagged(document: Any) -> Iterator[Where]:
    """Yield the paths of command arguments that follow a flag such as `--api-key`."""
    earlier, said = Where(), ""
    for where, text in texts(document):
        together = where[:2] == ("mcp", "servers") and where[3:4] == ("command",) and earlier[:4] == where[:4]
        if together and _FLAG.fullmatch(said) and telling(said) and not text.startswith("-"):
            yield where
        earlier, said = where, text


def _spellings(secret: str, *, password: bool) -> Iterator[str]:
    """Yield the forms in which a secret may appear in logs: raw, URL-decoded, or without its auth scheme."""
    yield from (secret, unquote(secret), _SCHEME.sub("", secret, count=1))
    if password:
        first = secret.partition("@")[0]
        yield from (first, unquote(first))


def _references_alone(text: str) -> str:
    names = [match for match in REFERENCE.finditer(text) if match["name"]]
    if not names or not _SCHEME.fullmatch(REFERENCE.sub("", text)):
        return MASK
    return REFERENCE.sub(
        lambda match: f"${{{match['name']}:-{MASK}}}" if match["default"] else match[0], text
    )
