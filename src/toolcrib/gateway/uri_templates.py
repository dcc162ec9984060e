"""Whether a URI may have come from a URI template: found out in one pass, whatever the template is like."""

import re
from collections.abc import MutableMapping
from dataclasses import dataclass

LONGEST = 2_048
"""A URI longer than this comes from no template."""
MOST_BLANKS = 16

_BLANK = re.compile(r"\{([^{}]*)\}")
_WHOLE = frozenset("+#/?&")
"""Operators whose values may hold a slash; those of the others may not."""

Places = MutableMapping[str, int]
"""Where in one URI a text begins, by text: the bit of each place is set."""


@dataclass(frozen=True, slots=True)
class UriTemplate:
    """Fixed texts, and the blanks between them."""

    texts: tuple[str, ...]
    blanks: tuple[bool, ...]
    """Whether each blank may hold a slash. It follows the text of the same number, before the next."""

    @property
    def fixed(self) -> int:
        """How much of it is fixed: of two that fit, the one with more says more."""
        return sum(map(len, self.texts))

    def fits(self, uri: str, known: Places | None = None) -> bool:
        """Whether some values in the blanks make this URI. `known` spares work over several templates.

        All places that can be reached are followed at once, as the bits of one number, so nothing is ever
        tried twice: a template from outside must not be able to make this slow.
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
    """Take a template apart; None where it is none, or one with too many blanks."""
    parts = _BLANK.split(text)
    texts, blanks = parts[::2], parts[1::2]
    if len(blanks) > MOST_BLANKS or len(text) > LONGEST or any("{" in each or "}" in each for each in texts):
        return None
    return UriTemplate(tuple(texts), tuple(blank[:1] in _WHOLE for blank in blanks))


def _run(reached: int, smooth: int) -> int:
    """Go on from each place as far as nothing is in the way: a carry runs through the bits that are free."""
    return (((reached & smooth) + smooth) ^ smooth) | reached


def _places(text: str, uri: str, known: Places) -> int:
    found = known.get(text)
    if found is None:
        found = known[text] = _found(text, uri, known) if text else (2 << len(uri)) - 1
    return found


def _found(text: str, uri: str, known: Places) -> int:
    """Find where a text begins; one that is found all over is put together from where its letters are."""
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
