"""Every row of the table of codes that can occur, provoked over HTTP: its status, class and retryability."""

from collections.abc import Awaitable, Callable

import anyio
import pytest

from tests.gateways import InProcessGateway, Reply
from toolcrib.errors import CODES

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("D5")]

ELSEWHERE = {
    "ANSWER_NOT_KEPT": "tests/walks/test_idempotency_quota.py stores more answers than are kept",
    "APP_NOT_AVAILABLE": "tests/walks/test_apps_gone_wrong.py has an app that does not come",
    "HTTP_ERROR": "tests/walks/test_apps_gone_wrong.py has an app that answers 500",
    "NETWORK_ERROR": "tests/walks/test_apps_promised.py has an app that moved away",
    "CANCELLED": "whoever would read it has left; tests/test_server.py reads it in the list of calls",
    "IN_PROGRESS": "tests/frontends/rest/test_idempotency.py keeps a call running for it",
    "EXECUTION_ERROR": "tests/test_server.py breaks a handler for it",
    "SOURCE_DOWN": "tests/frontends/rest/test_health.py closes the database for it",
}

Provoke = Callable[[InProcessGateway], Awaitable[Reply]]


async def overloaded(gateway: InProcessGateway) -> Reply:
    gateway.server.drain()
    return await gateway.call("add", {"a": 1})


async def rate_limited(gateway: InProcessGateway) -> Reply:
    await gateway.call("once")
    return await gateway.call("once")


async def already_exists(gateway: InProcessGateway) -> Reply:
    await gateway.key("twice")
    return await gateway.request("POST", "/api/keys", body={"name": "twice"})


async def idempotency_mismatch(gateway: InProcessGateway) -> Reply:
    await gateway.call("fail", headers={"idempotency-key": "k"})
    return await gateway.call("crash", headers={"idempotency-key": "k"})


async def permission_denied(gateway: InProcessGateway) -> Reply:
    return await gateway.call("secret", key=await gateway.key("plain"))


async def scope_denied(gateway: InProcessGateway) -> Reply:
    return await gateway.call("add", {"a": 1}, key=await gateway.key("plain"), headers={"x-user-id": "eve"})


PROVOKED: dict[str, Provoke] = {
    "INVALID_REQUEST": lambda gateway: gateway.request("POST", "/api/tools/execute", body=b"{"),
    "INVALID_TOOL_NAME": lambda gateway: gateway.call(":x"),
    "INVALID_ARGUMENTS": lambda gateway: gateway.call("add", {"a": 1.5}),
    "METHOD_NOT_ALLOWED": lambda gateway: gateway.request("PATCH", "/api/tools"),
    "ALREADY_EXISTS": already_exists,
    "PAYLOAD_TOO_LARGE": lambda gateway: gateway.request(
        "POST", "/api/tools/execute", body=b" " * (4 * 2**20 + 1)
    ),
    "IDEMPOTENCY_MISMATCH": idempotency_mismatch,
    "NOT_FOUND": lambda gateway: gateway.request("GET", "/nowhere"),
    "TOOL_NOT_FOUND": lambda gateway: gateway.call("ad"),
    "TOOL_REMOVED": lambda gateway: gateway.call("old"),
    "UNAUTHENTICATED": lambda gateway: gateway.call("add", {"a": 1}, key=None),
    "NO_SESSION": lambda gateway: gateway.call("add", {"a": 1}, headers={"x-user-id": "nobody-here"}),
    "PERMISSION_DENIED": permission_denied,
    "SCOPE_DENIED": scope_denied,
    "ORIGIN_REFUSED": lambda gateway: gateway.call("add", headers={"origin": "http://evil.example"}),
    "HOST_REFUSED": lambda gateway: gateway.call("add", headers={"host": "evil.example"}),
    "RATE_LIMITED": rate_limited,
    "OVERLOADED": overloaded,
    "TIMEOUT": lambda gateway: gateway.call("ask-slowly"),
    "OUTCOME_UNKNOWN": lambda gateway: gateway.call("change-slowly"),
    "TOOL_FAILED": lambda gateway: gateway.call("fail"),
    "HANDLER_ERROR": lambda gateway: gateway.call("crash"),
    "RESULT_TOO_LARGE": lambda gateway: gateway.call("flood"),
    "CONTRACT_VIOLATION": lambda gateway: gateway.call("nothing"),
}


def test_every_code_is_provoked_or_has_a_reason_why_not() -> None:
    groups = (PROVOKED.keys(), ELSEWHERE.keys())
    assert set().union(*groups) == set(CODES)
    assert sum(map(len, groups)) == len(CODES)


@pytest.mark.requirement("E11")
@pytest.mark.parametrize("code", PROVOKED)
async def test_a_code_of_the_table(gateway: InProcessGateway, code: str) -> None:
    with anyio.fail_after(20):
        reply = await PROVOKED[code](gateway)
    row, error = CODES[code], reply.json["error"]
    assert (reply.status, error["code"]) == (row.status, code)
    assert (error["kind"], error["class"], error["retryable"]) == (
        str(row.kind),
        row.error_class,
        row.retryable,
    )
    assert reply.json["success"] is False
    assert reply.headers["cache-control"] == "no-store"
    assert len(reply.json["agentHints"]) >= 11
    if "retryAfter" in error:
        assert int(reply.headers["retry-after"]) >= error["retryAfter"] > 0
    else:
        assert "retry-after" not in reply.headers
    if code in {"RATE_LIMITED", "OVERLOADED"}:
        assert "retryAfter" in error


async def test_misspelled_name_gets_a_suggestion(gateway: InProcessGateway) -> None:
    reply = await gateway.call("tools:ad")
    assert "tools:add" in reply.json["error"]["message"]
    plain = await gateway.key("plain")
    assert "secret" not in (await gateway.call("tools:secre", key=plain)).json["error"]["message"]


async def test_a_tools_own_code_is_kept(gateway: InProcessGateway) -> None:
    error = (await gateway.call("fail")).json["error"]
    assert (error["toolCode"], error["message"]) == ("NOT_TODAY", "Not on a Sunday.")
