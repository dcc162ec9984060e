"""Answers by another caller, for another question, too late or never: each is refused."""

from collections.abc import AsyncGenerator
from pathlib import Path
from time import time
from typing import Any

import pytest

from tests.eras.era_gateway import ERAS, Era, EraGateway, gateway, over_http
from tests.frontends.mcp.messages import ENVELOPE, message, modern_headers
from tests.servers.settings import LIMITS
from tests.texts import matches
from tests.waiting import until
from toolcrib.gateway import StateSigner

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("I1"), pytest.mark.slow]

CAN_BE_ASKED: dict[str, Any] = {
    **ENVELOPE,
    "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
}
ANSWER = {"action": "accept", "content": {"name": "Ada"}}
CONTEXTS = {"default": {"tools": ["*"]}, "other": {"tools": ["*"]}}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("notes")


@pytest.fixture(scope="module")
async def servers(folder: Path) -> AsyncGenerator[dict[str, Any]]:
    async with over_http(folder) as running:
        yield running


@pytest.fixture(scope="module")
async def era_gateway(servers: dict[str, Any], folder: Path) -> AsyncGenerator[EraGateway]:
    async with gateway(servers, folder, contexts=CONTEXTS) as opened:
        yield opened


class Caller:
    """A client without a session that writes its requests by hand."""

    def __init__(
        self, era_gateway: EraGateway, server: Era, key: str | None = None, path: str = "/mcp"
    ) -> None:
        self._client, self._server, self._key, self._path = era_gateway.client, server, key, path

    async def send(self, text: str, tool: str = "elicit", **params: Any) -> dict[str, Any]:
        """Call a tool; the answer is the whole message."""
        name = f"mcp_{self._server}_{tool}"
        sent = message("tools/call", name=name, arguments={"text": text}, _meta=CAN_BE_ASKED, **params)
        headers = modern_headers("tools/call", name)
        return (
            await self._client.request("POST", self._path, key=self._key, body=sent, headers=headers)
        ).json

    async def asked(self, text: str) -> tuple[str, str]:
        """Call a tool that asks; returns the question's name and the state to send back."""
        result = (await self.send(text))["result"]
        assert result["resultType"] == "input_required"
        [(name, question)] = result["inputRequests"].items()
        assert question["params"]["message"] == text
        return name, result["requestState"]

    async def answer(self, text: str, name: str, state: str, tool: str = "elicit") -> dict[str, Any]:
        return await self.send(text, tool, inputResponses={name: ANSWER}, requestState=state)


def refused(answer: dict[str, Any]) -> bool:
    """Return whether an answer refuses the state; the reason is not disclosed."""
    error = answer.get("error", {}).get("data", {}).get("toolcrib/error", {})
    return (error.get("code"), error.get("path")) == ("INVALID_REQUEST", "state")


def greeted(answer: dict[str, Any]) -> bool:
    return answer["result"]["content"][0]["text"] == "Hello, Ada."


@pytest.mark.parametrize("server", ERAS, ids="{} server".format)
async def test_a_state_is_good_for_its_own_call_alone(era_gateway: EraGateway, server: Era) -> None:
    one, two = await era_gateway.client.key(f"one-{server}"), await era_gateway.client.key(f"two-{server}")
    caller = Caller(era_gateway, server, one)
    name, state = await caller.asked("Who?")
    changed = state[:-1] + ("A" if state[-1] != "A" else "B")
    for wrong in (changed, f"{state}-TAMPERED", state[:20], state.swapcase(), "x"):
        assert refused(await caller.answer("Who?", name, wrong)), wrong
    assert refused(await caller.answer("Who else?", name, state)), "other arguments"
    assert refused(await caller.answer("Who?", name, state, tool="echo")), "another tool"
    assert refused(await Caller(era_gateway, server, two).answer("Who?", name, state)), "another principal"
    assert refused(await Caller(era_gateway, server).answer("Who?", name, state)), "nobody in particular"
    elsewhere = Caller(era_gateway, server, one, "/contexts/other/mcp")
    assert refused(await elsewhere.answer("Who?", name, state)), "another context"
    other: Era = "modern" if server == "legacy" else "legacy"
    assert refused(await Caller(era_gateway, other, one).answer("Who?", name, state)), "another server's tool"
    assert greeted(await caller.answer("Who?", name, state)), "and nothing of this spoilt it"
    assert era_gateway.parked == 0


async def test_a_parked_call_is_resumed_once(era_gateway: EraGateway) -> None:
    caller = Caller(era_gateway, "legacy")
    name, state = await caller.asked("Once?")
    assert era_gateway.parked == 1
    assert greeted(await caller.answer("Once?", name, state))
    assert refused(await caller.answer("Once?", name, state))


async def test_unrelated_answer_repeats_the_question(era_gateway: EraGateway) -> None:
    caller = Caller(era_gateway, "legacy")
    name, state = await caller.asked("Again?")
    again = (await caller.answer("Again?", "something else", state))["result"]
    assert list(again["inputRequests"]) == [name]
    assert greeted(await caller.answer("Again?", name, again["requestState"]))
    assert era_gateway.parked == 0


@pytest.mark.parametrize("server", ERAS, ids="{} server".format)
async def test_a_state_grows_old(
    era_gateway: EraGateway, server: Era, monkeypatch: pytest.MonkeyPatch
) -> None:
    later = [0.0]
    seal = StateSigner(lambda: b"k" * 32, lambda: time() + later[0])
    monkeypatch.setattr(era_gateway.client.runtime.gateway, "state_signer", seal)
    caller = Caller(era_gateway, server)
    name, state = await caller.asked("Late?")
    later[0] = 24 * 3600 + 1.0
    assert refused(await caller.answer("Late?", name, state))
    later[0] = 0.0
    assert greeted(await caller.answer("Late?", name, state))


async def test_abandoned_suspended_call_ends(servers: dict[str, Any], folder: Path) -> None:
    async with gateway(servers, folder, limits={**LIMITS, "parked_ms": 200}) as era_gateway:
        caller = Caller(era_gateway, "legacy")
        name, state = await caller.asked("Nobody?")
        await until(lambda: era_gateway.noted("Nobody? over") and era_gateway.parked == 0)
        assert refused(await caller.answer("Nobody?", name, state))


async def test_suspended_calls_per_caller_are_limited(servers: dict[str, Any], folder: Path) -> None:
    async with gateway(servers, folder, limits={**LIMITS, "parked": 3, "parked_per_user": 2}) as era_gateway:
        one, two, three = [
            Caller(era_gateway, "legacy", await era_gateway.client.key(each)) for each in "abc"
        ]
        first, _ = await one.asked("1"), await one.asked("2")
        refusal = (await one.send("3"))["error"]
        assert matches("mcp", "suspended calls per caller are limited", refusal["message"])
        await two.asked("4")
        refusal = (await three.send("5"))["error"]
        assert greeted(await one.answer("1", *first))
        await three.asked("6")
