"""Whatever a handler does wrong: a system error that names the broken rule, its stack in the log alone."""

import asyncio
import logging
import re
from collections.abc import AsyncGenerator, Callable, Generator
from math import inf, nan
from typing import Any

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.gateways import InProcessGateway, open_gateway
from tests.hint_fields import HINT_FIELD_SET
from toolcrib.errors import CODES, BusinessRuleError
from toolcrib.model import Hints
from toolcrib.model.hints import Dependency
from toolcrib.sdk import ToolResult, create_tool

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("E5", "E10", "E11")]

CANARY = "c4n4ry-of-the-handler"
"""Stands in all a handler returns, raises and is given; no answer may hold it."""

Deed = Callable[[dict[str, Any]], Any]
"""What a handler does, given its arguments."""

GOOD = Hints(confidence=0.5)
CIRCLE = (Dependency(action="a", depends_on=("b",)), Dependency(action="b", depends_on=("a",)))


class Odd:
    """Something JSON has no word for, which says the canary when asked what it is."""

    def __repr__(self) -> str:
        return CANARY


class Mute(Exception):
    """An error that cannot be put into words."""

    def __str__(self) -> str:
        raise RuntimeError(CANARY)


def give(value: Any) -> Deed:
    return lambda _: value


def fail(error: BaseException) -> Deed:
    def raise_it(_: dict[str, Any]) -> Any:
        raise error

    return raise_it


def hinted(**fields: Any) -> Deed:
    given: Any = {"confidence": 0.5, **fields}
    return lambda _: ToolResult(data={CANARY: CANARY}, hints=Hints(**given))


def spoil(given: dict[str, Any]) -> Any:
    given["nested"]["list"].append(CANARY)
    given.clear()


def nest(value: Any, times: int) -> Any:
    for _ in range(times):
        value = [value]
    return value


async def later() -> str:
    return CANARY


def bit_by_bit() -> Generator[str]:
    yield CANARY


async def bit_by_bit_later() -> AsyncGenerator[str]:
    yield CANARY


BROKEN: dict[str, tuple[Deed, str]] = {
    "returns nothing": (give(None), "must have data"),
    "data of nothing": (lambda _: ToolResult(data=None), "must have data"),
    "mutates and returns nothing": (spoil, "must have data"),
    "no JSON": (give(Odd()), "not JSON"),
    "no JSON inside": (give({"deep": [{"at": Odd()}]}), "not JSON"),
    "half a character": (give({"text": "\ud800"}), "valid Unicode"),
    "number past JSON": (give({"number": 2**70}), "64-bit"),
    "too deep": (give(nest(CANARY, 255)), "250 levels"),
    "deeper": (give(nest(CANARY, 5_000)), "250 levels"),
    "not awaited": (lambda _: later(), "await it"),
    "generator": (lambda _: bit_by_bit(), "yields"),
    "async generator": (lambda _: bit_by_bit_later(), "yields"),
    "result in a result": (give(ToolResult(data=ToolResult(data=CANARY))), "itself a ToolResult"),
    "message of no text": (lambda _: ToolResult(data=1, message=Odd()), "message"),  # pyright: ignore[reportArgumentType]
    "confidence 1.7": (hinted(confidence=1.7), "agentHints.confidence: give a number from 0 to 1"),
    "confidence not a number": (hinted(confidence=nan), "agentHints.confidence"),
    "confidence endless": (hinted(confidence=-inf), "agentHints.confidence"),
    "circle": (hinted(dependencies=CIRCLE), "circle"),
    "hints without parts": (hinted(risk_factors=None), "agentHints.riskFactors"),
    "hints of the wrong parts": (hinted(related_resources=(Odd(),)), "agentHints.relatedResources[0]"),
    "hints of no shape": (lambda _: ToolResult(data=1, hints=Odd()), "hints must be built"),  # pyright: ignore[reportArgumentType]
    "mapping, wrong": (lambda _: ToolResult(data=1, hints={"confidence": 7}), "agentHints.confidence"),
    "rule without words": (fail(BusinessRuleError("X", Odd())), "an error must have"),  # pyright: ignore[reportArgumentType]
    "rule, wrong hints": (
        fail(BusinessRuleError("X", CANARY, hints=Hints(confidence=2))),
        "agentHints.confidence: give a number from 0 to 1",
    ),
}
RAISED: tuple[BaseException, ...] = (
    ValueError(CANARY),
    KeyError(CANARY),
    Mute(),
    StopIteration(CANARY),
    StopAsyncIteration(CANARY),
    SystemExit(CANARY),
    KeyboardInterrupt(CANARY),
    BaseException(CANARY),
    asyncio.CancelledError(CANARY),
    ExceptionGroup(CANARY, [ValueError(CANARY)]),
    RecursionError(CANARY),
    MemoryError(CANARY),
    ConnectionResetError(CANARY),
)


class HandlersGateway:
    """A house with one handler of each kind, which do as they are told, and what its log is told."""

    def __init__(self, gateway: InProcessGateway) -> None:
        self.gateway = gateway
        self.deed: Deed = give(1)
        self.logged: list[logging.LogRecord] = []

    async def call(self, kind: str) -> Any:
        """Call the handler; all there is to say of the answer's shape is said here."""
        self.logged.clear()
        arguments = {"given": {"nested": {"list": [CANARY]}}}
        reply = await self.gateway.call(kind, arguments)
        assert arguments == {"given": {"nested": {"list": [CANARY]}}}
        answer = reply.json
        assert answer["agentHints"].keys() >= HINT_FIELD_SET
        assert answer["message"]
        assert {"traceId", "toolVersion", "timestamp", "executionTime"} <= answer["metadata"].keys()
        if not answer["success"]:
            assert reply.status == CODES[answer["error"]["code"]].status
            assert "data" not in answer
        return answer

    def breach(self, answer: Any) -> str:
        """The message of a system error, of which nothing is shown and all is logged."""
        error = answer["error"]
        assert error["class"] == "system"
        assert CANARY not in str(answer)
        assert "Traceback" not in str(answer)
        assert not re.search(r"\.py|line \d", str(answer))
        (record,) = self.logged
        assert record.exc_info is not None
        assert record.exc_info[1] is not None
        assert vars(record)["trace_id"] == answer["metadata"]["traceId"]
        return error["message"]


class _RecordingChannel(logging.Handler):
    def __init__(self, heard: list[logging.LogRecord]) -> None:
        super().__init__(logging.WARNING)
        self._heard = heard

    def emit(self, record: logging.LogRecord) -> None:
        if record.name == "toolcrib.steps.recover":
            self._heard.append(record)


@pytest.fixture
async def handlers() -> AsyncGenerator[HandlersGateway]:
    @create_tool(name="later", category="query")
    async def on_the_loop(given: dict[str, Any]) -> Any:
        return made.deed(given)

    @create_tool(name="threaded")
    def in_a_thread(given: dict[str, Any]) -> Any:
        return made.deed(given)

    @create_tool(name="brief", category="query", timeout=0.05)
    async def brief() -> Any:
        await anyio.sleep_forever()

    async with open_gateway(
        "limits: {result_bytes: 2000}", tools=[on_the_loop, in_a_thread, brief]
    ) as gateway:
        made = HandlersGateway(gateway)
        ear = _RecordingChannel(made.logged)
        logging.getLogger("toolcrib").addHandler(ear)
        try:
            yield made
        finally:
            logging.getLogger("toolcrib").removeHandler(ear)


async def test_every_broken_rule_is_named(handlers: HandlersGateway) -> None:
    for name, (deed, rule) in BROKEN.items():
        handlers.deed = deed
        answer = await handlers.call("later")
        assert answer["error"]["code"] == "CONTRACT_VIOLATION", name
        assert rule in handlers.breach(answer), name


async def test_so_it_is_in_a_thread(handlers: HandlersGateway) -> None:
    # What a plain function returns is awaited where it can be, so that one is no fault there.
    for name in BROKEN.keys() - {"not awaited"}:
        handlers.deed, rule = BROKEN[name]
        answer = await handlers.call("threaded")
        assert answer["error"]["code"] == "CONTRACT_VIOLATION", name
        assert rule in handlers.breach(answer), name


async def test_raised_exception_is_handler_error(handlers: HandlersGateway) -> None:
    for kind in ("later", "threaded"):
        for error in RAISED:
            handlers.deed = fail(error)
            answer = await handlers.call(kind)
            assert answer["error"]["code"] == "HANDLER_ERROR", (kind, error)
            handlers.breach(answer)


async def test_hanging_handler_times_out(handlers: HandlersGateway) -> None:
    reply = await handlers.gateway.call("brief")
    assert (reply.status, reply.code, reply.json["error"]["class"]) == (504, "TIMEOUT", "system")


async def test_oversized_result_is_refused(handlers: HandlersGateway) -> None:
    handlers.deed = give(["x" * 100] * 100)
    answer = await handlers.call("later")
    assert answer["error"]["code"] == "RESULT_TOO_LARGE"
    assert "2000" in handlers.breach(answer)


def _wrapped(deed: Deed, way: str) -> Deed:
    """The same fault, come by in another way."""
    if way == "from another error":

        def chained(given: dict[str, Any]) -> Any:
            try:
                return dict[str, Any]()[CANARY]
            except LookupError:
                return deed(given)

        return chained
    if way == "after spoiling its arguments":

        def spoiled(given: dict[str, Any]) -> Any:
            spoil(given)
            return deed(given)

        return spoiled
    return deed


deeds = st.tuples(
    st.sampled_from([each[0] for each in BROKEN.values()]) | st.sampled_from(RAISED).map(fail),
    st.sampled_from(["plainly", "from another error", "after spoiling its arguments"]),
).map(lambda drawn: _wrapped(*drawn))


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["later", "threaded"]), deeds), min_size=1, max_size=4))
async def test_handler_errors_leak_nothing_and_gateway_survives(
    handlers: HandlersGateway, some: list[tuple[str, Deed]]
) -> None:
    for kind, deed in some:
        handlers.deed = deed
        answer = await handlers.call(kind)
        if answer["success"]:  # a promise that was kept, in a thread
            assert (kind, answer["data"]) == ("threaded", CANARY)
        else:
            handlers.breach(answer)
    handlers.deed = give({"fine": True})
    assert (await handlers.call("later"))["data"] == {"fine": True}


@pytest.mark.requirement("E12")
@pytest.mark.parametrize("kind, tries", [("later", 3), ("threaded", 1)])
async def test_connection_error_is_retried_for_read_only_tools(
    handlers: HandlersGateway, kind: str, tries: int
) -> None:
    tried = list[int]()

    def open_in_the_end(_: dict[str, Any]) -> Any:
        tried.append(1)
        if len(tried) < 3:
            raise ConnectionRefusedError(CANARY)
        return "through"

    handlers.deed = open_in_the_end
    answer = await handlers.call(kind)
    assert len(tried) == tries
    assert answer["success"] is (tries == 3)
    if tries == 1:
        assert answer["error"]["retryable"] is False


async def test_many_bad_calls_at_once_disturb_no_good_one(handlers: HandlersGateway) -> None:
    turns = iter(range(60))

    def by_turns(_: dict[str, Any]) -> Any:
        if next(turns) % 3:
            raise KeyboardInterrupt(CANARY)
        return "fine"

    handlers.deed = by_turns
    codes: list[str | None] = []

    async def once() -> None:
        codes.append((await handlers.gateway.call("later", {"given": {}})).code)

    async with anyio.create_task_group() as tasks:
        for _ in range(60):
            tasks.start_soon(once)
    assert sorted(map(str, codes)) == ["HANDLER_ERROR"] * 40 + ["None"] * 20
