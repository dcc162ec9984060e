"""Which admin keys are too easily guessed."""

from toolcrib.config.errors import ConfigError, ConfigFault

SHORTEST_ADMIN_KEY = 32
"""Characters a given admin key needs where others can reach the gateway, directly or through a proxy."""
SHORTEST_ANYWHERE = 16
"""Characters it needs on loopback too: it also wraps the key of the secrets in the store."""
MIN_DISTINCT_SHARE = 4
"""One in so many characters must be different from all others, up to `MAX_DISTINCT_NEEDED`."""
MAX_DISTINCT_NEEDED = 8
MAX_REPEATED = 4
"""A text of so many characters or fewer that comes again and again is as weak as the text alone."""
_WORDS = ("changeme", "password", "passwort", "letmein", "qwerty", "default", "example", "placeholder")
_WORDS_ALONE = ("admin", "secret", "test", "toolcrib", "key", "token", "root", "12345678", "abcdefgh")
_MAX_FILLED = 8
"""So many characters beside well-known words make no key of them."""
FILE = "admin.key"
ADVICE = "make one with `openssl rand -hex 32`, or leave it out and one is made"


def weakness(key: str) -> str | None:
    """Say why a key is too easily guessed, wherever the gateway listens; None where it is not."""
    if not key.strip() or any(each.isspace() or not each.isprintable() for each in key):
        return "holds blanks or characters that cannot be printed"
    if _is_repeated(key):
        return "repeats the same characters over and over"
    needed = min(-(-len(key) // MIN_DISTINCT_SHARE), MAX_DISTINCT_NEEDED)
    if len(set(key)) < needed:
        return f"has too few different characters, {needed} are needed"
    if _is_a_word(key):
        return "is a well-known word"
    return too_short(key, SHORTEST_ANYWHERE)


def too_short(key: str, shortest: int) -> str | None:
    """Say that a key has fewer characters than this; None where it has not."""
    return f"is too short, {shortest} characters are needed" if len(key) < shortest else None


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


def _is_repeated(key: str) -> bool:
    """Whether a key is a few characters again and again."""
    return any(key == (key[:size] * len(key))[: len(key)] for size in range(1, _few(key) + 1))


def _few(key: str) -> int:
    return min(MAX_REPEATED, len(key) // 2)


def _is_a_word(key: str) -> bool:
    """Whether nothing much is left of a key without the words that everybody tries first."""
    left = key.lower().translate(str.maketrans("", "", "-_.!"))
    known = [word for word in (*_WORDS, *_WORDS_ALONE) if word in left]
    for word in known:
        left = left.replace(word, "")
    return bool(known) and len(left) <= _MAX_FILLED
