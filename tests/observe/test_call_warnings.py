"""The log warns of tools on their way out and of broken promises, and does not drown in it."""

import logging
from typing import Any

import pytest

from tests.observe.samples import NOON, a_problem, an_entry
from tests.texts import matches
from toolcrib.model import Deprecation, Result, Tool
from toolcrib.observe import CallEntry, CallRecorder, Metrics
from toolcrib.observe.metrics import WARNING_PAUSE_SECONDS, CallWarnings
from toolcrib.testing import a_call, a_tool

LEAVING = Deprecation(since="2.0.0", replacement="cards:create-v2", removal_date="2027-01-01")
OLD = a_tool("cards:create", deprecated=LEAVING)
FAST = a_tool("cards:get", response_time="fast")
MEDIUM = a_tool("cards:list", response_time="medium")
SLOW = a_tool("cards:draw", response_time="slow")


def used(tool: Tool, **fields: Any) -> CallEntry:
    return an_entry(a_call(tool), **fields)


def late_count(metrics: Metrics, name: str, tool: Tool) -> str | None:
    start = f'toolcrib_{name}{{tool="{tool.name}"}} '
    lines = metrics.render({}).decode().splitlines()
    return next((line.removeprefix(start) for line in lines if line.startswith(start)), None)


@pytest.mark.requirement("E13")
def test_deprecation_warning_names_the_replacement(caplog: pytest.LogCaptureFixture) -> None:
    CallWarnings().take([used(OLD)])
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert all(part in record.getMessage() for part in ("2.0.0", "2027-01-01", "cards:create-v2"))
    assert matches("log", "use of a deprecated tool", record.getMessage())
    assert (vars(record)["tool"], vars(record)["trace_id"]) == ("cards:create", "trace")


@pytest.mark.requirement("E13")
def test_deprecation_warning_without_date_or_replacement(caplog: pytest.LogCaptureFixture) -> None:
    CallWarnings().take([used(a_tool(deprecated=Deprecation(since="2")))])
    (message,) = caplog.messages
    assert matches("log", "use of a deprecated tool without replacement", message)


@pytest.mark.requirement("E12", "E13")
@pytest.mark.parametrize("entry", [used(OLD), used(FAST, seconds=0.2)])
def test_warnings_are_logged_once_per_minute(entry: CallEntry, caplog: pytest.LogCaptureFixture) -> None:
    remarks = CallWarnings()
    remarks.take([entry._replace(at=NOON + second) for second in range(10)])
    assert len(caplog.messages) == 1
    remarks.take(
        [entry._replace(at=NOON + WARNING_PAUSE_SECONDS), entry._replace(at=NOON + WARNING_PAUSE_SECONDS + 1)]
    )
    assert len(caplog.messages) == 2
    assert " 9 " in caplog.messages[1]
    assert matches("log", f"repeated warning about {entry.tool.name}", caplog.messages[1])


@pytest.mark.requirement("E13")
def test_removed_tool_is_not_counted_as_use(caplog: pytest.LogCaptureFixture) -> None:
    metrics, entry = Metrics(), used(OLD, problem=a_problem("TOOL_REMOVED"))
    CallWarnings().take([entry])
    metrics.take([entry])
    assert caplog.messages == []
    assert late_count(metrics, "tool_deprecated_total", OLD) is None


@pytest.mark.requirement("E12")
@pytest.mark.parametrize(
    "entry, is_late",
    [
        (used(FAST, seconds=0.1), False),
        (used(FAST, seconds=0.101), True),
        (used(MEDIUM, seconds=1.0), False),
        (used(MEDIUM, seconds=1.001), True),
        (used(SLOW, seconds=500.0), False),
        (used(FAST, seconds=9.0, cached=True), False),
        (used(FAST, seconds=9.0, problem=a_problem("TIMEOUT")), True),
        (used(FAST, seconds=9.0, problem=a_problem("TOOL_FAILED")), True),
        (used(FAST, seconds=9.0, problem=a_problem("CANCELLED")), False),
        (used(FAST, seconds=9.0, problem=a_problem("RATE_LIMITED")), False),
    ],
)
def test_a_broken_promise_is_reported(
    entry: CallEntry, is_late: bool, caplog: pytest.LogCaptureFixture
) -> None:
    metrics = Metrics()
    metrics.take([entry])
    CallWarnings().take([entry])
    assert late_count(metrics, "tool_late_total", entry.tool) == ("1" if is_late else None)
    assert bool(caplog.messages) is is_late


@pytest.mark.requirement("E12")
def test_slow_warning_has_numbers(caplog: pytest.LogCaptureFixture) -> None:
    CallWarnings().take([used(FAST, seconds=0.25)])
    said = "A call to cards:get took 250 ms; its response time is 'fast', which promises 100 ms at most."
    assert caplog.messages == [said]


@pytest.mark.requirement("E13", "E14")
def test_every_use_of_a_deprecated_tool_is_counted() -> None:
    metrics = Metrics()
    metrics.take([used(OLD), used(OLD, problem=a_problem("TIMEOUT")), used(FAST)])
    assert late_count(metrics, "tool_deprecated_total", OLD) == "2"
    assert late_count(metrics, "tool_deprecated_total", FAST) is None


def test_remembered_warnings_are_bounded(caplog: pytest.LogCaptureFixture) -> None:
    remarks = CallWarnings(limit=2)
    tools = [a_tool(f"a:{number}", deprecated=LEAVING) for number in range(3)]
    remarks.take([used(tool) for tool in tools])
    remarks.take([used(tools[2]), used(tools[0])])
    assert len(caplog.messages) == 4


def test_recorder_passes_finished_calls_on(caplog: pytest.LogCaptureFixture) -> None:
    journal = CallRecorder(Metrics())
    journal.record(a_call(OLD), Result(data=1), 0.001)
    assert caplog.messages == []
    journal.drain()
    assert len(caplog.messages) == 1
