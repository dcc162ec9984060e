"""A request body is read only on demand and within its limit."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.gateways import AsgiConnection, Message
from tests.http.requests import request
from tests.texts import matches
from tests.waiting import until
from toolcrib.errors import Refused
from toolcrib.http import Disconnected
from toolcrib.http.connection_limits import ConnectionLimits
from toolcrib.http.memory import LARGE_BYTES, MemoryWatch
from toolcrib.model import OPERATOR
from toolcrib.testing import a_caller

pytestmark = pytest.mark.anyio


async def test_a_body_in_one_piece() -> None:
    assert await request(sender=AsgiConnection(b"abc")).body() == b"abc"


async def test_a_body_in_pieces_up_to_the_limit() -> None:
    assert await request(sender=AsgiConnection(b"abc", b"", b"def")).body(6) == b"abcdef"


@pytest.mark.parametrize("pieces", [(b"abcdefg",), (b"abc", b"defg"), (b"abcdefg", b"")])
async def test_a_body_over_the_limit_is_refused_without_content_length(pieces: tuple[bytes, ...]) -> None:
    with pytest.raises(Refused) as refusal:
        await request(sender=AsgiConnection(*pieces)).body(6)
    assert matches("server", "a body over the limit is refused without content length", str(refusal.value))
    assert refusal.value.problem.code == "PAYLOAD_TOO_LARGE"


async def test_a_body_is_read_no_further_than_its_limit() -> None:
    sender = AsgiConnection(*[b"abcd"] * 100)
    with pytest.raises(Refused):
        await request(sender=sender).body(6)
    assert sender.received == 2


@pytest.mark.parametrize("length", ["7", f"{'0' * 5_000}7", "9" * 5_000])
async def test_body_with_large_content_length_is_not_read(length: str) -> None:
    sender = AsgiConnection(b"abcdefg")
    with pytest.raises(Refused):
        await request(headers={"content-length": length}, sender=sender).body(6)
    assert sender.received == 0


async def test_zeros_before_a_length_change_nothing() -> None:
    assert await request(headers={"content-length": "0" * 5_000}, sender=AsgiConnection(b"")).body(6) == b""


@pytest.mark.parametrize("before", [0, 1])
async def test_client_disconnect_during_body(before: int) -> None:
    gone = anyio.Event()
    gone.set()
    sender = AsgiConnection(b"abc", leaves=gone)
    first: Message = {"type": "http.request", "body": b"abc", "more_body": True}
    asked = request(sender=sender)
    answers = [first][:before]

    async def receive() -> Message:
        return answers.pop(0) if answers else {"type": "http.disconnect"}

    asked.receive = receive
    with pytest.raises(Disconnected):
        await asked.body()


@pytest.mark.parametrize(
    "kind", ["application/json", "application/json; charset=utf-8", "APPLICATION/JSON", "application/x+json"]
)
async def test_json_under_its_own_names(kind: str) -> None:
    assert await request(headers={"content-type": kind}, sender=AsgiConnection(b'{"a": 1}')).json() == {
        "a": 1
    }


async def test_json_without_a_type() -> None:
    assert await request(sender=AsgiConnection(b"[]")).json() == []


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "text/json", "", "+json"]
)
async def test_anything_else_than_json_is_refused(kind: str) -> None:
    with pytest.raises(Refused, match="application/json") as refusal:
        await request(headers={"content-type": kind}, sender=AsgiConnection(b"{}")).json()
    assert refusal.value.problem.code == "INVALID_REQUEST"


async def test_a_compressed_body_is_refused() -> None:
    with pytest.raises(Refused, match="Content-Encoding"):
        await request(headers={"content-encoding": "gzip"}, sender=AsgiConnection(b"{}")).json()


@pytest.mark.parametrize(
    "body, says",
    [
        (b"", "empty"),
        (b"{", "line 1, column 2"),
        (b'{\n  "a": x\n}', "line 2, column 8"),
        (b"NaN", "line 1"),
        (b'{"a": Infinity}', "line 1"),
        (b'"\xff"', "line 1"),
        (b'"\\ud800"', "line 1"),
        (b"{} {}", "line 1, column 4"),
    ],
)
async def test_malformed_json_is_refused_with_its_place(body: bytes, says: str) -> None:
    with pytest.raises(Refused, match=says) as refusal:
        await request(sender=AsgiConnection(body)).json()
    assert refusal.value.problem.code == "INVALID_REQUEST"


@pytest.mark.parametrize(
    "body, says",
    [
        (b"[" * 65 + b"]" * 65, "65|64 levels"),
        (b'{"a":' * 70 + b"1" + b"}" * 70, "64 levels"),
        (b"[" + b"0," * 100_000 + b"0]", "values"),
        (b"[" * 100_000, "not JSON"),
    ],
)
async def test_too_deep_or_wide_json_is_refused(body: bytes, says: str) -> None:
    with pytest.raises(Refused, match=says):
        await request(sender=AsgiConnection(body)).json()


@given(depth=st.integers(1, 130))
async def test_depth_counters_agree(depth: int) -> None:
    body = b"[" * depth + b"]" * depth
    if depth <= 64:
        assert await request(sender=AsgiConnection(body)).json() is not None
    else:
        with pytest.raises(Refused):
            await request(sender=AsgiConnection(body)).json()


async def test_brackets_in_text_are_no_depth() -> None:
    body = b'{"a": "' + b"[" * 500 + b'"}'
    assert await request(sender=AsgiConnection(body)).json() == {"a": "[" * 500}


def test_query_parameters() -> None:
    asked = request(target="/x?a=1&b=%C3%A4+%26&c=")
    assert asked.query("a", "b", "c") == {"a": "1", "b": "ä &", "c": ""}
    assert request().query() == {}


@pytest.mark.parametrize(
    "target, path",
    [
        ("/x?d=1", "d"),
        ("/x?a=1&a=2", "a"),
        ("/x?a=%ff", None),
        ("/x?a=ä", None),
        ("/x?" + "a=1&" * 60, None),
    ],
)
def test_a_bad_query_is_refused(target: str, path: str | None) -> None:
    with pytest.raises(Refused) as refusal:
        request(target=target).query("a", "b")
    assert (refusal.value.problem.code, refusal.value.problem.path) == ("INVALID_REQUEST", path)


def test_unexpected_query_parameter_is_refused() -> None:
    with pytest.raises(Refused) as refusal:
        request(target="/x?a=1").query()
    assert refusal.value.problem.path == "a"


def test_cookies() -> None:
    asked = request(headers={"cookie": "a=1; toolcrib_session=x=y; toolcrib_session=z; b"})
    assert asked.cookie("toolcrib_session") == "x=y"
    assert asked.cookie("b") == ""
    assert asked.cookie("c") is None
    assert request().cookie("a") is None


# --- large bodies while memory is short ---

LARGE = b" " * (LARGE_BYTES + 1)


@asynccontextmanager
async def short_of_memory() -> AsyncGenerator[ConnectionLimits]:
    """A watch that has room for nothing more, but refuses no small work yet."""
    watch = MemoryWatch(100 << 20, resident=lambda: 89 << 20)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(watch.run)
        await until(lambda: watch.resident > 0)
        yield ConnectionLimits(memory=watch)
        tasks.cancel_scope.cancel()


@pytest.mark.requirement("I5")
@pytest.mark.parametrize("pieces", [(LARGE,), (LARGE, b" "), (LARGE[:-1], b"  ")])
async def test_large_body_is_refused_where_it_does_not_fit(pieces: tuple[bytes, ...]) -> None:
    async with short_of_memory() as intake:
        asked = request(sender=AsgiConnection(*pieces))
        asked.intake = intake
        with pytest.raises(Refused) as refused:
            await asked.body()
        assert refused.value.problem.code == "OVERLOADED"
        assert (intake.bodies.used, intake.blocks.used) == (0, 0)


@pytest.mark.requirement("I5")
@pytest.mark.parametrize("operator, pieces", [(True, (LARGE, LARGE)), (False, (LARGE[:-1],))])
async def test_body_of_the_operator_or_a_small_one_is_read(operator: bool, pieces: tuple[bytes, ...]) -> None:
    async with short_of_memory() as intake:
        asked = request(sender=AsgiConnection(*pieces))
        asked.intake = intake
        asked.caller = a_caller(key=OPERATOR if operator else "k", operator=operator)
        assert len(await asked.body()) == sum(map(len, pieces))
