"""The result cache stays within its bounds, and lets go of what was used longest ago."""

import pytest

from toolcrib.model import Result
from toolcrib.store.shared.memory import MAX_CACHED_RESULT_BYTES, ResultCache, result_bytes


def still() -> float:
    return 0.0


def test_least_recently_used_is_evicted() -> None:
    results = ResultCache(still, entries=3)
    for key in "abc":
        results.keep(key, Result(data=key), 10.0)
    assert results.recall("a") == Result(data="a")
    results.keep("d", Result(data="d"), 10.0)
    assert results.recall("b") is None
    assert [results.recall(key) is not None for key in "acd"] == [True, True, True]


def test_heavy_results_push_out_as_many_as_it_takes() -> None:
    heavy = Result(data="x" * 1_000)
    results = ResultCache(still, size=10 * result_bytes(heavy))
    for number in range(100):
        results.keep(str(number), heavy, 10.0)
    assert [key for key in map(str, range(100)) if results.recall(key)] == list(map(str, range(90, 100)))
    # A replaced one must not be counted twice, nor one that was too old.
    for _ in range(100):
        results.keep("99", heavy, 10.0)
    assert sum(results.recall(str(number)) is not None for number in range(100)) == 10


@pytest.mark.parametrize(
    "result",
    [
        Result(data="x" * (MAX_CACHED_RESULT_BYTES + 1)),
        Result(encoded=b"x" * (MAX_CACHED_RESULT_BYTES + 1)),
        Result(content=({"type": "text", "text": "x" * (MAX_CACHED_RESULT_BYTES + 1)},)),
        Result(data=object()),
    ],
)
def test_oversized_or_non_json_result_is_not_cached(result: Result) -> None:
    results = ResultCache(still)
    results.keep("key", Result(data=1), 10.0)
    results.keep("key", result, 10.0)
    assert results.recall("key") is None


def test_entry_size_is_computed_once() -> None:
    data = {"a": "x" * 1_000}
    assert result_bytes(Result(data=data, encoded=b"y" * 1_000)) < 1_100
    assert 1_000 < result_bytes(Result(data=data)) < 1_100
