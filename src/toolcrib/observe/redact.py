"""Keeps secrets out of whatever is written down: known values, known shapes, fields with telling names."""

import re
from collections.abc import Iterable, Mapping, Sequence
from json import dumps
from typing import Any, cast
from urllib.parse import quote, quote_plus

from toolcrib.model.secret_names import NAMES_OF_SECRETS, is_secret_name

MASK = "[redacted]"

SHORTEST = 6
"""Shorter values are ordinary words and numbers: replacing them everywhere would garble the log.

They are caught by the name of their field and by shape alone.
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

_SHAPES = re.compile(f"{_HEADER}|{_NAMED}|{_BEARER}|{_OWN_KEY}|{_JWT}|{_USERINFO}")
_SELF_EVIDENT = re.compile(rf"{_OWN_KEY}|{_JWT}")

# Without a common first letter the shapes cost 100 ns a character; these plain words, which one of them must
# contain, cost 8, and almost no text has any.
_NO_SIGN = re.compile(r"[0-9a-f\n-]*")  # ids, mostly
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
_SIGNS = re.compile("|".join(_SIGN_WORDS))

_DEEPEST = 8
_MOST_PARTS = 1_000
_LONGEST_PART = 4_096
_MOST_CHARACTERS = 65_536
_NUMBER = 8
"""What a number, a switch or nothing counts for."""
_MARGIN = 16_384
"""So far past its end a text is looked at: a secret that is cut in two would not be known."""
_CUT = "[cut off]"
_MOST_KNOWN = 1_000
_MOST_PASSED = 10_000


class Redactor:
    """The one filter at the boundary: knows every secret there is, sees everything that is to be written."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._known: dict[str, None] = {}
        self._longest_first: tuple[str, ...] = ()
        self._like_ids: tuple[str, ...] = ()
        self._values = re.compile("")
        self._passed: set[tuple[str | None, ...]] = set()
        self.learned = 0
        """Grows with every secret: what was cleaned before must be cleaned again."""
        for secret in secrets:
            self._add(secret)
        self._compile()

    def learn(self, *secrets: str) -> None:
        """Replace these values too from now on, such as a key that was just made."""
        known = len(self._known)
        for secret in secrets:
            # What its shape gives away need not be remembered, so that many keys slow nothing down.
            if not _SELF_EVIDENT.fullmatch(secret):
                self._add(secret)
        # Once for all, and not for what was known: every time takes longer the more there are.
        if len(self._known) != known:
            self._compile()

    def text(self, text: str) -> str:
        """The same text without secrets."""
        for secret in self._longest_first:
            if secret in text:
                text = self._values.sub(MASK, text)
                break
        if _NO_SIGN.fullmatch(text) or not _SIGNS.search(text.lower()):
            return text
        return _SHAPES.sub(_mask_shape, text)

    def is_id(self, text: str) -> bool:
        """Whether a text is made of what ids are made of, and holds no secret; most often it is one."""
        if not _NO_SIGN.fullmatch(text):
            return False
        return not (self._like_ids and any(secret in text for secret in self._like_ids))

    def passes(self, words: tuple[str | None, ...]) -> bool:
        """Whether none of these words holds a secret. Remembered: for names that come again and again."""
        if words in self._passed:
            return True
        if any(word and self.text(word) != word for word in words):
            return False
        if len(self._passed) >= _MOST_PASSED:
            self._passed.clear()
        self._passed.add(words)
        return True

    def clean(self, value: Any, *, room: int = _MOST_CHARACTERS, hidden: frozenset[str] = frozenset()) -> Any:
        """The same value without secrets, all the way down; cut off where it takes more room than it may.

        Fields named in `hidden` are secret too, at whatever depth.
        """
        return self._clean(value, _DEEPEST, _Room(room, hidden))

    def is_plain(self, text: str) -> bool:
        """Whether a text holds no secret, nor any word that one could stand behind."""
        # Word by word is a quarter of what the pattern costs, on the line of every call.
        return not (
            any(map(text.__contains__, self._longest_first))
            or any(map(text.lower().__contains__, _SIGN_WORDS))
        )

    def _add(self, secret: str) -> None:
        secret = secret.strip()
        if len(secret) >= SHORTEST:
            self._known.update(dict.fromkeys(_spellings(secret)))

    def _compile(self) -> None:
        while len(self._known) > _MOST_KNOWN:
            del self._known[next(iter(self._known))]
        self._longest_first = tuple(sorted(self._known, key=len, reverse=True))
        self._like_ids = tuple(filter(_NO_SIGN.fullmatch, self._longest_first))
        self._values = re.compile("|".join(map(re.escape, self._longest_first)))
        self._passed.clear()
        self.learned += 1

    def _clean(self, value: Any, depth: int, left: "_Room") -> Any:
        left.parts -= 1
        if value is None or isinstance(value, bool | int | float):
            left.characters -= _NUMBER
            return value
        if isinstance(value, str):
            return self._short(value, left)
        if depth == 0 or left.is_used:
            return _CUT
        if isinstance(value, Mapping):
            return self._clean_fields(cast("Mapping[Any, Any]", value), depth - 1, left)
        if isinstance(value, Sequence | set | frozenset) and not isinstance(
            value, bytes | bytearray | memoryview
        ):
            return self._clean_items(cast("Iterable[Any]", value), depth - 1, left)
        return self._short(str(cast("object", value)), left)

    def _clean_fields(self, fields: Mapping[Any, Any], depth: int, left: "_Room") -> dict[str, Any]:
        cleaned: dict[str, Any] = {}
        for name, value in fields.items():
            if left.is_used:
                cleaned[_CUT] = True
                break
            told = str(name)
            is_secret = told in left.hidden or _telling(told, value)
            cleaned[self._short(told, left)] = MASK if is_secret else self._clean(value, depth, left)
        return cleaned

    def _clean_items(self, items: Iterable[Any], depth: int, left: "_Room") -> list[Any]:
        cleaned: list[Any] = []
        for item in items:
            if left.is_used:
                cleaned.append(_CUT)
                break
            cleaned.append(self._clean(item, depth, left))
        return cleaned

    def _short(self, text: str, left: "_Room") -> str:
        """A text without secrets, cut to the room there is; looked at a little further than it is kept."""
        most = max(min(_LONGEST_PART, left.characters), 0)
        cleaned = self.text(text[: most + _MARGIN])
        left.characters -= min(len(cleaned), most)
        return cleaned if len(cleaned) <= most else f"{cleaned[:most]}{_CUT}"


class _Room:
    """What is left while a value is cleaned, and the names of its fields that are secret beside the usual."""

    __slots__ = ("characters", "hidden", "parts")

    def __init__(self, characters: int, hidden: frozenset[str]) -> None:
        self.parts, self.characters, self.hidden = _MOST_PARTS, characters, hidden

    @property
    def is_used(self) -> bool:
        return self.parts <= 0 or self.characters <= 0


def _telling(name: str, value: object) -> bool:
    """Whether a field's name says that its value is secret. A number of tokens is not."""
    if value is None or not is_secret_name(name):
        return False
    return not (isinstance(value, int | float) and "tokens" in name.lower())


def _mask_shape(match: re.Match[str]) -> str:
    return (match["header"] or match["named"] or match["bearer"] or "") + MASK


def _spellings(secret: str) -> set[str]:
    """A secret as it stands, and as JSON, `repr` and addresses write it."""
    return {
        secret,
        dumps(secret)[1:-1],
        dumps(secret, ensure_ascii=False)[1:-1],
        repr(secret)[1:-1],
        quote(secret, safe="", errors="replace"),
        quote(secret, errors="replace"),
        quote_plus(secret, errors="replace"),
    }
