"""Strength checks of admin keys: length, entropy, repetition, sequences and well-known words."""

from collections.abc import Container, Iterator, Sequence
from itertools import groupby, pairwise

from toolcrib.config.errors import ConfigError, ConfigFault

SHORTEST_ADMIN_KEY = 32
"""Minimum length of a configured admin key if the gateway is reachable by others, directly or by proxy."""
SHORTEST_ANYWHERE = 16
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
_LINES = (
    "abcdefghijklmnopqrstuvwxyz",
    "01234567890",
    *("qwertyuiop", "asdfghjkl", "zxcvbnm", "qwertzuiop", "yxcvbnm", "azertyuiop", "qsdfghjklm", "wxcvbn"),
    *("1qaz", "2wsx", "3edc", "4rfv", "5tgb", "6yhn", "7ujm", "8ik", "9ol"),
)
"""The alphabet, the digits, and the rows and columns of keyboard layouts."""
Pair = tuple[str, str]
_AHEAD: frozenset[Pair] = frozenset(pair for line in _LINES for pair in pairwise(line))
_BACK: frozenset[Pair] = frozenset((second, first) for first, second in _AHEAD)
_MAX_FILLED = 8
"""A key that contains well-known words is rejected if at most this many other characters are left."""
FILE = "admin.key"
ADVICE = "make one with `openssl rand -hex 32`, or leave it out and one is made"


def weakness(key: str) -> str | None:
    """Return why a key is too weak for any bind address; None if it is not."""
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
    """Return a message if a key, or the period that it repeats, is shorter than `shortest`; else None."""
    if len(key) < shortest:
        return f"is too short, {shortest} characters are needed"
    period = _period_below(shortest, key.lower())
    if period is None:
        return None
    return f"repeats {period} characters, {shortest} characters without repetition are needed"


def check_admin_key(key: str, *, given: bool) -> None:
    """Raise ConfigError for a weak admin key; a generated one (from its file) needs the full length."""
    reason = weakness(key)
    if reason is None and not given:
        reason = too_short(key, SHORTEST_ADMIN_KEY)
    if reason is not None:
        message = f"{reason}; {ADVICE}"
        raise ConfigError(
            [ConfigFault(message=message, where=("auth", "admin_key"), file="" if given else FILE)]
        )


def _period_below(shortest: int, key: str) -> int | None:
    """Return the period of a key if it is shorter than `shortest`; else None."""
    sizes = range(1, min(shortest, len(key) - MIN_REPEATED + 1))
    return next((size for size in sizes if key[size:] == key[:-size]), None)


def _share_in_runs(key: str) -> float:
    """Return the fraction of adjacent pairs that are part of a run of equal or consecutive characters."""
    pairs = list(pairwise(key))
    equal = frozenset((each, each) for each in key)
    in_runs = {place for kind in (equal, _AHEAD, _BACK) for place in _long_runs(pairs, kind)}
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
    return bool(known) and len(left) <= _MAX_FILLED
