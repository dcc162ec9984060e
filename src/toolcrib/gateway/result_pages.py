"""Recognizes results that are one page of more, or that were truncated."""

import re
from collections.abc import Iterable
from typing import NamedTuple, cast

from toolcrib.model import Json, JsonObject
from toolcrib.model.hints import json_name


def _spellings(*names: str) -> tuple[str, ...]:
    """Return names in snake case and in camel case."""
    return tuple(dict.fromkeys(spelled for name in names for spelled in (name, json_name(name))))


_TOTALS = _spellings("total", "total_count", "total_results", "total_items")
_CURSORS = _spellings("next_cursor", "next_page_token", "next_token", "next_page", "next_offset")
_MORE = _spellings("has_more", "has_next", "has_next_page", "more")
_TRUNCATED = _spellings("truncated", "is_truncated")
_FIELDS = frozenset((*_TOTALS, *_CURSORS, *_MORE, *_TRUNCATED))
_MAX_FIELDS = 64
"""A result with more fields is data with keys of its own, not a page."""
_FIELD_NAME = re.compile(r"[A-Za-z]\w{0,39}")


class ResultPage(NamedTuple):
    """What a result says about itself: which part of all items it has, and which field leads to more."""

    items: str = "items"
    shown: int | None = None
    total: int | None = None
    more: str = ""
    """The field that says that there is more, such as a cursor."""
    truncated: bool = False

    def as_text(self) -> str:
        """Return it as a sentence."""
        if self.shown is not None and self.total is not None:
            text = f"{self.shown} of {self.total} {self.items} are here"
        else:
            text = "The result is truncated" if self.truncated else "There may be more results"
        leads = "says that there is more" if self.more in _MORE else "leads to the rest"
        more = f"; `{self.more}` {leads}" if self.more else ""
        return f"{text}{more}{', truncated' if self.truncated and self.total is not None else ''}."


def page_of(data: Json) -> ResultPage | None:
    """Return which part of all results this one is; None for a whole result, or if it does not say."""
    if type(data) is not dict:
        return None
    fields = cast("JsonObject", data)
    if len(fields) > _MAX_FIELDS or _FIELDS.isdisjoint(fields):
        return None
    lists = [(name, len(cast("list[Json]", each))) for name, each in fields.items() if type(each) is list]
    name, shown = lists[0] if len(lists) == 1 else ("items", None)
    total = next((fields[each] for each in _TOTALS if type(fields.get(each)) is int), None)
    more = _first(fields, _CURSORS, str, int) or _first(fields, _MORE, bool)
    truncated = bool(_first(fields, _TRUNCATED, bool))
    if total is None or shown is None or shown >= total:
        total = shown = None
        if not more and not truncated:
            return None
    label = name if _FIELD_NAME.fullmatch(name) else "items"
    return ResultPage(label, shown, total, more, truncated)


def _first(fields: JsonObject, names: Iterable[str], *kinds: type) -> str:
    """Return the first of these fields that has a value of these kinds that is not empty or false."""
    return next((each for each in names if type(fields.get(each)) in kinds and fields[each]), "")
