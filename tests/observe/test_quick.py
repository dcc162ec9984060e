"""The quick line of a call says what the plain one says, whatever the call."""

import json

from hypothesis import given
from hypothesis import strategies as st

from tests.observe.samples import a_problem, an_entry
from toolcrib.model import Origin
from toolcrib.observe import MASK, Entry, Redactor
from toolcrib.observe.lines import call_event, json_line
from toolcrib.observe.quick import QuickLines
from toolcrib.testing import a_call, a_caller

ids = st.uuids().map(str) | st.text(max_size=20)


@st.composite
def entries(draw: st.DrawFn) -> Entry:
    trace, who, agent = draw(ids), draw(st.text(max_size=8)), draw(st.text(max_size=8))
    code = draw(st.none() | st.sampled_from(["TIMEOUT", "TOOL_FAILED"]))
    return an_entry(
        a_call(caller=a_caller(id=who), origin=Origin(trace_id=trace, correlation_id=trace, agent_id=agent)),
        problem=None if code is None else a_problem(code),
        cached=draw(st.booleans()),
        seconds=draw(st.floats(0, 1000)),
        at=float(draw(st.integers(0, 4_000_000_000))),
    )


@given(st.lists(entries(), min_size=1, max_size=5))
def test_both_lines_say_the_same(some: list[Entry]) -> None:
    quick = QuickLines(Redactor())
    for entry in some:
        told = json.loads(quick.line(entry))
        plain = json.loads(json_line(call_event(entry, Redactor())))
        assert told.keys() == plain.keys()
        assert told.pop("ts").rstrip("Z").partition(".")[0] == plain.pop("ts").rstrip("Z").partition(".")[0]
        assert told == plain


def test_a_secret_learned_later_is_hidden_from_then_on() -> None:
    redactor = Redactor()
    quick = QuickLines(redactor)
    entry = an_entry(a_call(caller=a_caller(id="key:hunter2-and-more")))
    assert b"hunter2-and-more" in quick.line(entry)
    redactor.learn("hunter2-and-more")
    assert b"hunter2-and-more" not in quick.line(entry)
    assert MASK.encode() in quick.line(entry)
