"""What is remembered of each tool follows its latest calls, and stays small."""

import pytest

from toolcrib.observe import ToolHistory


def test_history_starts_empty() -> None:
    assert ToolHistory().rate("a:b") == (1.0, 0.0, 0)


def test_few_calls_give_their_mean() -> None:
    history = ToolHistory()
    for ok, seconds in ((True, 1.0), (True, 2.0), (False, 3.0), (True, 2.0)):
        history.note("a:b", ok, seconds)
    assert history.rate("a:b") == (pytest.approx(0.75), pytest.approx(2.0), 4)
    assert history.rate("a:c") == (1.0, 0.0, 0)


def test_recent_calls_weigh_most() -> None:
    history = ToolHistory()
    for _ in range(1_000):
        history.note("a:b", True, 0.01)
    for _ in range(45):
        history.note("a:b", False, 1.0)
    success, seconds, calls = history.rate("a:b")
    assert success == pytest.approx(0.1, abs=0.01)
    assert seconds == pytest.approx(0.9, abs=0.02)
    assert calls == 1_045


def test_oldest_tool_is_evicted() -> None:
    history = ToolHistory(limit=100)
    for number in range(10_000):
        history.note(f"a:{number}", True, 0.1)
    assert history.rate("a:9899")[2] == 0
    assert [history.rate(f"a:{number}")[2] for number in range(9_900, 10_000)] == [1] * 100
