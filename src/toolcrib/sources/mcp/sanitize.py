"""Strips invisible Unicode characters from a server's text: only a model would read them."""

import re

# Controls except tab and line ends, bidi, zero-width, fillers, variation selectors (except the emoji one),
# lone surrogates, and tag characters, which can hide a whole second text.
_UNSEEN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ud800-\udfff\ufe00-\ufe0e\ufeff\uffa0\ufff9-\ufffb"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)


def visible(text: str) -> str:
    """Return the text without invisible characters; the same object if there are none."""
    return _UNSEEN.sub("", text) if _UNSEEN.search(text) else text
