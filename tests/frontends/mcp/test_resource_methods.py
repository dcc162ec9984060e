"""Resources, prompts and completion of servers of both eras, for clients of both eras."""

import json
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from tests.frontends.mcp.resource_clients import ALL, ERAS, POOR, Client, two_servers
from tests.texts import matches
from toolcrib.mcp.revisions import LEGACY, MODERN
from toolcrib.runtime import Runtime

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
async def runtime(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Runtime]:
    async with two_servers(tmp_path_factory.mktemp("house")) as runtime:
        yield runtime


# --- lists ---


@pytest.mark.parametrize("revision", ERAS)
async def test_all_that_may_be_seen_is_listed(runtime: Runtime, revision: str) -> None:
    client = Client(runtime, revision)
    shared, large = "toolcrib://new/doc://shared", "toolcrib://new/doc://large"
    assert await client.uris() == ["doc://shared", "doc://a/one", "doc://large", shared, "doc://b/one", large]
    found = await client.result("resources/templates/list")
    assert [each["uriTemplate"] for each in found["resourceTemplates"]] == [
        "doc://a/by/{id}",
        "doc://b/by/{id}",
    ]
    names = ["greet", "a_only", "ask", "odd", "greet", "b_only", "ask", "odd"]
    sources = ["old"] * 4 + ["new"] * 4
    assert await client.names() == [f"mcp_{s}_{n}" for s, n in zip(sources, names, strict=True)]
    assert await client.at("old").names() == ["greet", "a-only", "ask", "odd"]
    flat = await client.at("flat").names()
    assert flat[:3] == ["mcp_old_greet", "a-only", "mcp_old_ask"]


async def test_cache_hints_are_sent_in_modern_era_only(runtime: Runtime) -> None:
    for method in ("resources/list", "resources/templates/list", "prompts/list"):
        found = await Client(runtime, MODERN).result(method)
        assert (found["ttlMs"], found["cacheScope"], found["resultType"]) == (5000, "private", "complete")
        assert (
            not {"ttlMs", "cacheScope", "resultType", "_meta"} & (await Client(runtime).result(method)).keys()
        )


async def test_long_lists_come_in_pages_made_once(runtime: Runtime, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolcrib.frontends.mcp.request.PAGE_SIZE", 4)
    client = Client(runtime, "2025-06-18")
    first = await client.result("resources/list")
    second = await client.result("resources/list", cursor=first["nextCursor"])
    assert [len(page["resources"]) for page in (first, second)] == [4, 2]
    assert "nextCursor" not in second
    for cursor in ("2", "x", 7):
        assert (await client.error("resources/list", cursor=cursor))["code"] == -32602


@pytest.mark.parametrize("revision", ERAS)
async def test_policy_filters_resources_and_prompts(runtime: Runtime, revision: str) -> None:
    poor = Client(runtime, revision, POOR)
    assert await poor.uris() == ["doc://shared", "doc://a/one", "doc://large"]
    few = Client(runtime, revision).at("few")
    assert (await few.uris(), len(await few.names())) == ([], 4)
    denied = await poor.error("resources/read", uri="doc://b/one")
    assert denied["code"] == -32602
    assert denied["data"]["toolcrib/error"]["code"] == "PERMISSION_DENIED"
    assert "papers:read" in denied["message"]
    unseen = await poor.error("resources/read", uri="toolcrib://hidden/doc://h/one")
    assert "no resource" not in unseen["message"], "the only source it may read was asked"


# --- contents ---


@pytest.mark.parametrize("revision", ERAS)
async def test_listed_resources_are_readable(runtime: Runtime, revision: str) -> None:
    client = Client(runtime, revision)
    expected = {
        "doc://shared": "shared by a",
        "toolcrib://new/doc://shared": "shared by b",
        "toolcrib://old/doc://shared": "shared by a",
        "doc://b/by/7": "made of doc://b/by/7",
        "toolcrib://new/doc://b/by/x%2Fy": "made of doc://b/by/x%2Fy",
    }
    assert {uri: await client.text(uri) for uri in expected} == expected
    found = await client.result("resources/read", uri="doc://shared")
    assert found["_meta"]["vendor/page"] == 1
    assert ("ttlMs" in found) is (revision == MODERN)


@pytest.mark.parametrize(
    "revision, code",
    [(LEGACY, -32002), (MODERN, -32602)],
)
async def test_missing_resource_has_the_code_of_the_era(runtime: Runtime, revision: str, code: int) -> None:
    client = Client(runtime, revision)
    # Of no server; refused by a server of the older era; and by one of the modern era.
    for uri in ("nowhere://1", "toolcrib://old/doc://none", "toolcrib://new/doc://none"):
        error = await client.error("resources/read", uri=uri)
        assert (error["code"], error["data"]["uri"]) == (code, uri)
    if revision == LEGACY:
        error = await client.error("resources/subscribe", uri="nowhere://1")
        assert (error["code"], error["data"]["uri"]) == (code, "nowhere://1")


@pytest.mark.parametrize(
    "method, params",
    [
        ("resources/read", {}),
        ("resources/read", {"uri": 7}),
        ("resources/subscribe", {"uri": ""}),
        ("prompts/get", {"name": None}),
        ("prompts/get", {"name": "greet", "arguments": []}),
        ("prompts/get", {"name": "greet", "arguments": {"who": 7}}),
        ("prompts/get", {"name": "mcp_old_great"}),
        ("prompts/get", {"name": "greet"}),
        ("prompts/list", {"cursor": []}),
        ("completion/complete", {}),
        ("completion/complete", {"ref": {"type": "ref/prompt"}, "argument": {"name": "a", "value": ""}}),
        ("completion/complete", {"ref": {"type": [], "name": "a"}, "argument": {"name": "a", "value": ""}}),
        ("completion/complete", {"ref": {"type": "ref/prompt", "name": "a-only"}, "argument": {"name": "a"}}),
        (
            "completion/complete",
            {
                "ref": {"type": "ref/prompt", "name": "a-only"},
                "argument": {"name": "a", "value": ""},
                "context": {"arguments": {"b": 1}},
            },
        ),
        (
            "completion/complete",
            {"ref": {"type": "ref/resource", "uri": "y://{z}"}, "argument": {"name": "a", "value": ""}},
        ),
    ],
)
async def test_invalid_request_is_refused(runtime: Runtime, method: str, params: Any) -> None:
    assert (await Client(runtime).error(method, **params))["code"] == -32602


@pytest.mark.requirement("I5")
@pytest.mark.parametrize("revision", ERAS)
async def test_an_answer_that_would_harm_a_client_is_none(runtime: Runtime, revision: str) -> None:
    client = Client(runtime, revision)
    for uri in ("toolcrib://old/odd://contents", "toolcrib://new/odd://content"):
        error = await client.error("resources/read", uri=uri)
        assert (error["code"], error["data"]["toolcrib/error"]["code"]) == (-32603, "CONTRACT_VIOLATION")
    error = await client.error("prompts/get", name="old:odd")
    assert error["data"]["toolcrib/error"]["code"] == "CONTRACT_VIOLATION"
    error = await client.error("resources/read", uri="doc://large")
    assert (error["code"], error["data"]["toolcrib/error"]["code"]) == (-32603, "RESULT_TOO_LARGE")


# --- prompts ---


@pytest.mark.parametrize("revision", ERAS)
@pytest.mark.parametrize("source", ["old", "new"])
async def test_a_prompt_comes_as_its_server_wrote_it(runtime: Runtime, revision: str, source: str) -> None:
    client = Client(runtime, revision)
    found = await client.result("prompts/get", name=f"{source}:greet", arguments={"who": "Ada"})
    assert found["description"] == "About greet."
    first, second = (message["content"] for message in found["messages"])
    assert matches("mcp", "a prompt comes as its server wrote it", first["text"])
    uri, text = ("doc://shared", "a") if source == "old" else ("toolcrib://new/doc://shared", "b")
    assert second == {"type": "resource_link", "uri": uri, "name": "shared"}
    assert await client.text(uri) == f"shared by {text}", "a link leads back to the server that gave it"


async def test_a_client_that_knows_fewer_blocks_gets_those_it_knows(runtime: Runtime) -> None:
    found = await Client(runtime, "2025-03-26").result("prompts/get", name="a-only")
    assert found["messages"][1]["content"] == {"type": "text", "text": "shared: doc://shared"}


async def test_a_modern_client_is_answered_with_the_question(runtime: Runtime) -> None:
    client = Client(runtime, MODERN)
    first = await client.result("prompts/get", name="new:ask")
    assert first["resultType"] == "input_required"
    assert first["inputRequests"]["who"]["method"] == "elicitation/create"
    state = first["requestState"]
    assert "raw state" not in state
    answers = {"who": {"action": "accept", "content": {"name": "Ada"}}}
    second = await client.result("prompts/get", name="new:ask", inputResponses=answers, requestState=state)
    said = json.loads(second["messages"][0]["content"]["text"].removeprefix("ask: "))
    assert said == {**answers, "state": "raw state"}
    tampered = await client.ask(
        "prompts/get", name="new:ask", inputResponses=answers, requestState=f"{state}x"
    )
    assert "error" in tampered
    other = await client.ask("prompts/get", name="new:greet", inputResponses=answers, requestState=state)
    assert "error" in other


async def test_session_client_is_asked_during_the_request(runtime: Runtime) -> None:
    found = await Client(runtime).result("prompts/get", name="new:ask")
    assert '"name": "Ada"' in found["messages"][0]["content"]["text"]


# --- completion ---


@pytest.mark.parametrize("revision", ERAS)
async def test_an_argument_is_completed_by_whose_it_is(runtime: Runtime, revision: str) -> None:
    client = Client(runtime, revision)
    for ref, said in (
        ({"type": "ref/prompt", "name": "mcp_new_greet"}, "greet A"),
        ({"type": "ref/resource", "uri": "doc://b/by/{id}"}, "doc://b/by/{id} A"),
        ({"type": "ref/resource", "uri": "toolcrib://old/doc://a/by/{id}"}, "doc://a/by/{id} A"),
    ):
        found = await client.result("completion/complete", ref=ref, argument={"name": "who", "value": "A"})
        assert found["completion"]["values"] == [said]
    many = await client.result("completion/complete", ref=ref, argument={"name": "who", "value": "many"})
    assert (len(many["completion"]["values"]), many["completion"]["hasMore"]) == (100, True)


# --- what is announced ---


async def test_capabilities_match_visible_resources(runtime: Runtime) -> None:
    materials = Client(runtime).engine.resource_methods
    everything = {
        "resources": {"listChanged": True, "subscribe": True},
        "prompts": {"listChanged": True},
        "completions": {},
    }
    assert materials.capabilities(ALL) == everything
    few = Client(runtime).at("few").peer.caller
    assert materials.capabilities(few) == {"prompts": {"listChanged": True}, "completions": {}}


async def test_subscribe_needs_a_session(runtime: Runtime) -> None:
    client = Client(runtime, LEGACY, session=None)
    assert (await client.error("resources/subscribe", uri="doc://shared"))["code"] == -32600
    assert await client.result("resources/unsubscribe", uri="doc://shared") == {}
    assert (await Client(runtime, MODERN).error("resources/subscribe", uri="doc://shared"))["code"] == -32601


async def test_explain_covers_resources(runtime: Runtime) -> None:
    console = runtime.console
    assert console.explain("new:resources/read", ALL)["visible"]
    told = console.explain("new:resources/read", POOR)
    assert "papers:read" in told["reason"]
    assert told["overrides"] == ["new:resources/read"]
    assert {"record", "limit", "breaker", "activate", "attempt"} <= set(told["steps"])
    assert matches("mcp", "explain covers resources", console.explain("hidden:resources/read", ALL)["reason"])
    assert not [each for each in console.status()["warnings"] if "prompts/get" in each]
