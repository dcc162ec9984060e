"""What follows what: counted by callers, bounded, and forgotten where it is old."""

import pytest

from toolcrib.errors import problem
from toolcrib.model import Origin
from toolcrib.observe import CallEntry, Sequences
from toolcrib.testing import a_caller, a_tool


def _entry(
    name: str, who: str = "key:a", at: float = 0.0, *, session: str = "", failed: bool = False
) -> CallEntry:
    return CallEntry(
        id="1",
        tool=a_tool(name),
        caller=a_caller(id=who),
        origin=Origin(session_id=session or None),
        problem=problem("TIMEOUT", "…") if failed else None,
        cached=False,
        seconds=0.1,
        at=at,
    )


@pytest.mark.requirement("E9")
def test_the_tool_called_next_follows() -> None:
    seen = Sequences()
    seen.take([_entry("a:one"), _entry("a:two", at=1), _entry("a:one", at=2), _entry("a:three", at=3)])
    assert seen.followers("a:one") == (("a:three", 0.5), ("a:two", 0.5))
    assert seen.followers("a:two") == (("a:one", 1.0),)
    assert seen.followers("a:never") == ()


@pytest.mark.requirement("E9")
def test_a_caller_has_one_vote_however_often_it_calls() -> None:
    seen = Sequences()
    for number in range(1000):
        seen.take([_entry("a:one", "key:loud", number), _entry("a:bad", "key:loud", number)])
    for who in ("key:b", "key:c", "key:d"):
        seen.take([_entry("a:one", who), _entry("a:good", who)])
    assert seen.followers("a:one")[0] == ("a:good", 0.8)


def test_failures_long_pauses_other_sessions_and_repeats_do_not_follow() -> None:
    seen = Sequences()
    seen.take([_entry("a:one"), _entry("a:two", failed=True), _entry("a:late", at=601)])
    seen.take([_entry("b:one", session="x"), _entry("b:two", session="y")])
    seen.take([_entry("c:one", "key:c"), _entry("c:one", "key:c")])
    assert [seen.followers(name) for name in ("a:one", "b:one", "c:one")] == [(), (), ()]


def test_what_is_kept_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolcrib.observe.sequences.MOST_TOOLS", 3)
    monkeypatch.setattr("toolcrib.observe.sequences.MOST_CALLERS", 3)
    seen = Sequences()
    for number in range(5):
        seen.take([_entry(f"a:{number}", f"key:{number}"), _entry("a:next", f"key:{number}")])
    assert [bool(seen.followers(f"a:{number}")) for number in range(5)] == [False, False, True, True, True]
    seen.take([_entry("a:late", "key:0"), _entry("a:late", "key:4")])
    assert seen.followers("a:next") == (("a:late", 1.0),), "of two callers one is remembered"


def test_the_latest_callers_are_heard() -> None:
    seen = Sequences()
    for number in range(65):
        seen.take([_entry("b:one", f"key:{number}"), _entry("b:new" if number else "b:old", f"key:{number}")])
    assert seen.followers("b:one") == (("b:new", 1.0),)
