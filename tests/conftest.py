"""What every test has at hand: the event loop it runs on, the real parts, and no hurry for hypothesis."""

import os
import sys
import threading
from collections.abc import Generator

import pytest
from hypothesis import settings

pytest_plugins = ("tests.parts.fixtures", "tests.parts.pages")

# A busy machine is no bug: limits of time belong to the tests that measure time.
settings.register_profile("house", deadline=None)
settings.load_profile("house")


_NOT_MEASURED = frozenset({"bench", "conformance", "docs", "examples", "gates", "mutation"})
"""These look at files, or run programs of which other tests go through every line: coverage takes long."""

_PROGRAMS_MEASURED = "COVERAGE_PROCESS_CONFIG"
"""Where coverage leaves word for programs that are started."""


@pytest.fixture(scope="session")
def anyio_backend() -> tuple[str, dict[str, bool]]:
    return ("asyncio", {"use_uvloop": False})


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep a file's tests together where several processes run them, and the walks in one of these, first.

    Walks start whole gateways, kill them and watch what that does: two at a time would watch each other.
    """
    for item in items:
        if item.path.parent.name in _NOT_MEASURED:
            item.add_marker(pytest.mark.no_cover)
        group = "walks" if _is_walk(item) else item.nodeid.partition("::")[0]
        item.add_marker(pytest.mark.xdist_group(group))
    items.sort(key=lambda item: not _is_walk(item))


def _is_walk(item: pytest.Item) -> bool:
    return "walks" in item.path.parent.parts and item.get_closest_marker("slow") is not None


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
