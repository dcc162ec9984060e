"""Redacts secrets in everything that is written: known values, known patterns, fields with secret names."""

import re
from collections.abc import Iterable, Mapping, Sequence
from json import dumps
from typing import Any, cast
from urllib.parse import quote, quote_plus

from toolcrib.model.value import NAMES_OF_SECRETS, is_secret_name

MASK = "[redacted]"

MIN_SECRET_CHARACTERS = 6
"""Shorter values are ordinary words and numbers: replacing them everywhere would garble the log.

They are redacted only by field name and by pattern.
"""

_QUOTE = r"\\{0,7}[\"']"
_NAMED = (
    rf"(?P<named>(?i:{NAMES_OF_SECRETS})(?:[_-][\w-]{{1,40}}|[A-Z]\w{{0,40}})?"
    rf"(?:(?:{_QUOTE})?\s{{0,8}}[:=]\s{{0,8}}|[\"'],\s{{0,3}}))"
    rf"(?!\[redacted\])"
    rf"(?:(?P<escaped>\\{{1,7}}[\"']).*?(?P=escaped)|\\[^\r\n]*"
    rf"|b?\"[^\"\\]*(?:\\.[^\"\\]*)*\"?|b?'[^'\\]*(?:\\.[^'\\]*)*'?"
    rf"|(?:(?i:bearer|basic|digest)\s{{1,8}})?[^\s,;&\"'}}\])\\]+)"
)
_HEADER = r"(?P<header>(?i:\b(?:authorization|(?:set-)?cookie)):\s{0,8})(?![\s\"'\\])[^\r\n]+"
_BEARER = r"(?P<bearer>\b(?:(?i:bearer)|(?i:basic)(?=\s{1,8}\S{0,999}?[A-Z0-9=]))\s{1,8})[\w.~+/=-]{6,}"
_OWN_KEY = r"(?<![a-zA-Z0-9])tc(?:app)?_[\w-]{8,}"
_JWT = r"\beyJ[\w-]{8,4096}\.[\w-]{8,}\.[\w-]*"
_USERINFO = r"(?<=://)[^/\s:@]*:[^/\s@]+(?=@)"

_SECRET_PATTERN = re.compile(f"{_HEADER}|{_NAMED}|{_BEARER}|{_OWN_KEY}|{_JWT}|{_USERINFO}")
_SELF_EVIDENT = re.compile(rf"{_OWN_KEY}|{_JWT}")

# Without a common first letter the patterns cost 100 ns per character. Every match of one contains one of
# these plain words; searching for those costs 8 ns per character, and almost no text has any.
_ID_CHARACTERS = re.compile(r"[0-9a-f\n-]*")  # ids, mostly
_SIGN_WORDS = (
    "bearer",
    "basic",
    "tc_",
    "tcapp_",
    "eyj",
    "://",
    "pass",
    "secret",
    "credential",
    "authorization",
    "cookie",
    "key",
    "token",
)
_SIGN_PATTERN = re.compile("|".join(_SIGN_WORDS))

_MAX_DEPTH = 8
_MAX_PARTS = 1_000
_MAX_PART_CHARACTERS = 4_096
_MAX_CHARACTERS = 65_536
_SCALAR_CHARACTERS = 8
"""Characters that a number, a boolean or null counts for."""
_MARGIN_CHARACTERS = 16_384
"""Characters searched past the point of truncation: a secret cut in two would not be recognized."""
_TRUNCATED = "[cut off]"
_MAX_KNOWN_SECRETS = 1_000
_MAX_CACHED_WORDS = 10_000


class Redactor:
    """The redaction filter for all output: knows all registered secrets, processes everything written."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._known: dict[str, None] = {}
        self._longest_first: tuple[str, ...] = ()
        self._like_ids: tuple[str, ...] = ()
        self._values = re.compile("")
        self._clean_words: set[tuple[str | None, ...]] = set()
        self.learned = 0
        """Version number that grows when secrets are added: it invalidates cached redacted text."""
        for secret in secrets:
            self._add(secret)
        self._compile()

    def learn(self, *secrets: str) -> None:
        """Redact these values too from now on, such as a newly created key."""
        known = len(self._known)
        for secret in secrets:
            # A value that its pattern reveals is not registered, so that many keys do not slow the search.
            if not _SELF_EVIDENT.fullmatch(secret):
                self._add(secret)
        # Once for all new values, and not without one: the cost of compiling grows with their number.
        if len(self._known) != known:
            self._compile()

    def text(self, text: str) -> str:
        """Return the text with secrets masked."""
        for secret in self._longest_first:
            if secret in text:
                text = self._values.sub(MASK, text)
                break
        if _ID_CHARACTERS.fullmatch(text) or not _SIGN_PATTERN.search(text.lower()):
            return text
        return _SECRET_PATTERN.sub(_mask_match, text)

    def is_id(self, text: str) -> bool:
        """Whether a text has only the characters of hexadecimal ids and contains no known secret."""
        if not _ID_CHARACTERS.fullmatch(text):
            return False
        return not (self._like_ids and any(secret in text for secret in self._like_ids))

    def passes(self, words: tuple[str | None, ...]) -> bool:
        """Whether none of these words contains a secret. Cached, for names that recur."""
        if words in self._clean_words:
            return True
        if any(word and self.text(word) != word for word in words):
            return False
        if len(self._clean_words) >= _MAX_CACHED_WORDS:
            self._clean_words.clear()
        self._clean_words.add(words)
        return True

    def clean(
        self, value: Any, *, max_characters: int = _MAX_CHARACTERS, hidden: frozenset[str] = frozenset()
    ) -> Any:
        """Return a copy of the value with secrets masked recursively, truncated at `max_characters`.

        Fields named in `hidden` are masked too, at any depth.
        """
        return self._clean(value, _MAX_DEPTH, _Budget(max_characters, hidden))

    def is_plain(self, text: str) -> bool:
        """Whether a text contains no known secret, nor any word that could precede one."""
        # Word by word costs a quarter of the pattern, and this runs for the log line of every call.
        return not (
            any(map(text.__contains__, self._longest_first))
            or any(map(text.lower().__contains__, _SIGN_WORDS))
        )

    def _add(self, secret: str) -> None:
        secret = secret.strip()
        if len(secret) >= MIN_SECRET_CHARACTERS:
            self._known.update(dict.fromkeys(_encodings(secret)))

    def _compile(self) -> None:
        while len(self._known) > _MAX_KNOWN_SECRETS:
            del self._known[next(iter(self._known))]
        self._longest_first = tuple(sorted(self._known, key=len, reverse=True))
        self._like_ids = tuple(filter(_ID_CHARACTERS.fullmatch, self._longest_first))
        self._values = re.compile("|".join(map(re.escape, self._longest_first)))
        self._clean_words.clear()
        self.learned += 1

    def _clean(self, value: Any, depth: int, budget: "_Budget") -> Any:
        budget.parts -= 1
        if value is None or isinstance(value, bool | int | float):
            budget.characters -= _SCALAR_CHARACTERS
            return value
        if isinstance(value, str):
            return self._clean_text(value, budget)
        if depth == 0 or budget.is_used:
            return _TRUNCATED
        if isinstance(value, Mapping):
            return self._clean_fields(cast("Mapping[Any, Any]", value), depth - 1, budget)
        if isinstance(value, Sequence | set | frozenset) and not isinstance(
            value, bytes | bytearray | memoryview
        ):
            return self._clean_items(cast("Iterable[Any]", value), depth - 1, budget)
        return self._clean_text(str(cast("object", value)), budget)

    def _clean_fields(self, fields: Mapping[Any, Any], depth: int, budget: "_Budget") -> dict[str, Any]:
        cleaned: dict[str, Any] = {}
        for name, value in fields.items():
            if budget.is_used:
                cleaned[_TRUNCATED] = True
                break
            shown_name = str(name)
            is_secret = shown_name in budget.hidden or _is_secret_field(shown_name, value)
            cleaned[self._clean_text(shown_name, budget)] = (
                MASK if is_secret else self._clean(value, depth, budget)
            )
        return cleaned

    def _clean_items(self, items: Iterable[Any], depth: int, budget: "_Budget") -> list[Any]:
        cleaned: list[Any] = []
        for item in items:
            if budget.is_used:
                cleaned.append(_TRUNCATED)
                break
            cleaned.append(self._clean(item, depth, budget))
        return cleaned

    def _clean_text(self, text: str, budget: "_Budget") -> str:
        """Return a text redacted and truncated to the budget; the search extends past the truncation."""
        most = max(min(_MAX_PART_CHARACTERS, budget.characters), 0)
        cleaned = self.text(text[: most + _MARGIN_CHARACTERS])
        budget.characters -= min(len(cleaned), most)
        return cleaned if len(cleaned) <= most else f"{cleaned[:most]}{_TRUNCATED}"


class _Budget:
    """Remaining budget while a value is cleaned, and the additional names of secret fields."""

    __slots__ = ("characters", "hidden", "parts")

    def __init__(self, characters: int, hidden: frozenset[str]) -> None:
        self.parts, self.characters, self.hidden = _MAX_PARTS, characters, hidden

    @property
    def is_used(self) -> bool:
        return self.parts <= 0 or self.characters <= 0


def _is_secret_field(name: str, value: object) -> bool:
    """Whether a field's name marks its value as secret. A count of tokens is not secret."""
    if value is None or not is_secret_name(name):
        return False
    return not (isinstance(value, int | float) and "tokens" in name.lower())


def _mask_match(match: re.Match[str]) -> str:
    return (match["header"] or match["named"] or match["bearer"] or "") + MASK


def _encodings(secret: str) -> set[str]:
    """Return a secret verbatim, and as escaped by JSON, by `repr` and in URLs."""
    return {
        secret,
        dumps(secret)[1:-1],
        dumps(secret, ensure_ascii=False)[1:-1],
        repr(secret)[1:-1],
        quote(secret, safe="", errors="replace"),
        quote(secret, errors="replace"),
        quote_plus(secret, errors="replace"),
    }
