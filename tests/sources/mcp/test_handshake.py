"""How a server speaks is found out once, with care for those that die or fall silent at a new question."""

from typing import Any

import anyio
import pytest

from tests.simulated_clock import simulated_clock
from tests.sources.mcp.scripted_connection import UNKNOWN_METHOD, ScriptedConnection, legacy, modern
from toolcrib.sources.mcp import handshake as module
from toolcrib.sources.mcp.connection import (
    ConnectionLost,
    HttpStatusError,
    InvalidResponse,
    JsonRpcError,
    NotSent,
    ServerError,
)
from toolcrib.sources.mcp.handshake import Handshake, ServerIntroduction

pytestmark = [pytest.mark.anyio, simulated_clock]


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "DISCOVERY_TIMEOUT_SECONDS", 0.01)


async def greet(server: ScriptedConnection, greeter: Handshake | None = None) -> ServerIntroduction:
    with anyio.fail_after(5):
        return await (greeter or Handshake()).negotiate(server)


async def test_modern_server_needs_one_probe_and_no_handshake() -> None:
    server = ScriptedConnection(server__discover=modern(tools={"listChanged": True}))
    found = await greet(server)
    assert found == ServerIntroduction(
        era="modern",
        revision="2026-07-28",
        name="scripted",
        version="3.1",
        has_tools=True,
        notifies_tools=True,
    )
    assert [method for method, _ in server.asked] == ["server/discover"]
    assert server.spoken == [("modern", "2026-07-28")]
    assert not server.told


async def test_probe_has_client_info_and_all_capabilities() -> None:
    server = ScriptedConnection(server__discover=modern())
    await greet(server)
    meta = server.asked[0][1]["_meta"]
    assert meta["io.modelcontextprotocol/protocolVersion"] == "2026-07-28"
    assert meta["io.modelcontextprotocol/clientInfo"]["name"] == "toolcrib"
    assert meta["io.modelcontextprotocol/clientCapabilities"] == {
        "roots": {},
        "sampling": {},
        "elicitation": {"form": {}, "url": {}},
    }


@pytest.mark.requirement("B2")
@pytest.mark.parametrize("revision", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
async def test_every_revision_with_a_handshake_is_spoken(revision: str) -> None:
    server = ScriptedConnection(initialize=legacy(revision, tools={"listChanged": True}))
    found = await greet(server)
    assert (found.era, found.revision, found.notifies_tools) == ("legacy", revision, True)
    asked = dict(server.asked)["initialize"]
    assert asked["protocolVersion"] == "2025-11-25"
    assert asked["capabilities"]["sampling"] == {}
    assert server.told == ["notifications/initialized"]
    assert server.spoken == [("modern", "2026-07-28"), ("legacy", "2025-11-25"), ("legacy", revision)]


@pytest.mark.parametrize(
    "answer",
    [
        UNKNOWN_METHOD,
        JsonRpcError(-32022, "unsupported"),
        HttpStatusError(400, "no session"),
        HttpStatusError(404, "not found"),
        InvalidResponse("not JSON"),
        {},
        {"supportedVersions": "2026-07-28"},
        {"supportedVersions": ["2027-01-01"]},
    ],
)
async def test_any_probe_answer_but_success_leads_to_handshake(answer: Any) -> None:
    found = await greet(ScriptedConnection(server__discover=answer, initialize=legacy()))
    assert found.era == "legacy"


@pytest.mark.usefixtures("hasty")
async def test_silent_probe_falls_back_to_handshake() -> None:
    found = await greet(ScriptedConnection(server__discover=None, initialize=legacy()))
    assert found.era == "legacy"


@pytest.mark.usefixtures("hasty")
async def test_slow_modern_server_is_probed_again_after_refusal() -> None:
    refused = JsonRpcError(-32022, "this connection is modern")
    server = ScriptedConnection(server__discover=[None, modern()], initialize=refused)
    assert (await greet(server)).era == "modern"
    assert server.spoken[-1] == ("modern", "2026-07-28")


@pytest.mark.parametrize("refusal", [JsonRpcError(-32000, "no"), HttpStatusError(401, "who are you?")])
async def test_server_refusing_both_eras_is_an_error(refusal: ServerError) -> None:
    with pytest.raises(type(refusal), match=str(refusal)):
        await greet(ScriptedConnection(initialize=refusal))


@pytest.mark.parametrize("revision", ["2023-01-01", 7, None])
async def test_an_unknown_revision_is_an_error_that_names_it(revision: Any) -> None:
    with pytest.raises(ConnectionError, match=f"'{revision}'.*2024-11-05"):
        await greet(ScriptedConnection(initialize=legacy(revision)))


@pytest.mark.parametrize("era, answers", [("modern", {"server__discover": modern()}), ("legacy", {})])
async def test_working_era_is_remembered(era: str, answers: dict[str, Any]) -> None:
    server, greeter = ScriptedConnection(initialize=legacy(), **answers), Handshake()
    await greet(server, greeter)
    server.asked.clear()
    assert (await greet(server, greeter)).era == era
    assert len(server.asked) == 1


async def test_server_that_changed_era_is_probed_again() -> None:
    greeter = Handshake()
    await greet(ScriptedConnection(initialize=legacy()), greeter)
    upgraded = ScriptedConnection(initialize=JsonRpcError(-32022, "unsupported"), server__discover=modern())
    assert (await greet(upgraded, greeter)).era == "modern"
    assert (await greet(ScriptedConnection(initialize=legacy()), greeter)).era == "legacy"


async def test_server_killed_by_probe_gets_handshake_on_next_run() -> None:
    greeter = Handshake()
    server = ScriptedConnection(server__discover=ConnectionLost("it exited"), initialize=legacy())
    with pytest.raises(ConnectionLost):
        await greet(server, greeter)
    server.asked.clear()
    assert (await greet(server, greeter)).era == "legacy"
    assert [method for method, _ in server.asked] == ["initialize"]


async def test_crashing_server_is_tried_in_both_eras_in_turn() -> None:
    greeter, server = (
        Handshake(),
        ScriptedConnection(server__discover=ConnectionLost("dead"), initialize=ConnectionLost("dead")),
    )
    for _ in range(4):
        with pytest.raises(ConnectionLost):
            await greet(server, greeter)
    asked = [method for method, _ in server.asked]
    assert asked == ["server/discover", "initialize", "server/discover", "initialize"]


async def test_one_crash_does_not_forget_the_era() -> None:
    greeter = Handshake()
    await greet(ScriptedConnection(server__discover=modern()), greeter)
    with pytest.raises(ConnectionLost):
        await greet(ScriptedConnection(server__discover=ConnectionLost("crashed")), greeter)
    back = ScriptedConnection(server__discover=modern(), initialize=legacy())
    assert (await greet(back, greeter)).era == "modern"


async def test_unreachable_server_does_not_change_the_known_era() -> None:
    greeter, server = Handshake(), ScriptedConnection(server__discover=[NotSent("refused"), modern()])
    with pytest.raises(NotSent):
        await greet(server, greeter)
    assert (await greet(server, greeter)).era == "modern"


async def test_sse_transport_is_never_probed() -> None:
    greeter = Handshake("legacy")
    server = ScriptedConnection(
        initialize=[legacy(), ConnectionLost("dead"), JsonRpcError(-1, "no"), legacy()]
    )
    await greet(server, greeter)
    with pytest.raises(ConnectionLost):
        await greet(server, greeter)
    with pytest.raises(JsonRpcError):
        await greet(server, greeter)
    await greet(server, greeter)
    assert {method for method, _ in server.asked} == {"initialize"}


async def test_server_info_is_truncated_sanitized_or_ignored() -> None:
    said: dict[str, Any] = dict(legacy())
    said["serverInfo"] = {"name": "a\u200bb" + "x" * 300, "version": 3}
    said["capabilities"] = ["tools"]
    found = await greet(ScriptedConnection(initialize=said))
    assert found.name.startswith("abx")
    assert len(found.name) < 201
    assert (found.version, found.has_tools, found.notifies_tools) == ("", False, False)
