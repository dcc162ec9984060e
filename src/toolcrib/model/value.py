"""JSON types, frozen values, and values that are secrets because of the name of their field."""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Self, cast

# --- Type aliases for JSON values ---

Json = Any
"""Any JSON value: a recursive union would not help the type checker, as every reader checks types."""

JsonObject = Mapping[str, Any]


# --- Base class of values created on every call: fast construction and copying ---


class Value:
    """Base of frozen dataclasses without slots: an instance is created by setting its `__dict__`."""

    @classmethod
    def of(cls, fields: dict[str, Any]) -> Self:
        """Create an instance from all of its fields, at a third of the cost of the constructor."""
        made = object.__new__(cls)
        _fill(made, fields)
        return made

    def replace(self, **changes: Any) -> Self:
        """Return a copy with some fields changed, at a tenth of the cost of `dataclasses.replace`."""
        made = object.__new__(self.__class__)
        _fill(made, self.__dict__ | changes)
        return made


_fill = cast("Callable[[Value, dict[str, Any]], None]", Value.__dict__["__dict__"].__set__)
"""Writes `__dict__` directly, bypassing `frozen=True`; the object has not escaped yet."""


# --- Names of fields and arguments that mark their value as a secret ---

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
