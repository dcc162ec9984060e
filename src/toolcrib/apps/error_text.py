"""An app's own words for what went wrong, in either shape of answer, as one line that fits."""

import re
from collections.abc import Mapping
from typing import Any, cast

from toolcrib.model import Json, JsonObject

LONGEST_MESSAGE = 2_000
"""The most characters of an app's own words in an error or a sentence to speak."""

_LONGEST_CODE = 100
_BLANKS = re.compile(r"[\s\x00-\x1f\x7f-\x9f]+")
_PAGE = re.compile(r"<(?:!doctype|html|head|body|pre)\b", re.IGNORECASE)


def complaint(said: JsonObject) -> tuple[str, str | None]:
    """Return the words, and the app's own code; empty and None where it has none."""
    fault = part(said, "error")
    found = words(fault.get("message")) or words(said.get("error")) or words(said.get("message"))
    return found, words(fault.get("code"))[:_LONGEST_CODE] or None


def part(said: JsonObject, key: str) -> Mapping[str, Any]:
    """Return an object within an answer; one that is none is as good as not there."""
    value = said.get(key)
    return cast("JsonObject", value) if isinstance(value, Mapping) else {}


def words(value: Json) -> str:
    """Return a text as one line that fits; nothing where it is no text, or a page."""
    if not isinstance(value, str) or _PAGE.search(value):
        return ""
    text = _BLANKS.sub(" ", value[: 2 * LONGEST_MESSAGE]).strip()
    return text if len(text) <= LONGEST_MESSAGE else f"{text[: LONGEST_MESSAGE - 1]}…"
