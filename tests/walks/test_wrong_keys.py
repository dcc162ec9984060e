"""Wrong keys on every frontend are recorded and slowed down, while a valid key answers at once."""

import json
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from time import perf_counter

import anyio
import pytest
from websockets.asyncio.client import connect

from tests.frontends.web.test_sessions import OWN
from tests.gateways import ADMIN, InProcessGateway, Reply, listening, open_gateway
from tests.walks.test_routes import APP, INITIALIZE, MCP, STORAGE
from toolcrib.identity.failed_logins import FREE_FAILURES, MAX_DELAYED_PER_ADDRESS
from toolcrib.model import JsonObject

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("I8"), pytest.mark.requirement("I1")]

ATTACKER = "192.0.2.66"


async def failures(gateway: InProcessGateway) -> list[JsonObject]:
    await gateway.runtime.failed_logins.flush(everything=True)
    return await gateway.runtime.console.audit_records(limit=1000, action="auth.failed")


@pytest.mark.slow
async def test_thousand_wrong_keys_are_counted_and_slowed() -> None:
    statuses: Counter[int] = Counter()
    slow, valid = list[float](), list[float]()
    async with open_gateway(slowing=True) as gateway:
        assert (await gateway.request("GET", "/api/tools", client=ATTACKER)).status == 200

        async def guess(number: int) -> None:
            started = perf_counter()
            reply = await gateway.request("GET", "/api/tools", key=f"tc_guess_{number}", client=ATTACKER)
            statuses[reply.status] += 1
            assert reply.status == 401 or reply.headers["retry-after"] == "3"
            slow.append(perf_counter() - started)

        async def work() -> None:
            for _ in range(50):
                started = perf_counter()
                assert (await gateway.request("GET", "/api/tools", client=ATTACKER)).status == 200
                valid.append(perf_counter() - started)

        began = perf_counter()
        async with anyio.create_task_group() as tasks:
            for number in range(1000):
                tasks.start_soon(guess, number)
            tasks.start_soon(work)
        seconds = perf_counter() - began
        found = await failures(gateway)
    counted = sum(each["after"]["count"] for each in found)
    print(
        f"\n1,000 wrong keys from one address: {counted} recorded in {len(found)} records, {dict(statuses)},"
        f" {seconds:.1f} s; the slowest {max(slow):.2f} s; a valid key meanwhile: {max(valid) * 1000:.0f} ms"
    )
    assert counted == 1000
    assert len(found) <= 3
    assert set(statuses) == {401, 429}
    assert 18 <= statuses[401] <= 40, "ten at once, eight at a time that waited; the others were refused"
    assert max(slow) >= 2.5
    assert max(valid) < max(slow) / 2
    assert {each["origin"]["address"] for each in found} == {ATTACKER}
    assert "tc_guess" not in str(found)


@asynccontextmanager
async def held_back(gateway: InProcessGateway) -> AsyncGenerator[None]:
    """Hold back as many answers to wrong keys of the attacker's address as may be, until the end."""
    ended, guess = (
        anyio.Event(),
        partial(gateway.request, "GET", "/api/tools", key="tc_wrong", client=ATTACKER),
    )

    async def hold(seconds: float) -> None:
        del seconds
        await ended.wait()

    gateway.runtime.failed_logins.sleep = hold
    for _ in range(FREE_FAILURES):
        await guess()
    async with anyio.create_task_group() as tasks:
        for _ in range(MAX_DELAYED_PER_ADDRESS):
            tasks.start_soon(guess)
        await anyio.wait_all_tasks_blocked()
        yield
        ended.set()


@pytest.mark.parametrize("headers", [None, {"x-user-id": "ann"}], ids=["itself", "for a user"])
async def test_a_guess_among_many_learns_nothing(headers: dict[str, str] | None) -> None:
    async with open_gateway() as gateway:
        await gateway.begin("ann")
        right = await gateway.key("right", actAs=True)
        asked = partial(gateway.request, "GET", "/api/tools", key=right, headers=headers)
        async with held_back(gateway):
            guessed = await gateway.request(
                "GET", "/api/tools", key="letmein", headers=headers, client=ATTACKER
            )
            generated = await asked(client=ATTACKER)
            again = await gateway.request("GET", "/api/tools", headers=headers, client=ATTACKER)
        found = await failures(gateway)
    assert (guessed.status, guessed.code, guessed.headers["retry-after"]) == (429, "RATE_LIMITED", "3")
    assert (generated.status, again.status) == (200, 200), "keys nobody can guess, or known ones, are tried"
    assert sum(each["after"]["count"] for each in found) == FREE_FAILURES + MAX_DELAYED_PER_ADDRESS + 1


async def test_valid_key_is_accepted_after_other_key_changes() -> None:
    async with open_gateway() as gateway:
        known = await gateway.key("known")
        assert (await gateway.request("GET", "/api/tools", key=known, client=ATTACKER)).status == 200
        async with held_back(gateway):
            await gateway.key("another")
            gateway.runtime.identity.ring.seen = {}
            statuses = [(await gateway.request("GET", "/api/tools", key=known, client=ATTACKER)).status]
            await gateway.request("DELETE", "/api/keys/known")
            statuses.append((await gateway.request("GET", "/api/tools", key=known, client=ATTACKER)).status)
    assert statuses == [200, 429], "once it has ended, it fails as any other"


async def test_revoked_key_is_recorded_by_its_name() -> None:
    async with open_gateway() as gateway:
        key = await gateway.key("leaver")
        await gateway.request("DELETE", "/api/keys/leaver")
        assert (await gateway.request("GET", "/api/tools", key=key, client=ATTACKER)).status == 401
        assert (await gateway.request("GET", "/api/tools", key="tc_other", client=ATTACKER)).status == 401
        found = await failures(gateway)
    assert [each["actor"]["name"] for each in found] == ["", "leaver"]


async def wrong_link(gateway: InProcessGateway, client: str) -> Reply:
    path, body = "/api/signin/exchange", {"token": "wrong"}
    return await gateway.request("POST", path, key=None, body=body, headers=OWN, client=client)


async def test_every_frontend_records_wrong_keys() -> None:
    async with open_gateway() as gateway:
        wrong = {"authorization": "Bearer com.example.notes:tcapp_wrong"}
        await gateway.request("GET", "/api/tools", key="tc_wrong", client="192.0.2.1")
        await gateway.request("POST", "/api/keys", key="tc_wrong", body={}, client="192.0.2.2")
        await gateway.request(
            "POST", "/mcp", key="tc_wrong", body=INITIALIZE, headers=MCP, client="192.0.2.3"
        )
        await gateway.request("GET", STORAGE, key=None, headers=wrong, client="192.0.2.4")
        await wrong_link(gateway, "192.0.2.5")
        await gateway.request("GET", "/api/tools", key=None, client="192.0.2.6")
        await gateway.request("GET", "/api/tools", key=ADMIN, client="192.0.2.7")
        found = await failures(gateway)
    shown = [
        (each["origin"]["address"], each["origin"]["frontend"], each["target"]) for each in reversed(found)
    ]
    assert shown == [
        ("192.0.2.1", "rest", "key"),
        ("192.0.2.2", "rest", "key"),
        ("192.0.2.3", "mcp", "key"),
        ("192.0.2.4", "rest", "app"),
        ("192.0.2.5", "page", "link"),
    ], "who shows no key at all has not failed, and a valid key is not recorded"


async def test_repeated_wrong_links_are_refused_with_retry_after() -> None:
    async with open_gateway() as gateway:
        logins = gateway.runtime.failed_logins
        held, answers = anyio.Event(), list[Reply]()

        async def hold(seconds: float) -> None:
            del seconds
            await held.wait()

        logins.sleep = hold
        for _ in range(10):
            await wrong_link(gateway, ATTACKER)
        async with anyio.create_task_group() as tasks:
            for _ in range(8):
                tasks.start_soon(wrong_link, gateway, ATTACKER)
            await anyio.wait_all_tasks_blocked()
            answers.append(await wrong_link(gateway, ATTACKER))
            held.set()
    (refused,) = answers
    assert (refused.status, refused.code, refused.headers["retry-after"]) == (429, "RATE_LIMITED", "3")


@pytest.mark.slow
async def test_wrong_app_keys_on_sockets_are_recorded() -> None:
    async with open_gateway() as gateway, listening(gateway.server) as url:
        await gateway.request("PUT", f"/api/apps/{APP}", body={"name": "Notes"})
        for package in (APP, "org.example.none"):
            async with connect(url.replace("http", "ws", 1) + "/app-ws") as app:
                said = {"packageName": package, "sessionId": f"ann-{package}", "apiKey": "tcapp_guessed"}
                await app.send(json.dumps({"type": "tpa_connection_init", **said}))
                with anyio.fail_after(20):
                    await app.wait_closed()
        found = await failures(gateway)
    shown = [(each["actor"]["name"], each["origin"]["frontend"], each["target"]) for each in found]
    assert shown == [("", "apps", "app"), (APP, "apps", "app")]
    assert "guessed" not in str(found)
