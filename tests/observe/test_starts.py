"""Arguments are logged once; declared mutations and slow calls before they end."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.observe.reading import CANARY, Lines
from tests.waiting import until
from toolcrib.cli.running_gateway import running_gateway
from toolcrib.config import parse
from toolcrib.errors import Broken
from toolcrib.interfaces import Handler
from toolcrib.model import Call, Origin, Result, Tool
from toolcrib.observe import MASK, CallRecorder, Metrics, Redactor
from toolcrib.observe.call_entry import CallStart
from toolcrib.observe.lines import MAX_ARGUMENT_CHARACTERS, LoggedArguments
from toolcrib.observe.log import Level, Style
from toolcrib.pipeline import compose
from toolcrib.steps.record import Record
from toolcrib.steps.recover import Recover
from toolcrib.testing import a_call, a_caller, a_tool, echo

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("E14")]

CUT = "[cut off]"
PASSWORDS = {
    "type": "object",
    "properties": {
        "pin": {"type": "string", "writeOnly": True},
        "who": {"type": "object", "properties": {"word": {"type": "string", "format": "password"}}},
        "code": {"anyOf": [{"properties": {"inner": {"writeOnly": True}}}]},
        "city": {"type": "string"},
    },
}


@asynccontextmanager
async def logged(
    lines: Lines, last: Handler = echo, **tool: Any
) -> AsyncGenerator[tuple[CallRecorder, Handler], None]:
    """The outermost steps over something to call, with a journal that runs by itself."""
    journal = CallRecorder(Metrics(), [lines.log])
    chain = compose((Record(journal, None, journal.running, journal.begun), Recover()), a_tool(**tool), last)
    async with anyio.create_task_group() as tasks:
        await tasks.start(journal.run)
        try:
            yield journal, chain
        finally:
            tasks.cancel_scope.cancel()
            lines.log.close()


def told(arguments: Any, *secrets: str, **tool: Any) -> Any:
    """The logged arguments of a call."""
    return json.loads(LoggedArguments(Redactor(secrets)).to_json(begun(arguments, a_tool(**tool))))


def begun(arguments: Any, tool: Tool | None = None) -> CallStart:
    call = a_call(tool, arguments=arguments)
    return CallStart(call.id, call.tool, call.caller, call.origin, call.arguments, 0.0)


async def test_start_of_a_declared_mutation_has_every_field() -> None:
    lines = Lines()
    call = a_call(
        a_tool("weather:forecast", declared_mutation=True),
        id="call-7",
        arguments={"city": "Oslo", "days": [1, 2]},
        caller=a_caller(id="key:ops/u1", user="u1", context="support"),
        origin=Origin(agent_id="pilot", trace_id="t1", correlation_id="c1", face="rest", provider="x"),
    )
    async with logged(lines, declared_mutation=True) as (journal, chain):
        await chain(call)
        await journal.flush()
    start, end = lines.read()
    assert start.pop("ts") <= end["ts"]
    assert "arguments" not in end
    assert start == {
        "level": "info",
        "event": "call_started",
        "call_id": "call-7",
        "context_name": "support",
        "provider_name": "x",
        "server": "weather",
        "tool": "weather:forecast",
        "exposed_name": "forecast",
        "caller": "key:ops/u1",
        "user_id": "u1",
        "trace_id": "t1",
        "correlation_id": "c1",
        "face": "rest",
        "agent_id": "pilot",
        "arguments": {"city": "Oslo", "days": [1, 2]},
    }
    assert end["event"] == "call"


async def test_start_of_a_mutation_is_written_before_sending() -> None:
    lines, found = Lines(), list[str]()

    async def look(_call: Call) -> Result:
        found.append(lines.text())
        return Result(data=1)

    async with logged(lines, look, declared_mutation=True) as (_, chain):
        await chain(a_call(arguments={"city": "Oslo"}))
    (before,) = found
    (line,) = [json.loads(each) for each in before.splitlines()]
    assert (line["event"], line["arguments"]) == ("call_started", {"city": "Oslo"})


async def test_quick_calls_have_one_line_with_their_arguments() -> None:
    lines = Lines()
    async with logged(lines) as (journal, chain):
        for name in ("Oslo", "Bergen"):
            await chain(a_call(id=name, arguments={"city": name}))
        await chain(a_call(id="un\nusual", arguments={"city": "Rome"}))
        await journal.flush()
        assert journal.running == {}
    found = [(line["event"], line["arguments"]["city"]) for line in lines.read()]
    assert found == [("call", "Oslo"), ("call", "Bergen"), ("call", "Rome")]


async def test_slow_call_is_in_the_log_before_it_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolcrib.observe.recorder.SLOW_SECONDS", 0.1)
    lines, over = Lines(), anyio.Event()

    async def hang(_call: Call) -> Result:
        await over.wait()
        return Result(data=1)

    async with logged(lines, hang) as (_, chain), anyio.create_task_group() as tasks:
        tasks.start_soon(chain, a_call(arguments={"city": "Oslo"}))
        await until(lambda: "call_started" in lines.text())
        (line,) = lines.read()
        assert (line["event"], line["arguments"]) == ("call_started", {"city": "Oslo"})
        over.set()
        await until(lambda: lines.text().count("\n") == 2)
    last = lines.read()[-1]
    assert (last["event"], "arguments" in last) == ("call", False)


async def test_failed_call_lines_have_trace_and_only_logs_the_stack() -> None:
    lines = Lines()

    async def fail(_call: Call) -> Result:
        raise Broken("CONTRACT_VIOLATION", "a rule") from ValueError("what is behind it")

    async with logged(lines, fail) as (journal, chain):
        result = await chain(a_call(origin=Origin(trace_id="t-7", correlation_id="c-7")))
        await journal.flush()
    assert result.problem is not None
    assert "behind" not in str(result)
    found = lines.read()
    assert {line["event"] for line in found} == {"call", "log"}
    assert {(line["trace_id"], line["correlation_id"]) for line in found} == {("t-7", "c-7")}
    (error,) = (line for line in found if line["event"] == "log")
    assert (error["level"], error["code"]) == ("error", "CONTRACT_VIOLATION")
    assert "what is behind it" in error["exception"]["stack"]


@pytest.mark.requirement("I2")
@pytest.mark.parametrize(
    "asked, shown",
    [
        ({"city": "Oslo"}, {"city": "Oslo"}),
        ({"password": "on", "api_key": {"a": 1}}, {"password": MASK, "api_key": MASK}),
        ({"deep": [{"token": "x", "n": 1}]}, {"deep": [{"token": MASK, "n": 1}]}),
        ({"text": f"it is {CANARY}!"}, {"text": f"it is {MASK}!"}),
        ({CANARY: 1}, {MASK: 1}),
        ({"note": "Bearer abcdef123"}, {"note": f"Bearer {MASK}"}),
        ({"keyboard": "plain"}, {"keyboard": "plain"}),
    ],
)
def test_secret_arguments_are_masked(asked: Any, shown: Any) -> None:
    assert told(asked, CANARY) == shown


@pytest.mark.requirement("I2")
def test_schema_secrets_are_masked_at_any_depth() -> None:
    asked = {"pin": "1234", "who": {"word": "open", "name": "Ada"}, "code": {"inner": 5}, "city": "Oslo"}
    assert told(asked, input_schema=PASSWORDS) == {
        "pin": MASK,
        "who": {"word": MASK, "name": "Ada"},
        "code": {"inner": MASK},
        "city": "Oslo",
    }


@pytest.mark.requirement("I2")
@given(
    st.dictionaries(st.text(max_size=5), st.text(max_size=30), max_size=3),
    st.text(max_size=2_500),
    st.text(max_size=2_500),
)
def test_start_lines_contain_no_known_secrets(more: dict[str, str], before: str, after: str) -> None:
    secret = 'a "quoted" sécret'
    spelled = LoggedArguments(Redactor([secret])).to_json(
        begun({**more, "text": f"{before}{secret}{after}", "list": [{secret: secret}]})
    )
    assert secret not in str(json.loads(spelled))
    assert "sécret".encode() not in spelled.replace("".join(more.values()).encode(), b"")


@pytest.mark.parametrize(
    "asked",
    [
        {"text": "x" * 100_000},
        {"x" * 100_000: 1},
        {"many": list(range(100_000))},
        {"texts": ["y" * 500] * 500},
        {str(number): number for number in range(10_000)},
        {"deep": [[[["z" * 300] * 5] * 5] * 5] * 5},
        {"token": "x", "text": "y" * 100_000},
    ],
)
def test_large_arguments_are_truncated_with_a_mark(asked: Any) -> None:
    spelled = LoggedArguments(Redactor()).to_json(begun(asked))
    assert len(spelled) < 4 * MAX_ARGUMENT_CHARACTERS
    assert CUT in json.dumps(json.loads(spelled))


def test_small_arguments_are_complete() -> None:
    asked = {"text": "x" * 1_000, "list": list(range(100))}
    assert told(asked) == asked


@pytest.mark.parametrize("odd", ["\ud800", 2**70, object(), b"bytes", {1: 2}, {"a"}, float("nan")])
async def test_non_json_arguments_do_not_lose_the_line(odd: Any) -> None:
    lines = Lines()
    async with logged(lines) as (journal, chain):
        await chain(a_call(arguments={"odd": odd}))
        await journal.flush()
    assert [line["event"] for line in lines.read()] == ["call"]
    assert lines.log.dropped == 0


@pytest.mark.parametrize("style", ["json", "text"])
@pytest.mark.parametrize("declared", [True, False])
async def test_unwritable_arguments_do_not_lose_the_line(style: Style, declared: bool) -> None:
    class Mute:
        def __str__(self) -> str:
            raise RuntimeError("no words")

    lines = Lines(style=style)
    async with logged(lines, declared_mutation=declared) as (journal, chain):
        await chain(a_call(arguments={"odd": Mute()}))
        await journal.flush()
    assert lines.text().count("[unreadable]") == 1
    assert (len(lines.text().splitlines()), lines.log.dropped) == (1 + declared, 0)


async def test_arguments_can_be_left_out() -> None:
    lines = Lines(arguments=False)
    async with logged(lines) as (journal, chain):
        await chain(a_call(arguments={"city": "Oslo"}))
        await journal.flush()
    assert lines.read()[0]["arguments"] is None
    assert "Oslo" not in lines.text()


@pytest.mark.parametrize("level", ["warning", "error"])
def test_quiet_log_needs_no_start_hooks(level: Level) -> None:
    lines = Lines(level)
    for journal in (CallRecorder(Metrics(), [lines.log]), CallRecorder(Metrics())):
        assert (journal.begun, journal.running) == (None, None)
    lines.log.close()


async def test_start_line_on_a_terminal() -> None:
    lines = Lines(style="text")
    async with logged(lines) as (journal, chain):
        await chain(a_call(arguments={"city": "Oslo", "password": "on"}))
        await journal.flush()
    (line,) = lines.text().splitlines()
    assert " fake:echo success " in line
    assert "arguments={'city': 'Oslo', 'password': '[redacted]'}" in line


async def test_served_gateway_writes_start_lines_as_configured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOLCRIB_HOME", str(tmp_path))
    for arguments, shown in ((True, {"timezone": "UTC"}), (False, None)):
        file = tmp_path / f"{arguments}.log"
        text = json.dumps(
            {"store": f"sqlite:///{tmp_path}/crib.db", "log": {"file": str(file), "arguments": arguments}}
        )
        async with running_gateway(parse(text, "crib.yaml", env={}), demo=False) as runtime:
            await runtime.gateway.call("local:get-datetime", {"timezone": "UTC"}, a_caller())
        found = [json.loads(line) for line in file.read_text().splitlines()]
        assert [line["arguments"] for line in found if line["event"] == "call"] == [shown]
