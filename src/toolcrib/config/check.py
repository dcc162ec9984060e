"""Validates plain values into sections (pydantic): reports all faults at once, without quoting values."""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from functools import cache
from itertools import takewhile
from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from toolcrib.config.document_tree import holds, rewrite
from toolcrib.config.errors import Finding, Where
from toolcrib.config.sections import Sections
from toolcrib.config.settings import known

_LONGEST_GUESSED = 64
_MOST_GUESSES = 100

_SAID = {
    "missing": "is missing",
    "missing_keyword_only_argument": "is missing",
    "string_type": "must be text; put it in quotes",
    "string_too_short": "must not be empty",
    "dataclass_type": "must be a mapping of settings",
    "dict_type": "must be a mapping",
    "tuple_type": "must be a list",
    "too_short": "must not be empty",
    "frozen_set_type": "must be a list",
    "finite_number": "must be a finite number",
}
_SAID_BY_START = {
    "int_": "must be a whole number",
    "float_": "must be a number",
    "bool_": "must be true or false",
}
_SAID_WITH = {
    "literal_error": ("must be {}", "expected"),
    "greater_than_equal": ("must be {} or more", "ge"),
    "less_than_equal": ("must be {} or less", "le"),
    "value_error": ("{}", "error"),
}


def check(document: Mapping[str, Any]) -> tuple[Sections, list[Finding]]:
    """Validate a document; invalid settings are removed and the rest validated again, to find all faults."""
    findings: list[Finding] = []
    sound = document
    while sound:
        try:
            return _adapter().validate_python(sound), findings
        except ValidationError as error:
            found = _findings(error)
        findings = findings or found
        sound = _without(sound, (where for where, _message in found))
    return Sections(), findings


@cache
def _adapter() -> TypeAdapter[Sections]:
    return TypeAdapter(Sections)


def _findings(error: ValidationError) -> list[Finding]:
    guesses = iter(range(_MOST_GUESSES))
    found: list[Finding] = []
    for each in error.errors(include_url=False, include_input=False):
        where = each["loc"][:-1] if each["loc"][-1] == "[key]" else each["loc"]
        if each["type"] == "unexpected_keyword_argument":
            found.append((where, _unknown(where, guess=next(guesses, None) is not None)))
        else:
            found.append((where, _said(each)))
    return found


def _unknown(where: Where, *, guess: bool) -> str:
    names, wrong = known(where[:-1]), str(where[-1])
    near = (
        get_close_matches(wrong.lower(), names, n=1, cutoff=0.6)
        if guess and len(wrong) <= _LONGEST_GUESSED
        else []
    )
    if near:
        return f"is not a setting; did you mean {near[0]}?"
    return f"is not a setting; there are {', '.join(names)}"


def _said(error: ErrorDetails) -> str:
    """Return our own message for a pydantic error, since pydantic's may quote the value (a secret)."""
    kind = error["type"]
    if kind in _SAID_WITH:
        sentence, detail = _SAID_WITH[kind]
        return sentence.format(error.get("ctx", {})[detail])
    if kind in _SAID:
        return _SAID[kind]
    return next(
        (said for start, said in _SAID_BY_START.items() if kind.startswith(start)), "is not valid here"
    )


def _without(document: Mapping[str, Any], broken: Iterable[Where]) -> dict[str, Any]:
    """Copy a document without its invalid settings, or without the section that lacks a required one."""
    sound: dict[str, Any] = rewrite(document, lambda _where, text: text)
    for where in {_whole_setting(document, where) for where in broken}:
        *way, last = where
        inner: Any = sound
        for key in way:
            inner = inner.get(key, {})
        inner.pop(last, None)
    return sound


def _whole_setting(document: Mapping[str, Any], where: Where) -> Where:
    keys = tuple(takewhile(lambda part: isinstance(part, str), where))
    return keys if holds(document, keys) else keys[:-1]
