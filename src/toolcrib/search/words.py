"""Tokenizer and stemmer: normalizes case, accents and English suffixes."""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from unicodedata import category, normalize

_PLAIN = re.compile(r"[A-Z]{2,}s(?![a-z])|[A-Z]?[a-z0-9]+|[A-Z0-9]+(?![a-z])")
"""Tokens of ASCII text: `readFile`, `read_file` and `READ-File` are two, `IDs` and `mp3` one."""
_STARTS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_WORDS = re.compile(r"[^\W_]+")
_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]+")
"""Scripts without spaces between words: Thai, Lao, Burmese, Khmer, kana, Han."""

_SLACK = 64
_OFTEN = (
    "a an and any are as at be by can could do does for from has have how i if in into is it its me my"
    " not of on or our please so some such that the their them then there these this those to us want was"
    " we what when where which who will with would you your"
)
STOPS = frozenset(_OFTEN.split())
"""English stop words."""


def words(text: str) -> Sequence[str]:
    """Return the tokens of a text, case-folded but not stemmed."""
    if text.isascii():
        return [word.lower() for word in _PLAIN.findall(text)]
    found = _WORDS.findall(_folded(_STARTS.sub(" ", text)))
    return [part for word in found for part in ((word,) if word.isascii() else _parted(word))]


@lru_cache(maxsize=50_000)
def stem(word: str) -> str:
    """Strip English suffixes, so that `searches` and `searching` become `search`."""
    if len(word) < 4 or not word.isascii() or not word.isalpha():
        return word
    word = _singular(word)
    for ending in ("ing", "ed"):
        left = word.removesuffix(ending)
        if left != word and len(left) > 2 and _has_vowel(left) and not word.endswith("eed"):
            word = _undoubled(left)
            break
    return word[:-1] if len(word) > 3 and word.endswith("e") else word


@lru_cache(maxsize=50_000)
def telling(word: str) -> str:
    """Return the stem of a word; empty for a stop word."""
    return "" if word in STOPS else stem(word)


def _folded(text: str) -> str:
    """Fold case and strip combining marks, vowel signs included: index and query are treated alike."""
    # Some characters decompose to whole phrases. Korean syllables, the longest ordinary case, take three.
    apart = normalize("NFKD", text.casefold())[: 4 * len(text) + _SLACK]
    return normalize("NFC", "".join(each for each in apart if category(each)[0] != "M")).casefold()


def _parted(word: str) -> Iterator[str]:
    """Split runs of unspaced scripts into character bigrams, as their word boundaries are unknown."""
    place = 0
    for run in _UNSPACED.finditer(word):
        if run.start() > place:
            yield word[place : run.start()]
        place, text = run.end(), run.group()
        yield from (text[at : at + 2] for at in range(len(text) - 1)) if len(text) > 1 else (text,)
    if place < len(word):
        yield word[place:]


def _singular(word: str) -> str:
    if word.endswith("ies") and len(word) > 4:
        return f"{word[:-3]}y"
    if word.endswith(("sses", "ches", "shes", "xes", "zes")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith(("ss", "us", "is")) else word


def _undoubled(word: str) -> str:
    double = len(word) > 3 and word[-1] == word[-2] and word[-1] not in "lsz"
    return word[:-1] if double else word


def _has_vowel(word: str) -> bool:
    return any(letter in "aeiouy" for letter in word)
