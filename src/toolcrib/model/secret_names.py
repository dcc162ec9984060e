"""Names of fields and arguments that mark their value as a secret."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, cast

NAMES_OF_SECRETS = (
    r"(?:pass(?:word|wd|phrase)s?|secrets?|credentials?|authorization|(?:set-)?cookies?"
    r"|(?:api|admin|access|private|secret|signing|encryption)[_-]?keys?|token(?:s(?!\\*[\"']?\s{0,8}[:=]\s{0,8}\d))?)"
)
"""A regular expression, matched case-insensitively."""

_SECRET_NAME = re.compile(NAMES_OF_SECRETS, re.IGNORECASE)


def is_secret_name(name: str) -> bool:
    """Whether a name marks its value as a secret."""
    return _SECRET_NAME.search(name) is not None


SECRETS_FIELD = "secret_arguments"
"""The field of a log record that holds `SecretArguments`, which its message and stack may contain."""


class SecretArguments:
    """The secrets among a call's arguments; its `repr` never contains them."""

    __slots__ = ("values",)

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        self.values = frozenset(_secrets_in(arguments, within=False))

    def __repr__(self) -> str:
        return "[redacted]"


def _secrets_in(value: Any, *, within: bool) -> Iterator[str]:
    if isinstance(value, str):
        if within:
            yield value
    elif isinstance(value, Mapping):
        for name, inner in cast("Mapping[Any, Any]", value).items():
            yield from _secrets_in(inner, within=within or is_secret_name(str(name)))
    elif isinstance(value, list | tuple):
        for inner in cast("list[Any]", value):
            yield from _secrets_in(inner, within=within)
