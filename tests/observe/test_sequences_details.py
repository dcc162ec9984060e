"""What follows what, at the edges: how long together, whose voice counts, what is forgotten."""

import pytest

from toolcrib.model import Origin
from toolcrib.observe import CallEntry, Sequences
from toolcrib.testing import a_caller, a_tool


def _entry(name: str, who: str, at: float) -> CallEntry:
    return CallEntry(
        id="1",
        tool=a_tool(name),
        caller=a_caller(id=who),
        origin=Origin(),
        problem=None,
        cached=False,
        seconds=0.1,
        at=at,
    )


def _go(seen: Sequences, who: str, *names: str, start: float = 10_000.0, apart: float = 1.0) -> None:
    seen.take([_entry(name, who, start + place * apart) for place, name in enumerate(names)])


@pytest.mark.parametrize("apart, followers", [(600.0, (("a:two", 1.0),)), (600.5, ())])
def test_ten_minutes_later_it_still_follows_and_after_that_it_begins(
    apart: float, followers: tuple[tuple[str, float], ...]
) -> None:
    seen = Sequences()
    _go(seen, "key:a", "a:one", "a:two", apart=apart)
    assert seen.followers("a:one") == followers


def test_what_was_told_is_counted_once_and_again_when_something_is_new() -> None:
    seen = Sequences()
    _go(seen, "key:a", "a:one", "a:two")
    told = seen.followers("a:one")
    assert seen.followers("a:one") is told
    _go(seen, "key:b", "a:one", "a:three")
    assert seen.followers("a:one") == (("a:three", 0.5), ("a:two", 0.5))


def test_a_tool_that_is_forgotten_has_no_followers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolcrib.observe.sequences.MOST_TOOLS", 2)
    seen = Sequences()
    _go(seen, "key:a", "a:one", "a:two")
    assert seen.followers("a:one") == (("a:two", 1.0),)
    _go(seen, "key:b", "b:one", "b:two")
    _go(seen, "key:c", "c:one", "c:two")
    assert seen.followers("a:one") == ()
    assert seen.followers("c:one") == (("c:two", 1.0),)


def test_of_one_caller_the_latest_eight_steps_count() -> None:
    seen = Sequences()
    for _ in range(8):
        _go(seen, "key:a", "a:one", "a:old")
    for _ in range(8):
        _go(seen, "key:a", "a:one", "a:new")
    assert seen.followers("a:one") == (("a:new", 1.0),)


def test_of_many_callers_the_latest_are_heard() -> None:
    seen = Sequences()
    for number in range(64):
        _go(seen, f"key:{number}", "a:one", "a:old")
    for number in range(64, 128):
        _go(seen, f"key:{number}", "a:one", "a:new")
    assert seen.followers("a:one") == (("a:new", 1.0),)


def test_what_hardly_anybody_does_is_not_told() -> None:
    seen = Sequences()
    for number in range(39):
        _go(seen, f"key:{number}", "a:one", "a:usual")
    _go(seen, "key:odd", "a:one", "a:odd")
    assert seen.followers("a:one") == (("a:usual", 1.0),)


def test_as_many_callers_and_voices_as_fit_are_all_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolcrib.observe.sequences.MOST_CALLERS", 2)
    monkeypatch.setattr("toolcrib.observe.sequences._VOICES", 2)
    seen = Sequences()
    for who in ("key:a", "key:b"):
        _go(seen, who, "a:one")
    _go(seen, "key:a", "a:two", start=10_001.0)
    _go(seen, "key:b", "a:three", start=10_001.0)
    assert seen.followers("a:one") == (("a:three", 0.5), ("a:two", 0.5))


def test_asking_about_ever_more_tools_keeps_no_more_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolcrib.observe.sequences.MOST_TOOLS", 2)
    seen, kept = Sequences(), list[int]()
    for number in range(5):
        assert seen.followers(f"a:{number}") == ()
        kept.append(len(seen._told))  # pyright: ignore[reportPrivateUsage]
    assert kept == [1, 2, 1, 2, 1]
