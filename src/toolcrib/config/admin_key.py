"""Which admin keys are too easily guessed."""

from collections.abc import Container, Iterator, Sequence
from itertools import groupby, pairwise

from toolcrib.config.errors import ConfigError, ConfigFault

SHORTEST_ADMIN_KEY = 32
"""Characters a given admin key needs where others can reach the gateway, directly or through a proxy."""
SHORTEST_ANYWHERE = 16
"""Characters it needs on loopback too: it also wraps the key of the secrets in the store."""
MIN_DISTINCT_SHARE = 4
"""One in so many characters must be different from all others, up to `MAX_DISTINCT_NEEDED`."""
MAX_DISTINCT_NEEDED = 8
MIN_REPEATED = 8
"""A key repeats where this many of its characters are equal to those one period before. A random key has
almost always fewer, and the first and last character of one in 16 hexadecimal keys are equal."""
MIN_RUN = 4
"""Characters that follow each other in one of `_LINES`, or are equal, are a run from this many on."""
MAX_SHARE_IN_RUNS = 0.5
_WORDS = ("changeme", "password", "passwort", "letmein", "qwerty", "default", "example", "placeholder")
_WORDS_ALONE = ("admin", "secret", "test", "toolcrib", "key", "token", "root", "12345678", "abcdefgh")
_LINES = (
    "abcdefghijklmnopqrstuvwxyz",
    "01234567890",
    *("qwertyuiop", "asdfghjkl", "zxcvbnm", "qwertzuiop", "yxcvbnm", "azertyuiop", "qsdfghjklm", "wxcvbn"),
    *("1qaz", "2wsx", "3edc", "4rfv", "5tgb", "6yhn", "7ujm", "8ik", "9ol"),
)
"""The alphabet, the digits, and the rows and columns of keyboards."""
Pair = tuple[str, str]
_AHEAD: frozenset[Pair] = frozenset(pair for line in _LINES for pair in pairwise(line))
_BACK: frozenset[Pair] = frozenset((second, first) for first, second in _AHEAD)
_MAX_FILLED = 8
"""So many characters beside well-known words make no key of them."""
FILE = "admin.key"
ADVICE = "make one with `openssl rand -hex 32`, or leave it out and one is made"


def weakness(key: str) -> str | None:
    """Say why a key is too easily guessed, wherever the gateway listens; None where it is not."""
    if not key.strip() or any(each.isspace() or not each.isprintable() for each in key):
        return "holds blanks or characters that cannot be printed"
    needed = min(-(-len(key) // MIN_DISTINCT_SHARE), MAX_DISTINCT_NEEDED)
    if len(set(key)) < needed:
        return f"has too few different characters, {needed} are needed"
    if _is_a_word(key):
        return "is a well-known word"
    if _share_in_runs(key.lower()) > MAX_SHARE_IN_RUNS:
        return "is mostly a sequence of the alphabet, of digits, of neighbouring keys or of one character"
    return too_short(key, SHORTEST_ANYWHERE)


def too_short(key: str, shortest: int) -> str | None:
    """Say that a key, or the part of it that is repeated, has fewer characters than this; else None."""
    if len(key) < shortest:
        return f"is too short, {shortest} characters are needed"
    period = _period_below(shortest, key.lower())
    if period is None:
        return None
    return f"repeats {period} characters, {shortest} characters without repetition are needed"


def check_admin_key(key: str, *, given: bool) -> None:
    """Refuse a weak key in force; one that was not given is from our file, and as long as we make them."""
    reason = weakness(key)
    if reason is None and not given:
        reason = too_short(key, SHORTEST_ADMIN_KEY)
    if reason is not None:
        message = f"{reason}; {ADVICE}"
        raise ConfigError(
            [ConfigFault(message=message, where=("auth", "admin_key"), file="" if given else FILE)]
        )


def _period_below(shortest: int, key: str) -> int | None:
    """Return after how many characters a key repeats itself, where these are fewer than the shortest key."""
    sizes = range(1, min(shortest, len(key) - MIN_REPEATED + 1))
    return next((size for size in sizes if key[size:] == key[:-size]), None)


def _share_in_runs(key: str) -> float:
    """Return the share of neighbouring pairs that are part of a run of equal or consecutive characters."""
    pairs = list(pairwise(key))
    equal = frozenset((each, each) for each in key)
    in_runs = {place for kind in (equal, _AHEAD, _BACK) for place in _long_runs(pairs, kind)}
    return len(in_runs) / max(len(pairs), 1)


def _long_runs(pairs: Sequence[Pair], kind: Container[Pair]) -> Iterator[int]:
    """Yield the indices of pairs of one kind that follow each other often enough."""
    for is_run, indices in groupby(range(len(pairs)), lambda index: pairs[index] in kind):
        run = list(indices)
        if is_run and len(run) >= MIN_RUN - 1:
            yield from run


def _is_a_word(key: str) -> bool:
    """Whether nothing much is left of a key without the words that everybody tries first."""
    left = key.lower().translate(str.maketrans("", "", "-_.!"))
    known = [word for word in (*_WORDS, *_WORDS_ALONE) if word in left]
    for word in known:
        left = left.replace(word, "")
    return bool(known) and len(left) <= _MAX_FILLED
