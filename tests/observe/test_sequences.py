"""Tool sequences: followers counted per caller, bounded and expiring."""

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
def test_each_caller_counts_once() -> None:
    seen = Sequences()
    for number in range(1000):
        seen.take([_entry("a:one", "key:loud", number), _entry("a:bad", "key:loud", number)])
    for who in ("key:b", "key:c", "key:d"):
        seen.take([_entry("a:one", who), _entry("a:good", who)])
    assert seen.followers("a:one")[0] == ("a:good", 0.8)


def test_excluded_successors() -> None:
    seen = Sequences()
    seen.take([_entry("a:one"), _entry("a:two", failed=True), _entry("a:late", at=601)])
    seen.take([_entry("b:one", session="x"), _entry("b:two", session="y")])
    seen.take([_entry("c:one", "key:c"), _entry("c:one", "key:c")])
    assert [seen.followers(name) for name in ("a:one", "b:one", "c:one")] == [(), (), ()]


def test_stored_sequences_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolcrib.observe.sequences.MAX_SEQUENCE_TOOLS", 3)
    monkeypatch.setattr("toolcrib.observe.sequences.MAX_SEQUENCE_CALLERS", 3)
    seen = Sequences()
    for number in range(5):
        seen.take([_entry(f"a:{number}", f"key:{number}"), _entry("a:next", f"key:{number}")])
    assert [bool(seen.followers(f"a:{number}")) for number in range(5)] == [False, False, True, True, True]
    seen.take([_entry("a:late", "key:0"), _entry("a:late", "key:4")])
    assert seen.followers("a:next") == (("a:late", 1.0),), "of two callers one is remembered"


def test_latest_callers_replace_older_ones() -> None:
    seen = Sequences()
    for number in range(65):
        seen.take([_entry("b:one", f"key:{number}"), _entry("b:new" if number else "b:old", f"key:{number}")])
    assert seen.followers("b:one") == (("b:new", 1.0),)


# --- limits ---


def _take_all(seen: Sequences, who: str, *names: str, start: float = 10_000.0, apart: float = 1.0) -> None:
    seen.take([_entry(name, who, start + place * apart) for place, name in enumerate(names)])


@pytest.mark.parametrize("apart, followers", [(600.0, (("a:two", 1.0),)), (600.5, ())])
def test_followers_within_ten_minutes(apart: float, followers: tuple[tuple[str, float], ...]) -> None:
    seen = Sequences()
    _take_all(seen, "key:a", "a:one", "a:two", apart=apart)
    assert seen.followers("a:one") == followers


def test_followers_are_cached_until_a_new_call() -> None:
    seen = Sequences()
    _take_all(seen, "key:a", "a:one", "a:two")
    told = seen.followers("a:one")
    assert seen.followers("a:one") is told
    _take_all(seen, "key:b", "a:one", "a:three")
    assert seen.followers("a:one") == (("a:three", 0.5), ("a:two", 0.5))


def test_evicted_tool_has_no_followers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolcrib.observe.sequences.MAX_SEQUENCE_TOOLS", 2)
    seen = Sequences()
    _take_all(seen, "key:a", "a:one", "a:two")
    assert seen.followers("a:one") == (("a:two", 1.0),)
    _take_all(seen, "key:b", "b:one", "b:two")
    _take_all(seen, "key:c", "c:one", "c:two")
    assert seen.followers("a:one") == ()
    assert seen.followers("c:one") == (("c:two", 1.0),)


def test_latest_eight_steps_per_caller_count() -> None:
    seen = Sequences()
    for _ in range(8):
        _take_all(seen, "key:a", "a:one", "a:old")
    for _ in range(8):
        _take_all(seen, "key:a", "a:one", "a:new")
    assert seen.followers("a:one") == (("a:new", 1.0),)


def test_latest_64_callers_count() -> None:
    seen = Sequences()
    for number in range(64):
        _take_all(seen, f"key:{number}", "a:one", "a:old")
    for number in range(64, 128):
        _take_all(seen, f"key:{number}", "a:one", "a:new")
    assert seen.followers("a:one") == (("a:new", 1.0),)


def test_rare_followers_are_not_reported() -> None:
    seen = Sequences()
    for number in range(39):
        _take_all(seen, f"key:{number}", "a:one", "a:usual")
    _take_all(seen, "key:odd", "a:one", "a:odd")
    assert seen.followers("a:one") == (("a:usual", 1.0),)


def test_callers_up_to_the_limit_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolcrib.observe.sequences.MAX_SEQUENCE_CALLERS", 2)
    monkeypatch.setattr("toolcrib.observe.sequences._VOTERS_PER_TOOL", 2)
    seen = Sequences()
    for who in ("key:a", "key:b"):
        _take_all(seen, who, "a:one")
    _take_all(seen, "key:a", "a:two", start=10_001.0)
    _take_all(seen, "key:b", "a:three", start=10_001.0)
    assert seen.followers("a:one") == (("a:three", 0.5), ("a:two", 0.5))


def test_follower_cache_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolcrib.observe.sequences.MAX_SEQUENCE_TOOLS", 2)
    seen, kept = Sequences(), list[int]()
    for number in range(5):
        assert seen.followers(f"a:{number}") == ()
        kept.append(len(seen._followers))  # pyright: ignore[reportPrivateUsage]
    assert kept == [1, 2, 1, 2, 1]
