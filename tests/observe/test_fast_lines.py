"""The fast log line of a call equals the plain one."""

import json
from types import NoneType
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.observe.samples import a_problem, an_entry
from toolcrib.model import Origin
from toolcrib.observe import MASK, CallEntry, Redactor
from toolcrib.observe.call_entry import CallStart
from toolcrib.observe.lines import FastLines, LoggedArguments, call_event, json_line, start_event
from toolcrib.testing import a_call, a_caller

sizes = st.integers(0, 9_000_000)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
ids = st.uuids().map(str) | st.text(max_size=20)


@st.composite
def entries(draw: st.DrawFn) -> CallEntry:
    trace, who, agent = draw(ids), draw(st.text(max_size=8)), draw(st.text(max_size=8))
    code = draw(st.none() | st.sampled_from(["TIMEOUT", "TOOL_FAILED"]))
    return an_entry(
        a_call(caller=a_caller(id=who), origin=Origin(trace_id=trace, correlation_id=trace, agent_id=agent)),
        problem=None if code is None else a_problem(code),
        cached=draw(st.booleans()),
        returned=(
            draw(st.sampled_from([dict, list, str, int, NoneType])),
            draw(st.integers(0, 9)),
            draw(sizes),
        ),
        seconds=draw(st.floats(0, 1000)),
        at=float(draw(st.integers(0, 4_000_000_000))),
    )


@given(st.lists(entries(), min_size=1, max_size=5))
def test_fast_and_plain_lines_are_equal(some: list[CallEntry]) -> None:
    quick = FastLines(Redactor())
    for entry in some:
        told = json.loads(quick.line(entry))
        plain = json.loads(json_line(call_event(entry, Redactor())))
        assert told.keys() == plain.keys()
        assert told.pop("ts").rstrip("Z").partition(".")[0] == plain.pop("ts").rstrip("Z").partition(".")[0]
        assert told == plain


@given(st.lists(entries(), min_size=1, max_size=3), st.dictionaries(st.text(max_size=8), JSON, max_size=3))
def test_fast_and_plain_start_lines_are_equal(some: list[CallEntry], asked: dict[str, Any]) -> None:
    redactor = Redactor(["hunter2-and-more"])
    arguments = LoggedArguments(redactor)
    quick = FastLines(redactor, arguments)
    for entry in some:
        start = CallStart(entry.id, entry.tool, entry.caller, entry.origin, asked, entry.at)
        told = json.loads(quick.start(start))
        plain = json.loads(
            json_line(
                start_event(start, redactor) | {"arguments": redactor.clean(asked, max_characters=2_048)}
            )
        )
        assert told.pop("ts").rstrip("Z").partition(".")[0] == plain.pop("ts").rstrip("Z").partition(".")[0]
        assert told == plain


def test_later_learned_secret_is_masked() -> None:
    redactor = Redactor()
    quick = FastLines(redactor)
    entry = an_entry(a_call(caller=a_caller(id="key:hunter2-and-more")))
    assert b"hunter2-and-more" in quick.line(entry)
    redactor.learn("hunter2-and-more")
    assert b"hunter2-and-more" not in quick.line(entry)
    assert MASK.encode() in quick.line(entry)
