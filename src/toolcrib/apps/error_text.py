"""Extracts an app's error message from either response format, as one bounded line."""

import re
from collections.abc import Mapping
from typing import Any, cast

from toolcrib.model import Json, JsonObject

LONGEST_MESSAGE = 2_000
"""Characters of an app's own text in an error or in speech."""

_LONGEST_CODE = 100
_BLANKS = re.compile(r"[\s\x00-\x1f\x7f-\x9f]+")
_PAGE = re.compile(r"<(?:!doctype|html|head|body|pre)\b", re.IGNORECASE)


def complaint(said: JsonObject) -> tuple[str, str | None]:
    """Return the error message and the app's own error code; empty and None if there is none."""
    fault = part(said, "error")
    found = words(fault.get("message")) or words(said.get("error")) or words(said.get("message"))
    return found, words(fault.get("code"))[:_LONGEST_CODE] or None


def part(said: JsonObject, key: str) -> Mapping[str, Any]:
    """Return an object member of a response; empty if it is missing or not an object."""
    value = said.get(key)
    return cast("JsonObject", value) if isinstance(value, Mapping) else {}


def words(value: Json) -> str:
    """Return a string as one bounded line; empty if it is not a string, or an HTML page."""
    if not isinstance(value, str) or _PAGE.search(value):
        return ""
    text = _BLANKS.sub(" ", value[: 2 * LONGEST_MESSAGE]).strip()
    return text if len(text) <= LONGEST_MESSAGE else f"{text[: LONGEST_MESSAGE - 1]}…"
