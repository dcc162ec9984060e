"""Matches a URI against a URI template (RFC 6570) in one pass with bit masks, without backtracking."""

import re
from collections.abc import MutableMapping
from dataclasses import dataclass

LONGEST = 2_048
"""Longest URI or template that is matched, in characters."""
MOST_BLANKS = 16
"""Most variables of a template that is matched."""

_BLANK = re.compile(r"\{([^{}]*)\}")
_WHOLE = frozenset("+#/?&")
"""Operators with an expansion that may contain a slash; expansions of all others may not."""

Places = MutableMapping[str, int]
"""Where each text begins in one URI, as a bit mask by position."""


@dataclass(frozen=True, slots=True)
class UriTemplate:
    """Literal texts, and the variables between them."""

    texts: tuple[str, ...]
    blanks: tuple[bool, ...]
    """Whether the expansion of each variable may contain a slash. Variable i stands before text i + 1."""

    @property
    def fixed(self) -> int:
        """The length of the literal text: of two templates that match, the one with more is more specific."""
        return sum(map(len, self.texts))

    def fits(self, uri: str, known: Places | None = None) -> bool:
        """Whether some values of the variables expand to this URI. `known` caches masks across templates.

        All reachable positions are advanced at once, as the bits of one integer, so there is no backtracking:
        a template is untrusted input and must not be able to make this slow.
        """
        if len(uri) > LONGEST or not (uri.startswith(self.texts[0]) and uri.endswith(self.texts[-1])):
            return False
        known = {} if known is None else known
        end = 1 << len(uri)
        smooth = (end - 1) & ~_places("/", uri, known)
        reached = 1 << len(self.texts[0])
        for text, whole in zip(self.texts[1:], self.blanks, strict=True):
            reached = -(reached & -reached) & (2 * end - 1) if whole else _run(reached, smooth)
            reached = (reached & _places(text, uri, known)) << len(text)
            if not reached:
                return False
        return bool(reached & end)


def read_template(text: str) -> UriTemplate | None:
    """Parse a template; None where it is malformed, too long, or has too many variables."""
    parts = _BLANK.split(text)
    texts, blanks = parts[::2], parts[1::2]
    if len(blanks) > MOST_BLANKS or len(text) > LONGEST or any("{" in each or "}" in each for each in texts):
        return None
    return UriTemplate(tuple(texts), tuple(blank[:1] in _WHOLE for blank in blanks))


def _run(reached: int, smooth: int) -> int:
    """Extend each position over the following free bits: the carry of an addition runs through them."""
    return (((reached & smooth) + smooth) ^ smooth) | reached


def _places(text: str, uri: str, known: Places) -> int:
    found = known.get(text)
    if found is None:
        found = known[text] = _found(text, uri, known) if text else (2 << len(uri)) - 1
    return found


def _found(text: str, uri: str, known: Places) -> int:
    """Return the mask of a text; one with many occurrences is combined from the masks of its characters."""
    found, at, least = 0, uri.find(text), len(text) if len(text) > 1 else len(uri)
    while at >= 0 and least:
        found |= 1 << at
        at, least = uri.find(text, at + 1), least - 1
    if at < 0:
        return found
    found = -1
    for place, letter in enumerate(text):
        found &= _places(letter, uri, known) >> place
    return found
