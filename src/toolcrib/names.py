"""Tool names: canonical (`source:tool`), safe and flat; folding for equality, fuzzy matching."""

import re
from collections.abc import Iterable
from difflib import SequenceMatcher
from hashlib import sha256
from heapq import nlargest
from typing import Literal
from unicodedata import normalize

from toolcrib.errors import Refused
from toolcrib.model import Tool

Style = Literal["qualified", "safe", "flat"]

_SOURCE = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}")
_SAFE = re.compile(r"[a-z][a-z0-9_]{0,63}")
_MAX_SAFE_CHARS = 64
_MAX_LOCAL_CHARS = 256
_MAX_FOLDED_CHARS = 1_024
"""Characters of the longest valid name. Normalizing combining marks takes quadratic time."""

# Invisible, although Python calls them printable: joiners, fillers and selectors can smuggle text into a
# name.
INVISIBLE = "\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef"
"""Content of a regex character class."""
_INVISIBLE = re.compile(f"[{INVISIBLE}]")
_WORD_STARTS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_NON_ALPHANUMERIC = re.compile(r"[^a-z0-9]+")


def split(name: str) -> tuple[str, str]:
    """Split a canonical name at its first colon."""
    source, colon, local = name.partition(":")
    if source and local:
        return source, local
    if not colon:
        raise _invalid(name, "it has no source")
    raise _invalid(name, f"there is nothing {'after' if source else 'before'} the colon")


def canonical(source: str, local: str) -> str:
    """Join source id and tool name; refuse ambiguous or invisible characters."""
    name = f"{source}:{local}"
    if not source or not local:
        split(name)
    if not _SOURCE.fullmatch(source):
        raise _invalid(
            name, "a source id has up to 63 of a-z, 0-9, '.', '_' and '-', and starts with a letter or digit"
        )
    if ":" in local:
        raise _invalid(name, "the part after the first colon must not contain a colon")
    if len(local) > _MAX_LOCAL_CHARS:
        raise _invalid(name, f"the part after the colon has at most {_MAX_LOCAL_CHARS} characters")
    character = invisible_character(local)
    if character or local != local.strip():
        raise _invalid(
            name, f"it contains an invisible character ({character or 'a space at its start or end'})"
        )
    return name


def invisible_character(text: str) -> str | None:
    """Return the first invisible character (control, bidi, zero-width, tag, filler) as `U+XXXX`, if any."""
    if text.isascii() and text.isprintable():
        return None
    for character in text:
        if not character.isprintable() or _INVISIBLE.match(character):
            return f"U+{ord(character):04X}"
    return None


def snake_case(text: str) -> str:
    """Convert text to ASCII snake case; empty if no character can be converted."""
    words = _WORD_STARTS.sub("_", normalize("NFKC", text))
    return _NON_ALPHANUMERIC.sub("_", words.lower()).strip("_")


def safe(tool: Tool) -> str:
    """Return the name valid for every provider. It depends on this tool alone, so others cannot change it."""
    if tool.expose_as is not None:
        return _checked_override(tool, tool.expose_as)
    local = snake_case(tool.local) or f"t_{_digest(tool.name)}"
    if tool.family == "mcp":
        local = f"mcp_{snake_case(tool.source)}_{local}"
    elif tool.family in ("app", "openapi"):
        local = f"{snake_case(tool.source)}_{local}"
    return _fit_length(local, tool.name)


def fold(name: str) -> str:
    """Normalize a name for comparison: case, Unicode form, and `-` against `_` are ignored."""
    if name.isascii():
        return name.lower().replace("-", "_")
    if len(name) > _MAX_FOLDED_CHARS:
        return name
    # Case folding can undo normalization and vice versa; two passes are Unicode's compatibility caseless
    # match.
    once = normalize("NFKC", normalize("NFD", name).casefold())
    return normalize("NFKC", once.casefold()).replace("-", "_")


def _checked_override(tool: Tool, name: str) -> str:
    if _SAFE.fullmatch(name):
        return name
    rule = "it must have at most 64 of a-z, 0-9 and '_', and start with a-z"
    raise Refused(
        "INVALID_TOOL_NAME",
        f"{_quoted(tool.name)} cannot be exposed as {_quoted(name)}: {rule}.",
        path="expose_as",
    )


def _fit_length(name: str, whole: str) -> str:
    if not name[0].isalpha():
        name = f"t_{name.lstrip('_')}"
    if len(name) <= _MAX_SAFE_CHARS:
        return name
    digest = _digest(whole)
    # The digest of the full name makes truncated names distinct.
    return f"{name[: _MAX_SAFE_CHARS - len(digest) - 1].rstrip('_')}_{digest}"


def _digest(name: str) -> str:
    return sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]


def _quoted(name: str) -> str:
    return repr(name if len(name) <= 80 else f"{name[:79]}…")


def _invalid(name: str, why: str) -> Refused:
    return Refused("INVALID_TOOL_NAME", f"{_quoted(name)} is not a tool name: {why}. Write 'source:tool'.")


# Fuzzy matching runs on the event loop for every unknown name. So cheap substring tests filter all
# candidates, and only a few are compared in full.
_MAX_CANDIDATES = 16
_MIN_SIMILARITY = 0.6
_MIN_CLEAR_SIMILARITY = 0.75
_MIN_LEAD = 0.04
"""By how much the clearly nearest name is more similar than the next one."""
_MAX_COMPARED_CHARS = 96
_WORD = re.compile(r"[^\W_]+")


def similar_names(name: str, candidates: Iterable[str], limit: int = 3) -> tuple[str, ...]:
    """Return the candidates most similar to a name, best first."""
    wanted = fold(name[:_MAX_COMPARED_CHARS])
    scored = _scored(wanted, _candidates_by_fragments(wanted, candidates))
    return tuple(each for score, each in scored[:limit] if score >= _MIN_SIMILARITY)


def clearly_nearest(name: str, candidates: Iterable[str]) -> str | None:
    """Return the candidate that a misspelled name clearly means; None where there is none, or several."""
    scored = _scored(fold(name[:_MAX_COMPARED_CHARS]), candidates)
    if not scored or scored[0][0] < _MIN_CLEAR_SIMILARITY:
        return None
    lead = scored[0][0] - scored[1][0] if len(scored) > 1 else 1.0
    return scored[0][1] if lead >= _MIN_LEAD else None


def words_of(name: str) -> tuple[str, ...]:
    """Return the words of a name in lower case, without its source."""
    return tuple(snake_case(name.rpartition(":")[2]).split("_"))


def _scored(wanted: str, candidates: Iterable[str]) -> list[tuple[float, str]]:
    """Return the candidates with their similarity to a folded name, best first."""
    like = _Similarity(wanted)
    scored = sorted((-like(fold(each[:_MAX_COMPARED_CHARS])), each) for each in candidates)
    return [(-score, each) for score, each in scored]


def _candidates_by_fragments(wanted: str, candidates: Iterable[str]) -> list[str]:
    """Return the few candidates that share the most word fragments with the name."""
    given = list(candidates)
    lowered = [each.lower() for each in given]
    hits = [0] * len(given)
    for piece in _fragments(wanted):
        hits = [hit + 1 if piece in each else hit for hit, each in zip(hits, lowered, strict=True)]
    least = max(hits, default=0) / 2 or 1
    tail = wanted.rpartition(":")[2]

    def rank(place: int) -> tuple[int, bool, int, str]:
        local = lowered[place].rpartition(":")[2]
        return hits[place], local.endswith(tail), -abs(len(local) - len(tail)), given[place]

    return [
        given[place]
        for place in nlargest(_MAX_CANDIDATES, (i for i, h in enumerate(hits) if h >= least), key=rank)
    ]


def _fragments(wanted: str) -> list[str]:
    words = _WORD.findall(wanted)
    letters = sum(map(len, words))
    # Shorter fragments for shorter names; at most eight of them, which bounds the substring tests.
    size = 1 if letters <= 4 else 2 if letters <= 8 else 3
    every = list(
        dict.fromkeys(word[at : at + size] for word in words for at in range(max(1, len(word) - size + 1)))
    )
    return every[:: -(-len(every) // 8) or 1]


class _Similarity:
    """Similarity of folded names to one name, from 0 to 1."""

    def __init__(self, wanted: str) -> None:
        self._words = set(_WORD.findall(wanted))
        self._local = SequenceMatcher(None, "", wanted.rpartition(":")[2], autojunk=False)
        self._whole = SequenceMatcher(None, "", wanted, autojunk=False)
        self._sorted = SequenceMatcher(None, "", _sorted(wanted), autojunk=False)

    def __call__(self, name: str) -> float:
        words = set(_WORD.findall(name))
        shared = len(words & self._words)
        if shared and shared == min(len(words), len(self._words)):
            return 0.9 + 0.1 * shared / max(len(words), len(self._words))
        local = name.rpartition(":")[2]
        pairs = ((self._whole, name), (self._local, local), (self._sorted, _sorted(name)))
        return max(_ratio(matcher, text) for matcher, text in pairs)


def _sorted(name: str) -> str:
    return "_".join(sorted(_WORD.findall(name)))


def _ratio(matcher: SequenceMatcher[str], text: str) -> float:
    matcher.set_seq1(text)
    # `quick_ratio` is a cheap upper bound of `ratio`.
    return matcher.ratio() if matcher.quick_ratio() >= _MIN_SIMILARITY else 0.0
