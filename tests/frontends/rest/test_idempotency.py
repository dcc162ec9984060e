"""Idempotency keys over REST: in the body or in a header, invalid ones refused, replays marked."""

from collections.abc import AsyncGenerator
from typing import Any

import anyio
import pytest

from tests.gateways import InProcessGateway, Reply, open_gateway
from toolcrib import create_tool
from toolcrib.sdk import AnyTool

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("E12")]


class Payments:
    """Counts payments."""

    def __init__(self) -> None:
        self.taken, self.reached, self.gate = 0, anyio.Event(), anyio.Event()

    def tools(self) -> tuple[AnyTool, ...]:
        @create_tool(category="mutation")
        async def pay(amount: int) -> dict[str, int]:
            """Take an amount of money."""
            self.taken += 1
            return {"amount": amount, "payment": self.taken}

        @create_tool(category="mutation", timeout=60)
        async def pay_slowly() -> int:
            """Pay after the test allows it."""
            self.taken += 1
            self.reached.set()
            await self.gate.wait()
            return self.taken

        @create_tool(category="query")
        async def count_payments() -> int:
            """Return the number of payments."""
            return self.taken

        return (pay, pay_slowly, count_payments)


@pytest.fixture
async def payments() -> Payments:
    return Payments()


@pytest.fixture
async def gateway(payments: Payments) -> AsyncGenerator[InProcessGateway]:
    async with open_gateway(tools=payments.tools()) as opened:
        yield opened


async def pay(gateway: InProcessGateway, key: object = "k", amount: int = 5, **more: Any) -> Reply:
    body = {"name": "pay", "arguments": {"amount": amount}, "idempotencyKey": key}
    return await gateway.request("POST", "/api/tools/execute", body=body, **more)


async def test_a_payment_that_is_sent_twice_is_made_once(
    gateway: InProcessGateway, payments: Payments
) -> None:
    first, again = await pay(gateway), await pay(gateway)
    assert (first.status, again.status, payments.taken) == (200, 200, 1)
    assert first.json["data"] == again.json["data"] == {"amount": 5, "payment": 1}
    assert first.json["message"] == again.json["message"]
    assert len(again.json["agentHints"]) >= 11
    assert again.json["metadata"]["cached"] is False
    assert again.json["metadata"]["correlationId"] != first.json["metadata"]["correlationId"]
    assert "idempotency-replayed" not in first.headers
    assert again.headers["idempotency-replayed"] == "true"


async def test_a_key_in_a_header_is_the_same_key_quoted_or_not(
    gateway: InProcessGateway, payments: Payments
) -> None:
    await pay(gateway, "k-1")
    for value in ("k-1", '"k-1"'):
        reply = await gateway.call("pay", {"amount": 5}, headers={"idempotency-key": value})
        assert reply.headers["idempotency-replayed"] == "true"
    assert (await pay(gateway, "k-1", headers={"idempotency-key": "k-1"})).json["data"]["payment"] == 1
    assert (await pay(gateway, "k-1", headers={"idempotency-key": "k-2"})).status == 400
    assert payments.taken == 1


async def test_invalid_idempotency_key_is_refused_with_path(
    gateway: InProcessGateway, payments: Payments
) -> None:
    for key in ("", " ", "a b", "a\n", "\xe4", "k" * 256, 3, ["k"], {"k": 1}, True):
        reply = await pay(gateway, key)
        assert (reply.status, reply.code) == (400, "INVALID_REQUEST"), key
        assert reply.json["error"]["path"] == "idempotencyKey"
    for value in ("", '""', "a b", "\xe4", "k" * 256, "a, b"):
        reply = await gateway.call("pay", {"amount": 5}, headers={"idempotency-key": value})
        assert (reply.status, reply.code) == (400, "INVALID_REQUEST"), value
        assert reply.json["error"]["path"] == "Idempotency-Key"
    assert payments.taken == 0


async def test_the_longest_key_and_none_at_all_are_taken(
    gateway: InProcessGateway, payments: Payments
) -> None:
    for key in ("!~" * 127 + "k", None, None):
        assert (await pay(gateway, key)).status == 200
    assert payments.taken == 3


@pytest.mark.check(25)
async def test_another_body_under_the_same_key_is_422(gateway: InProcessGateway, payments: Payments) -> None:
    await pay(gateway, amount=5)
    reply = await pay(gateway, amount=6)
    assert (reply.status, reply.code, payments.taken) == (422, "IDEMPOTENCY_MISMATCH", 1)


async def test_idempotency_key_covers_all_names_of_a_tool(
    gateway: InProcessGateway, payments: Payments
) -> None:
    await pay(gateway)
    body = {"name": "tools:pay", "arguments": '{"amount": 5}', "idempotencyKey": "k"}
    reply = await gateway.request("POST", "/api/tools/execute", body=body)
    assert (reply.json["data"]["payment"], payments.taken) == (1, 1)


@pytest.mark.check(25)
async def test_while_it_runs_the_same_key_is_409(gateway: InProcessGateway, payments: Payments) -> None:
    replies: list[Reply] = []
    body = {"name": "pay-slowly", "idempotencyKey": "k"}

    async def ask() -> None:
        replies.append(await gateway.request("POST", "/api/tools/execute", body=body))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask)
        await payments.reached.wait()
        await ask()
        payments.gate.set()
    early, done = replies
    error = early.json["error"]
    assert (early.status, early.code, error["retryable"]) == (409, "IN_PROGRESS", True)
    assert int(early.headers["retry-after"]) >= error["retryAfter"] > 0
    assert (done.json["data"], payments.taken) == (1, 1)
    await ask()
    assert replies[-1].json["data"] == 1


async def test_a_key_on_a_question_is_taken_and_kept_for_nothing(
    gateway: InProcessGateway, payments: Payments
) -> None:
    body = {"name": "count-payments", "idempotencyKey": "k"}
    assert (await gateway.request("POST", "/api/tools/execute", body=body)).json["data"] == 0
    await pay(gateway)
    assert (await gateway.request("POST", "/api/tools/execute", body=body)).json["data"] == 1
    assert payments.taken == 1


async def test_keys_of_two_callers_are_two(gateway: InProcessGateway, payments: Payments) -> None:
    one, two = await gateway.key("one"), await gateway.key("two")
    await pay(gateway, key="k")
    for caller in (one, two, one):
        body = {"name": "pay", "arguments": {"amount": 5}, "idempotencyKey": "k"}
        assert (await gateway.request("POST", "/api/tools/execute", body=body, key=caller)).status == 200
    assert payments.taken == 3


async def test_stream_result_equals_stored_result(gateway: InProcessGateway, payments: Payments) -> None:
    await pay(gateway)
    reply = await pay(gateway, headers={"accept": "text/event-stream"})
    assert b"event: result" in reply.body
    assert b'"payment":1' in reply.body
    assert payments.taken == 1
