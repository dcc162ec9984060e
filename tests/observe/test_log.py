"""A line per call and per log record, without secrets, without waiting."""

import io
import json
import logging
import os
import pty
import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.observe.reading import CANARY, Lines
from tests.observe.samples import a_failure, a_problem, an_entry
from toolcrib.model import Ask, Deprecation, Origin, Result
from toolcrib.observe import MASK, CallEntry, CallRecorder, Log, Metrics, Redactor, setup
from toolcrib.observe.lines import json_line, text_line
from toolcrib.observe.log import Level, LineWriterThread
from toolcrib.testing import a_call, a_caller, a_tool

pytestmark = pytest.mark.anyio

ours = logging.getLogger("toolcrib.test")


@pytest.fixture
def lines() -> Iterator[Lines]:
    lines = Lines()
    yield lines
    lines.log.close()


@pytest.mark.requirement("I3", "E14")
async def test_a_call_is_one_line_with_every_field(lines: Lines) -> None:
    call = a_call(
        a_tool("aviation_atis:get_atis", exposed="mcp_aviation_atis_get_atis"),
        id="call-7",
        caller=a_caller(id="key:ops/u1", user="u1", context="support"),
        origin=Origin(
            agent_id="pilot", trace_id="t1", correlation_id="c1", face="rest", provider="openai_realtime"
        ),
    )
    lines.log.take([an_entry(call, seconds=0.0123456, returned=(list, 3, 120))])
    await lines.log.flush()
    assert lines.read() == [
        {
            "ts": "2026-05-28T20:26:40.250000Z",
            "level": "info",
            "event": "call",
            "call_id": "call-7",
            "context_name": "support",
            "provider_name": "openai_realtime",
            "server": "aviation_atis",
            "tool": "aviation_atis:get_atis",
            "exposed_name": "mcp_aviation_atis_get_atis",
            "caller": "key:ops/u1",
            "user_id": "u1",
            "trace_id": "t1",
            "correlation_id": "c1",
            "duration_ms": 12.346,
            "outcome": "success",
            "code": None,
            "cached": False,
            "deprecated": False,
            "result": "list",
            "items": 3,
            "bytes": 120,
            "face": "rest",
            "agent_id": "pilot",
        }
    ]


@pytest.mark.requirement("I3")
@pytest.mark.parametrize(
    "code, outcome, level",
    [
        ("TIMEOUT", "timeout", "error"),
        ("OUTCOME_UNKNOWN", "timeout", "error"),
        ("TOOL_FAILED", "error", "warning"),
        ("INVALID_ARGUMENTS", "error", "warning"),
        ("EXECUTION_ERROR", "error", "error"),
    ],
)
async def test_log_line_has_the_outcome(lines: Lines, code: str, outcome: str, level: str) -> None:
    lines.log.take([an_entry(problem=a_problem(code))])
    await lines.log.flush()
    (line,) = lines.read()
    assert (line["code"], line["outcome"], line["level"]) == (code, outcome, level)


@pytest.mark.requirement("E13", "E14")
async def test_log_line_has_the_deprecation(lines: Lines) -> None:
    entry = an_entry(a_call(a_tool("cards:create")))
    leaving = replace(entry.tool, deprecated=Deprecation(since="2.0.0"))
    lines.log.take([entry, entry._replace(tool=leaving), entry])
    await lines.log.flush()
    assert [line["deprecated"] for line in lines.read()] == [False, True, False]


async def test_quiet_log_omits_successes() -> None:
    lines = Lines("error")
    lines.log.take([an_entry(), an_entry(problem=a_problem()), an_entry(problem=a_problem("TIMEOUT"))])
    await lines.log.flush()
    ours.warning("not this")
    ours.error("but this")
    assert [line.get("code", line.get("message")) for line in lines.read()] == ["TIMEOUT", "but this"]
    lines.log.close()


PLACES = (
    "id",
    "trace_id",
    "correlation_id",
    "agent_id",
    "provider",
    "caller",
    "user",
    "context",
    "tool",
    "exposed",
)


@pytest.mark.requirement("I2")
@given(st.sampled_from(PLACES), st.text(max_size=10), st.text(max_size=10))
async def test_call_lines_contain_no_secrets(place: str, before: str, after: str) -> None:
    lines = Lines()
    try:
        lines.log.take([_with(place, f"{before}{CANARY}{after}")])
        await lines.log.flush()
        assert len(lines.read()) == 1
        assert CANARY not in lines.stream.getvalue()
    finally:
        lines.log.close()


def _with(place: str, value: str) -> CallEntry:
    entry = an_entry()
    if place in ("trace_id", "correlation_id", "agent_id", "provider"):
        return entry._replace(origin=replace(entry.origin, **{place: value}))
    if place in ("tool", "exposed"):
        return entry._replace(tool=replace(entry.tool, **{"name" if place == "tool" else place: value}))
    if place == "id":
        return entry._replace(id=value)
    return entry._replace(caller=replace(entry.caller, **{"id" if place == "caller" else place: value}))


@pytest.mark.requirement("I2")
@pytest.mark.parametrize("style", ["json", "text"])
@given(st.text(max_size=10), st.text(max_size=10))
def test_log_records_contain_no_secrets(style: Any, before: str, after: str) -> None:
    stream, text = io.StringIO(), f"{before}{CANARY}{after}"
    log = setup("debug", stream, Redactor([CANARY]), style=style)
    try:
        ours.info("%s", text)
        ours.info(text)
        log.write_record(logging.makeLogRecord({"msg": "wrong %d", "args": (text,)}))
        ours.info("%s", {"a": [text]}, extra={"detail": {text: [text]}, "password": "x"}, stack_info=True)
        _log_an_error(text)
        assert log.sync(5)
        assert stream.getvalue().count(MASK) >= 6
        assert CANARY not in stream.getvalue()
    finally:
        log.close()


def _log_an_error(text: str) -> None:
    try:
        _fail(text)
    except ValueError:
        ours.exception("failed", extra={"trace_id": "t1", "level": "kept apart"})


def _fail(text: str) -> None:
    try:
        int(text + "no number")
    except ValueError as error:
        raise ValueError(f"because of {text}") from error


@pytest.mark.requirement("E14")
def test_an_error_is_logged_with_its_stack_and_trace(lines: Lines) -> None:
    _log_an_error("a fault")
    (line,) = lines.read()
    assert (line["message"], line["trace_id"], line["level"]) == ("failed", "t1", "error")
    assert (line["event"], line["logger"]) == ("log", "toolcrib.test")
    assert (line["exception"]["type"], line["exception"]["message"]) == ("ValueError", "because of a fault")
    assert "_fail(text)" in line["exception"]["stack"]
    assert "invalid literal for int()" in line["exception"]["stack"]


@pytest.mark.requirement("E14")
def test_error_with_failing_str_is_logged_with_stack(lines: Lines) -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no words")

    def fail() -> None:
        raise Mute

    try:
        fail()
    except Mute:
        ours.exception("failed")
    (line,) = lines.read()
    assert (line["exception"]["message"], lines.log.dropped) == ("", 0)
    assert "raise Mute" in line["exception"]["stack"]


@pytest.mark.requirement("E14")
@pytest.mark.parametrize(
    "result, told",
    [
        (Result(data={"a": 1, "b": 2}, encoded=b"0123456789"), ("object", 2, 10)),
        (Result(data=[1, 2, 3], encoded=b"[1,2,3]"), ("list", 3, 7)),
        (Result(data="secret text", encoded=b'"secret text"'), ("text", None, 13)),
        (Result(data=1.5, encoded=b"1.5"), ("number", None, 3)),
        (Result(data=True, encoded=b"true"), ("boolean", None, 4)),
        (Result(content=({"type": "text", "text": "a"},), encoded=b"null"), ("content", 1, None)),
        (Result(ask=Ask(questions={})), ("question", None, None)),
        (a_failure("TIMEOUT"), (None, None, None)),
    ],
)
async def test_log_line_summarizes_the_result(
    lines: Lines, result: Result, told: tuple[str | None, int | None, int | None]
) -> None:
    journal = CallRecorder(Metrics(), [lines.log])
    journal.record(a_call(), result, 0.01)
    await journal.flush()
    (line,) = lines.read()
    assert (line["result"], line["items"], line["bytes"]) == told
    assert "secret" not in lines.stream.getvalue()


def test_library_loggers_are_one_level_quieter() -> None:
    library = logging.getLogger("somebody.else")
    heard: dict[Level, list[str]] = {}
    levels: tuple[Level, ...] = ("debug", "info", "error")
    for level in levels:
        lines = Lines(level)
        for logger in (ours, library):
            logger.debug("debug")
            logger.info("info")
            logger.warning("warning")
            logger.error("error")
        heard[level] = [f"{line['logger'].partition('.')[0]} {line['message']}" for line in lines.read()]
        lines.log.close()
    loud = ["toolcrib warning", "toolcrib error"]
    assert heard == {
        "debug": [
            "toolcrib debug",
            "toolcrib info",
            *loud,
            "somebody info",
            "somebody warning",
            "somebody error",
        ],
        "info": ["toolcrib info", *loud, "somebody warning", "somebody error"],
        "error": ["toolcrib error", "somebody error"],
    }


def test_logging_configuration_is_restored() -> None:
    root = logging.getLogger()
    before = (root.level, logging.getLogger("toolcrib").level, list(root.handlers))
    lines = Lines("debug")
    assert (root.level, logging.getLogger("toolcrib").level, list(root.handlers)) != before
    lines.log.close()
    assert (root.level, logging.getLogger("toolcrib").level, list(root.handlers)) == before


def test_long_texts_are_cut() -> None:
    lines = Lines()
    ours.info("x" * 1_000_000, extra={"detail": "y" * 1_000_000})
    lines.log.close()
    assert len(lines.stream.getvalue()) < 100_000


@pytest.mark.parametrize("value", ["\ud800", 2**70, object(), {1: 2}, float("nan"), {"a"}])
def test_every_log_record_is_json(lines: Lines, value: object) -> None:
    lines.log.write_record(logging.makeLogRecord({"msg": "odd %s", "args": [value], "odd": value}))
    (line,) = lines.read()
    assert line["message"].startswith("odd")
    assert "odd" in line


def test_unwritable_value_does_not_raise(lines: Lines) -> None:
    class Broken:
        def __str__(self) -> str:
            raise RuntimeError("no")

    ours.info("this is lost", extra={"odd": Broken()})
    ours.info("this is not")
    missing, line = lines.read()
    assert (missing["missing"], line["message"]) == (1, "this is not")
    assert lines.log.dropped == 1


def test_non_json_values_are_written_as_text() -> None:
    line = json_line({"ts": an_entry(), "half": "\ud800", "big": 2**70, "odd": {1, 2}})
    assert json.loads(line)["big"] == 2**70


def test_a_file_is_appended_to_and_closed(tmp_path: Path) -> None:
    for word in ("first", "second"):
        log = setup("info", tmp_path / "toolcrib.log", Redactor())
        ours.info(word)
        log.close()
    written = (tmp_path / "toolcrib.log").read_text().splitlines()
    assert [json.loads(line)["message"] for line in written] == ["first", "second"]


def test_standard_error_is_the_default(capfd: pytest.CaptureFixture[str]) -> None:
    log = setup("info", None, Redactor())
    ours.info("hello")
    log.close()
    assert json.loads(capfd.readouterr().err)["message"] == "hello"
    assert sys.stderr is not None


@pytest.mark.parametrize("plain", [False, True])
def test_terminal_lines_are_coloured_text(plain: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1") if plain else monkeypatch.delenv("NO_COLOR", raising=False)
    mine, theirs = pty.openpty()
    with os.fdopen(theirs, "wb", buffering=0) as terminal:
        log = setup("info", terminal, Redactor())
        ours.warning("mind the gap")
        log.close()
        seen = os.read(mine, 10_000).decode()
    os.close(mine)
    colours = "" if plain else "\x1b[33m"
    assert re.match(rf"\d\d:\d\d:\d\d\.\d\d\d {re.escape(colours)}warning", seen)
    assert "mind the gap" in seen
    assert ("\x1b" in seen) is not plain


async def test_terminal_line_order() -> None:
    stream = io.StringIO()
    log = setup("info", stream, Redactor(), style="text")
    call = a_call(a_tool("local:get-datetime"), id="call-7")
    log.take([an_entry(call), an_entry(call, problem=a_problem("TIMEOUT"), seconds=1.5)])
    await log.flush()
    log.close()
    first, second = stream.getvalue().splitlines()
    assert re.search(r"info +local:get-datetime success 4 ms call_id=call-7 context_name=default", first)
    assert re.search(r"error +local:get-datetime timeout 1500 ms .*code=TIMEOUT", second)
    assert "cached" not in first


@pytest.mark.requirement("I2")
def test_terminal_escapes_and_line_breaks_are_escaped() -> None:
    stream = io.StringIO()
    log = setup("info", stream, Redactor(), style="text")
    ours.info("one\nline \x1b[2J only", extra={"more": "\r\x9b", "zero": 0, "nothing": None, "off": False})
    _log_an_error("\x1b[2J")
    log.close()
    first, *_ = stream.getvalue().splitlines()
    assert r"one\x0aline \x1b[2J only more=\x0d\x9b zero=0" in first
    assert "nothing" not in first
    assert "off" not in first
    assert not {"\x1b", "\r", "\x9b"} & set(stream.getvalue())
    assert "Traceback" in stream.getvalue()


def test_lone_surrogate_is_written_to_a_terminal() -> None:
    event = {"ts": datetime.now(UTC), "level": "odd", "event": "log", "message": "\ud800"}
    assert rb"\ud800" in text_line(event, colour=True)


def test_text_lines_show_an_audit_record_by_its_hash() -> None:
    when = {"ts": datetime.now(UTC), "level": "info", "event": "log", "message": "audit: keys.create a"}
    written = text_line({**when, "audit": {"number": 1, "hash": "ab12"}}, colour=False)
    unwritten = text_line({**when, "audit": {"number": 0}}, colour=False)
    assert (b"audit=ab12\n" in written, b"number" in written + unwritten) == (True, False)


@pytest.mark.requirement("I3")
async def test_a_full_log_counts_what_it_drops() -> None:
    reading, writing = os.pipe()
    with os.fdopen(writing, "wb", buffering=0) as stream:
        log = Log(LineWriterThread(stream, limit=50_000), Redactor())
        for _ in range(30):
            log.take([an_entry()] * 1_000)
        assert log.dropped == 10_000  # no more than 20,000 wait for their line
        await log.flush()
        assert 29_000 < log.dropped < 30_000  # some went into the pipe and the queue
        before = log.dropped
        log.write_record(logging.makeLogRecord({"msg": "nobody will read this"}))
        assert log.dropped == before + 1
        log.close(0.01)
        os.close(reading)
