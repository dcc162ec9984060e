"""Configuration of all tests: event loop, external programs, and no deadline for hypothesis."""

import os
import sys
import threading
from collections import Counter
from collections.abc import Generator

import pytest
from hypothesis import settings

pytest_plugins = ("tests.parts.fixtures", "tests.parts.pages")

# A busy machine is no bug: limits of time belong to the tests that measure time.
settings.register_profile("toolcrib", deadline=None)
settings.load_profile("toolcrib")


_NOT_COVERED = frozenset({"bench", "conformance", "docs", "examples", "gates", "mutation"})
"""Folders run without coverage: they read files, or run programs that other tests cover."""
_COVERED_CASES = 2
"""Cases of a parametrized test that run with coverage, which doubles the CPU time; the others repeat them."""
_FIRST = "gw0"
"""The test process that pytest-xdist gives the first group of tests."""

_PROGRAMS_MEASURED = "COVERAGE_PROCESS_CONFIG"
"""The environment variable by which coverage also measures the processes that tests start."""


@pytest.fixture(scope="session")
def anyio_backend() -> tuple[str, dict[str, bool]]:
    return ("asyncio", {"use_uvloop": False})


def pytest_configure() -> None:
    """Lower the priority of all test processes but the first, which runs the walks that measure time."""
    if os.environ.get("PYTEST_XDIST_WORKER", _FIRST) != _FIRST:
        os.nice(5)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run a file's tests in one process, and walks that measure in the first process, before all others.

    Walks that measure time, memory or descriptors of a gateway would disturb each other in parallel.
    """
    cases: Counter[str] = Counter()
    measuring = {id(item) for item in items if _measures(item)}
    for item in items:
        function = item.nodeid.partition("[")[0]
        cases[function] += 1
        if item.path.parent.name in _NOT_COVERED or cases[function] > _COVERED_CASES:
            item.add_marker(pytest.mark.no_cover)
        group = "measuring walks" if id(item) in measuring else item.nodeid.partition("::")[0]
        item.add_marker(pytest.mark.xdist_group(group))
    items.sort(key=lambda item: id(item) not in measuring)


def _measures(item: pytest.Item) -> bool:
    marks = {mark.name for mark in item.iter_markers()}
    return "walks" in item.path.parent.parts and {"slow", "no_cover"} <= marks


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None]:
    """Where a test is not measured, neither are its threads and the programs it starts.

    pytest-cov measures a process that shares the tests with others twice, and pauses only one of the two for
    a test that is not to be measured: such tests took as long as if they were.
    """
    if item.get_closest_marker("no_cover") is None:
        return (yield)
    measured = os.environ.pop(_PROGRAMS_MEASURED, None)
    trace, thread_trace = sys.gettrace(), threading.gettrace()
    sys.settrace(None)
    threading.settrace(None)
    try:
        return (yield)
    finally:
        sys.settrace(trace)
        threading.settrace(thread_trace)
        if measured is not None:
            os.environ[_PROGRAMS_MEASURED] = measured
