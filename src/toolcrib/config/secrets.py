"""Secrets in a config: `${VAR}` expansion, where they come from, and rules for the admin key."""

import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Any
from urllib.parse import unquote, urlsplit

from toolcrib.config.errors import ConfigError, ConfigFault, Finding, Where
from toolcrib.config.yaml import rewrite, text_values
from toolcrib.model import JsonObject

# --- Strength checks of admin keys: length, entropy, repetition, sequences and well-known words ---

MIN_ADMIN_KEY_CHARACTERS = 32
"""Minimum length of a configured admin key if the gateway is reachable by others, directly or by proxy."""
MIN_LOOPBACK_KEY_CHARACTERS = 16
"""Minimum length on loopback too, since the key also wraps the data key of the secrets in the store."""
MIN_DISTINCT_SHARE = 4
"""A key needs one distinct character per this many characters, up to `MAX_DISTINCT_NEEDED`."""
MAX_DISTINCT_NEEDED = 8
MIN_REPEATED = 8
"""A key is periodic if its last characters, at least this many, equal those one period before. A threshold
is needed: the first and last character of one in 16 random hexadecimal keys are equal."""
MIN_RUN = 4
"""Minimum length of a run: equal characters, or consecutive ones of a line in `_LINES`."""
MAX_SHARE_IN_RUNS = 0.5
_WORDS = ("changeme", "password", "passwort", "letmein", "qwerty", "default", "example", "placeholder")
_WORDS_ALONE = ("admin", "secret", "test", "toolcrib", "key", "token", "root", "12345678", "abcdefgh")
_SEQUENCES = (
    "abcdefghijklmnopqrstuvwxyz",
    "01234567890",
    *("qwertyuiop", "asdfghjkl", "zxcvbnm", "qwertzuiop", "yxcvbnm", "azertyuiop", "qsdfghjklm", "wxcvbn"),
    *("1qaz", "2wsx", "3edc", "4rfv", "5tgb", "6yhn", "7ujm", "8ik", "9ol"),
)
"""The alphabet, the digits, and the rows and columns of keyboard layouts."""
Pair = tuple[str, str]
_ASCENDING: frozenset[Pair] = frozenset(pair for line in _SEQUENCES for pair in pairwise(line))
_DESCENDING: frozenset[Pair] = frozenset((second, first) for first, second in _ASCENDING)
_MAX_OTHER_CHARACTERS = 8
"""A key that contains well-known words is rejected if at most this many other characters are left."""
ADMIN_KEY_FILE = "admin.key"
ADMIN_KEY_ADVICE = "generate one with `openssl rand -hex 32`, or omit it to have one generated"


def weakness(key: str) -> str | None:
    """Return why a key is too weak for any bind address; None if it is not."""
    if not key.strip() or any(char.isspace() or not char.isprintable() for char in key):
        return "contains spaces or non-printable characters"
    needed = min(-(-len(key) // MIN_DISTINCT_SHARE), MAX_DISTINCT_NEEDED)
    if len(set(key)) < needed:
        return f"has too few different characters, at least {needed} are needed"
    if _is_a_word(key):
        return "is a common word"
    if _share_in_runs(key.lower()) > MAX_SHARE_IN_RUNS:
        return "consists mostly of sequences: alphabet, digits, keyboard rows or one repeated character"
    return too_short(key, MIN_LOOPBACK_KEY_CHARACTERS)


def too_short(key: str, shortest: int) -> str | None:
    """Return a message if a key, or the period that it repeats, is shorter than `shortest`; else None."""
    if len(key) < shortest:
        return f"is too short, at least {shortest} characters are needed"
    period = _period_below(shortest, key.lower())
    if period is None:
        return None
    return f"repeats {period} characters, at least {shortest} without repetition are needed"


def check_admin_key(key: str, *, given: bool) -> None:
    """Raise ConfigError for a weak admin key; a generated one (from its file) needs the full length."""
    reason = weakness(key)
    if reason is None and not given:
        reason = too_short(key, MIN_ADMIN_KEY_CHARACTERS)
    if reason is not None:
        message = f"{reason}; {ADMIN_KEY_ADVICE}"
        raise ConfigError(
            [ConfigFault(message=message, where=("auth", "admin_key"), file="" if given else ADMIN_KEY_FILE)]
        )


def _period_below(shortest: int, key: str) -> int | None:
    """Return the period of a key if it is shorter than `shortest`; else None."""
    sizes = range(1, min(shortest, len(key) - MIN_REPEATED + 1))
    return next((size for size in sizes if key[size:] == key[:-size]), None)


def _share_in_runs(key: str) -> float:
    """Return the fraction of adjacent pairs that are part of a run of equal or consecutive characters."""
    pairs = list(pairwise(key))
    equal = frozenset((char, char) for char in key)
    in_runs = {index for kind in (equal, _ASCENDING, _DESCENDING) for index in _long_runs(pairs, kind)}
    return len(in_runs) / max(len(pairs), 1)


def _long_runs(pairs: Sequence[Pair], kind: Container[Pair]) -> Iterator[int]:
    """Yield the indices of all pairs in runs of one kind that are long enough."""
    for is_run, indices in groupby(range(len(pairs)), lambda index: pairs[index] in kind):
        run = list(indices)
        if is_run and len(run) >= MIN_RUN - 1:
            yield from run


def _is_a_word(key: str) -> bool:
    """Whether a key consists mostly of words from password dictionaries."""
    left = key.lower().translate(str.maketrans("", "", "-_.!"))
    known = [word for word in (*_WORDS, *_WORDS_ALONE) if word in left]
    for word in known:
        left = left.replace(word, "")
    return bool(known) and len(left) <= _MAX_OTHER_CHARACTERS


# --- Expands environment variables: `${NAME}`, `${NAME:-default}`, and `$${` as the escape for `${` ---

REFERENCE = re.compile(r"\$\$\{|\$\{(?:(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>[^{}]*))?\})?")

_SYNTAX_ADVICE = "write ${NAME} or ${NAME:-default}, or $${ for a literal ${"


@dataclass(frozen=True, slots=True, kw_only=True)
class Expanded:
    """A document with its references expanded, and each value taken from the environment with its path."""

    values: dict[str, Any]
    taken: tuple[tuple[Where, str], ...]
    findings: tuple[Finding, ...]


def expand(values: Mapping[str, Any], env: Mapping[str, str]) -> Expanded:
    """Expand every reference; one that fails is a finding with the variable's name, never with a value."""
    expander = _Expander(env)
    expanded = rewrite(values, expander.expand)
    return Expanded(values=expanded, taken=tuple(expander.taken), findings=tuple(expander.findings))


class _Expander:
    def __init__(self, env: Mapping[str, str]) -> None:
        self.taken: list[tuple[Where, str]] = []
        self.findings: list[Finding] = []
        self._env = env

    def expand(self, where: Where, text: str) -> str:
        if "${" not in text:
            return text
        return REFERENCE.sub(lambda match: self._replacement(where, match), text)

    def _replacement(self, where: Where, match: re.Match[str]) -> str:
        if match["name"] is None:
            if match[0] == "${":
                self.findings.append((where, f"has an invalid reference; {_SYNTAX_ADVICE}"))
            return "${"
        value = self._env.get(match["name"])
        if value:
            self.taken.append((where, value))
            return value
        if value is None and match["default"] is None:
            self.findings.append((where, f"refers to the variable {match['name']}, which is not set"))
        return match["default"] or ""


def escape(values: Any) -> Any:
    """Escape a document, so that `expand` returns the original."""
    return rewrite(values, lambda _where, text: text.replace("${", "$${"))


# --- Finds the secrets of a config, for redaction and masking ---

MASK = "***"

_PUBLIC_SECTIONS = frozenset({"server", "log", "metrics", "limits"})
"""Sections without secrets, whose values are printed even if they come from the environment."""

_WEB_ADDRESSES = frozenset({("traces", "endpoint"), ("search", "url")})
_OPENAPI_ADDRESSES = frozenset({("document",), ("base_url",)})
_ADMIN_KEYS = frozenset({("auth", "admin_key"), ("auth", "admin_key_old")})

Span = tuple[int, int]
Finder = Callable[[str], Iterable[Span]]
"""Yields the spans of secrets in a text."""

_SECRET_NAME = re.compile(
    r"token|secret|passw(?:or)?d|passphrase|credential|api[_-]?key|authorization|cookie"
    r"|(?<![a-z])(?:key|auth|pass|pwd)(?![a-z])",
    re.IGNORECASE,
)
_FLAG = re.compile(r"--?[\w.-]{1,100}")
_WORD = re.compile(r"\S+")
_BEFORE_PASSWORD = re.compile(r"://[^:/@\s]*:")
_PATH = re.compile(r"[/\\]")
_AUDITED_SETTINGS = ("transport", "enabled", "start", "pin", "relay")
"""Settings of a server with enumerated values, which cannot be secrets."""
_SCHEME = re.compile(r"(?:Bearer|Basic|Token|ApiKey)?\s*", re.IGNORECASE)


def _finder(pattern: str) -> Finder:
    compiled = re.compile(pattern, re.IGNORECASE | re.DOTALL)
    return lambda text: (match.span("secret") for match in compiled.finditer(text))


def _password(text: str) -> Iterator[Span]:
    """Match up to the last `@` of a word: masking too much of a URL is better than too little."""
    for word in _WORD.finditer(text):
        last = text.rfind("@", *word.span())
        before = _BEFORE_PASSWORD.search(text, word.start(), max(last, word.start()))
        if before is not None and before.end() < last:
            yield before.end(), last


_whole = _finder("(?P<secret>.+)")
_user = _finder(r"://(?P<secret>[^:/@\s]+)(?=@)")
_query = _finder("[?&](?:[^=&#]{0,200}=)?(?P<secret>[^&#]+)")
_password_in_query = _finder(
    rf"[?&][^=&#]{{0,40}}(?:{_SECRET_NAME.pattern})[^=&#]{{0,40}}=(?P<secret>(?:\$\{{[^}}]*\}}|[^&#}}])+)"
)
"""Postgres clients accept a password in the query; other parameters of the URL are not secrets."""
_key_in_path = _finder(
    "(?<=/)(?P<secret>(?=[^/?#]*[0-9])[^/?#]*(?:[a-z0-9_]{20}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-)[^/?#]*)"
)
_ADDRESS = (_password, _user, _query, _key_in_path)
_named = _finder(rf"(?:{_SECRET_NAME.pattern})[\w-]{{0,40}}\s{{0,8}}[:=]\s{{0,8}}(?P<secret>\S.*)")
_flag_in_text = _finder(
    rf"(?<!\S)--?[\w.-]{{0,60}}?(?:{_SECRET_NAME.pattern})[\w.-]{{0,40}}\s{{1,8}}(?P<secret>[^\s-]\S*)"
)


def names_secret(name: str) -> bool:
    """Whether a name indicates a secret, such as `api_key`."""
    return _SECRET_NAME.search(name) is not None


def find_secrets(values: Mapping[str, Any], taken: Iterable[tuple[Where, str]] = ()) -> frozenset[str]:
    """Collect every secret text of an expanded document, for redaction in logs."""
    found = {text for where, text in taken if where[0] not in _PUBLIC_SECTIONS}
    flagged = frozenset(_flag_arguments(values))
    for where, text in text_values(values):
        for find in _finders(where, flagged):
            for start, end in find(text):
                found.update(_secret_variants(text[start:end], password=find is _password))
    return frozenset(found - {""})


def mask(raw: Any) -> Any:
    """Copy an unexpanded document with secrets masked; references stay, but their defaults are masked."""
    flagged = frozenset(_flag_arguments(raw))

    def masked(where: Where, text: str) -> str:
        for find in _finders(where, flagged):
            text = _masked(text, find)
        return text

    return rewrite(raw, masked)


def audited_server(settings: Mapping[str, Any]) -> JsonObject:
    """Return the audited part of a server: its program or host, and the names, never the values, of the rest.

    Audit records are permanent, and an argument or a part of a URL may be a secret that looks harmless.
    """
    audited: JsonObject = {name: settings[name] for name in _AUDITED_SETTINGS if name in settings}
    program, *arguments = settings.get("command") or ("",)
    if program:
        # Cut at a space: a whole command line is not a program name.
        audited |= {"program": _PATH.split(program)[-1].partition(" ")[0], "arguments": len(arguments)}
    if settings.get("url"):
        audited["url"] = _origin_of(settings["url"])
    return audited | {name: sorted(settings[name]) for name in ("env", "headers") if settings.get(name)}


def _origin_of(url: str) -> str:
    """Return the scheme, host and port of a URL, without the parts that may contain a token."""
    try:
        parts = urlsplit(url)
        port = "" if parts.port is None else f":{parts.port}"
    except ValueError:
        return MASK
    host = parts.hostname or ""
    return f"{parts.scheme}://{f'[{host}]' if ':' in host else host}{port}"


def _masked(text: str, find: Finder) -> str:
    parts, done = list[str](), 0
    for start, end in find(text):
        parts += (text[done:start], _mask_except_references(text[start:end]))
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


def _flag_arguments(document: Any) -> Iterator[Where]:
    """Yield the paths of command arguments that follow a flag such as `--api-key`."""
    previous, flag = Where(), ""
    for where, text in text_values(document):
        in_command = where[:2] == ("mcp", "servers") and where[3:4] == ("command",)
        follows = in_command and previous[:4] == where[:4]
        if follows and _FLAG.fullmatch(flag) and names_secret(flag) and not text.startswith("-"):
            yield where
        previous, flag = where, text


def _secret_variants(secret: str, *, password: bool) -> Iterator[str]:
    """Yield the forms in which a secret may appear in logs: raw, URL-decoded, or without its auth scheme."""
    yield from (secret, unquote(secret), _SCHEME.sub("", secret, count=1))
    if password:
        first = secret.partition("@")[0]
        yield from (first, unquote(first))


def _mask_except_references(text: str) -> str:
    names = [match for match in REFERENCE.finditer(text) if match["name"]]
    if not names or not _SCHEME.fullmatch(REFERENCE.sub("", text)):
        return MASK
    return REFERENCE.sub(
        lambda match: f"${{{match['name']}:-{MASK}}}" if match["default"] else match[0], text
    )
