"""Results that are one page of more: what they say about it, and the call for the next page."""

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple, cast

from toolcrib.model import Json, JsonObject, Tool
from toolcrib.model.hints import json_name
from toolcrib.names import snake_case

_TOTALS = ("total", "total_count", "total_results", "total_items")
_MORE = ("has_more", "has_next", "has_next_page", "more")

# --- Which part of all items a result has ---


def _spellings(*names: str) -> tuple[str, ...]:
    """Return names in snake case and in camel case."""
    return tuple(dict.fromkeys(spelling for name in names for spelling in (name, json_name(name))))


_TOTAL_SPELLINGS, _MORE_SPELLINGS = _spellings(*_TOTALS), _spellings(*_MORE)
_CURSOR_SPELLINGS = _spellings("next_cursor", "next_page_token", "next_token", "next_page", "next_offset")
_TRUNCATED_SPELLINGS = _spellings("truncated", "is_truncated")
_FIELDS = frozenset((*_TOTAL_SPELLINGS, *_CURSOR_SPELLINGS, *_MORE_SPELLINGS, *_TRUNCATED_SPELLINGS))
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
        leads = "says that there is more" if self.more in _MORE_SPELLINGS else "leads to the rest"
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
    total = next((fields[each] for each in _TOTAL_SPELLINGS if type(fields.get(each)) is int), None)
    more = _first(fields, _CURSOR_SPELLINGS, str, int) or _first(fields, _MORE_SPELLINGS, bool)
    truncated = bool(_first(fields, _TRUNCATED_SPELLINGS, bool))
    if total is None or shown is None or shown >= total:
        total = shown = None
        if not more and not truncated:
            return None
    label = name if _FIELD_NAME.fullmatch(name) else "items"
    return ResultPage(label, shown, total, more, truncated)


def _first(fields: JsonObject, names: Iterable[str], *kinds: type) -> str:
    """Return the first of these fields that has a value of these kinds that is not empty or false."""
    return next((each for each in names if type(fields.get(each)) in kinds and fields[each]), "")


# --- The call for the next page, from a cursor, an offset, a page number or a total ---

_CURSOR_FIELDS = (
    *("next_cursor", "next_page_token", "next_token", "continuation_token", "end_cursor"),
    *("cursor", "page_token"),
)
"""The last two name the present page in some results; the cursor that was given is never suggested again."""
_CURSOR_PARAMETERS = (
    *("cursor", "page_token", "next_cursor", "next_page_token", "next_token"),
    *("continuation_token", "after", "start_cursor"),
)
_OFFSETS = ("offset", "skip")
_PAGES = ("page", "page_number")
_PAGE_COUNTS = ("total_pages", "page_count", "num_pages", "last_page", "pages")
_PRESENT_PAGE = ("page", "page_number", "current_page")
_ENVELOPES = ("pagination", "page_info", "paging", "meta")
_MAX_CURSOR_CHARACTERS = 1_024
_MAX_NAME_CHARACTERS = 64
"""A longer key is data, not the name of a field."""


class Paging(NamedTuple):
    """The parameters of a tool that select a page; empty names where it has none."""

    cursor: str = ""
    offset: str = ""
    page: str = ""

    def without_position(self, arguments: JsonObject) -> dict[str, Any]:
        """Return the arguments without those that select the present page; they exclude each other."""
        return {
            name: value
            for name, value in arguments.items()
            if name not in (self.cursor, self.offset, self.page)
        }


class NextPage(NamedTuple):
    """The arguments for the next page, and the field of the result that they come from."""

    arguments: JsonObject
    source: str


def paging_of(tool: Tool) -> Paging | None:
    """Return the parameters of a tool that select a page; None where it has no pages."""
    properties: Any = tool.input_schema.get("properties")
    if not isinstance(properties, Mapping):
        return None
    names = {_plain(name): name for name in cast("JsonObject", properties)}
    paging = Paging(*(_named(names, each) for each in (_CURSOR_PARAMETERS, _OFFSETS, _PAGES)))
    return paging if paging.cursor or paging.offset or paging.page else None


def next_page(paging: Paging, given: JsonObject, data: Json) -> NextPage | None:
    """Return the call for the page after a result; None where there is none, or it is not known."""
    if type(data) is not dict:
        return None
    result = cast("dict[Any, Json]", data)
    facts = _facts(result.items())
    for envelope in _ENVELOPES:
        inner = facts.get(envelope, _NO_FACT)[1]
        if type(inner) is dict:
            facts |= _facts(cast("dict[Any, Json]", inner).items())
    more = _flag(facts)
    if more is False:
        return None
    found = _by_cursor(paging, given, facts) if paging.cursor else None
    if found is None and paging.cursor and (paging.cursor in given or _has_cursor(facts)):
        # Cursors lead through these pages, and this is the last: its offset would not count from the first.
        return None
    if found is None and paging.offset:
        found = _by_offset(paging, given, facts, _shown(result))
    if found is None and paging.page:
        found = _by_page(paging, given, facts)
    return found


_Facts = dict[str, tuple[str, Any]]
"""The fields of a result by their names in snake case, with their own names."""
_NO_FACT = ("", None)


def _facts(members: Iterable[tuple[Any, Json]]) -> _Facts:
    return {
        _plain(key): (key, value)
        for key, value in members
        if type(key) is str and len(key) <= _MAX_NAME_CHARACTERS
    }


def _by_cursor(paging: Paging, given: JsonObject, facts: _Facts) -> NextPage | None:
    for plain in _CURSOR_FIELDS:
        name, cursor = facts.get(plain, _NO_FACT)
        is_cursor = isinstance(cursor, str) and 0 < len(cursor) <= _MAX_CURSOR_CHARACTERS
        if is_cursor and cursor != given.get(paging.cursor):
            return NextPage({**paging.without_position(given), paging.cursor: cursor}, name)
    return None


def _has_cursor(facts: _Facts) -> bool:
    return any(each in facts for each in _CURSOR_FIELDS)


def _by_offset(paging: Paging, given: JsonObject, facts: _Facts, shown: int | None) -> NextPage | None:
    offset = _number(given.get(paging.offset))
    if offset is None:
        offset = _first_number(facts, _OFFSETS)[1] or 0
    source, following = _first_number(facts, ("next_offset",))
    if following is None and shown:
        following = offset + shown
        total_name, total = _first_number(facts, _TOTALS)
        source = _more_field(facts) or (total_name if total is not None and following < total else "")
    if not source or following is None or following <= offset:
        return None
    return NextPage({**paging.without_position(given), paging.offset: following}, source)


def _by_page(paging: Paging, given: JsonObject, facts: _Facts) -> NextPage | None:
    page = _number(given.get(paging.page))
    if page is None:
        page = _first_number(facts, _PRESENT_PAGE)[1]
    name, count = _first_number(facts, _PAGE_COUNTS)
    source = _more_field(facts) or (name if page is not None and count is not None and page < count else "")
    if not source or page is None:
        return None
    return NextPage({**paging.without_position(given), paging.page: page + 1}, source)


def _flag(facts: _Facts) -> bool | None:
    """Return whether the result says that there is more; None where it does not say."""
    for each in _MORE:
        value = facts.get(each, _NO_FACT)[1]
        if isinstance(value, bool):
            return value
    return None


def _more_field(facts: _Facts) -> str:
    """Return the field that says that there is more."""
    return next((facts[each][0] for each in _MORE if facts.get(each, _NO_FACT)[1] is True), "")


def _shown(result: JsonObject) -> int | None:
    """Return the number of items on the page; None where the result has no list, or several."""
    lists = [cast("list[Any]", value) for value in result.values() if isinstance(value, list)]
    return len(lists[0]) if len(lists) == 1 else None


def _first_number(facts: _Facts, names: Iterable[str]) -> tuple[str, int | None]:
    """Return the first of these fields that has a whole number, and the number."""
    for each in names:
        name, value = facts.get(each, _NO_FACT)
        number = _number(value)
        if number is not None:
            return name, number
    return _NO_FACT


def _number(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _named(names: Mapping[str, str], wanted: Iterable[str]) -> str:
    return next((names[plain] for plain in wanted if plain in names), "")


@lru_cache(maxsize=4_096)
def _plain(name: str) -> str:
    return snake_case(name)
