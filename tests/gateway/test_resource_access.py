"""Resources and prompts of all sources: under the same policy and through the same steps as tools."""

from typing import Any

import pytest

from tests.gateway.resource_host import ResourceHost, materials
from toolcrib.catalog import ToolOverride
from toolcrib.errors import Failed, Refused
from toolcrib.gateway import AnnouncedLists
from toolcrib.interfaces import Offer, SourceResources
from toolcrib.model import Call, Origin, RateLimit, Result
from toolcrib.policy import Context
from toolcrib.testing import a_caller, a_tool

pytestmark = pytest.mark.anyio

ANYONE = a_caller()
DOCS = materials(["x://1"], ["x://t/{n}"], ["greet"], tells=True, completes=True)
NOTES = materials(["x://1", "x://2"], [], ["greet", "note"])
NOTHING = AnnouncedLists(resources=False, tells=False, prompts=False, completes=False)


def uris(host: ResourceHost, **caller: Any) -> list[str]:
    return [each["uri"] for each in host.library.resources(a_caller(**caller)).listed()]


def names(host: ResourceHost, **caller: Any) -> list[str]:
    return [each["name"] for each in host.library.prompts(a_caller(**caller)).listed("safe")]


async def read(host: ResourceHost, uri: str, **caller: Any) -> Result:
    return await host.library.read(uri, a_caller(**caller), {})


async def contents(call: Call) -> Result:
    """Answer as a server does, with an additional part and one URI of the other source."""
    asked = call.arguments["uri"]
    listed = [{"uri": uri, "text": uri} for uri in (asked, f"{asked}/part", "x://1")]
    return Result(data={"contents": [*listed, {"uri": 7}, "odd"]})


async def test_requests_use_the_names_of_the_source() -> None:
    async def say(call: Call) -> Result:
        return Result(data={"door": call.tool.name, **call.arguments})

    host = ResourceHost(docs=DOCS, notes=NOTES, answer=say)
    asked = [
        ("x://1", "docs", "x://1"),
        ("toolcrib://notes/x://1", "notes", "x://1"),
        ("x://t/7", "docs", "x://t/7"),
    ]
    for uri, source, own in asked:
        assert (await read(host, uri)).data == {"door": f"{source}:resources/read", "uri": own}
    assert (await host.library.get("mcp_notes_greet", {"a": "b"}, ANYONE, {})).data == {
        "door": "notes:prompts/get",
        "name": "greet",
        "arguments": {"a": "b"},
    }
    bare = await host.library.get("note", None, ANYONE, {})
    assert bare.data == {"door": "notes:prompts/get", "name": "note"}


async def test_resource_request_has_the_context_of_a_call() -> None:
    seen: list[Call] = []

    async def look(call: Call) -> Result:
        seen.append(call)
        return Result(data={"messages": []})

    host, origin = ResourceHost(docs=DOCS, answer=look), Origin(agent_id="me")
    way: Any = {"origin": origin, "answers": {"q": {}}, "state": "s", "meta": {"v/x": 1}}
    result = await host.library.get("greet", None, ANYONE, way)
    (call,) = seen
    assert (call.answers, call.state, call.meta, call.origin.agent_id) == ({"q": {}}, "s", {"v/x": 1}, "me")
    assert call.origin.trace_id
    assert result.metadata is not None
    assert result.metadata.trace_id == call.origin.trace_id


async def test_uris_in_results_are_rewritten() -> None:
    host = ResourceHost(docs=DOCS, notes=NOTES, answer=contents)
    found: Any = (await read(host, "toolcrib://notes/x://2")).data
    assert [each["uri"] for each in found["contents"][:3]] == [
        "toolcrib://notes/x://2",
        "toolcrib://notes/x://2/part",
        "toolcrib://notes/x://1",
    ]
    assert found["contents"][3:] == [{"uri": 7}, "odd"]
    plain = await read(ResourceHost(docs=DOCS, answer=contents), "x://1")
    assert isinstance(plain.data, dict)
    assert plain.encoded


LINKS = [
    ("docs", "x://1", "x://1"),
    ("notes", "x://1", "toolcrib://notes/x://1"),
    ("notes", "x://2", "x://2"),
    ("notes", "x://unlisted", "toolcrib://notes/x://unlisted"),
    ("notes", "x://t/7", "toolcrib://notes/x://t/7"),
    ("notes", "https://example.com/page", "https://example.com/page"),
    ("bare", "x://1", "x://1"),
]


@pytest.mark.parametrize("source, uri, said", LINKS)
async def test_links_in_resources_resolve_to_their_source(source: str, uri: str, said: str) -> None:
    host = ResourceHost(docs=DOCS, notes=NOTES, bare=SourceResources())
    block = {"type": "resource_link", "uri": uri, "name": "one"}
    assert host.library.links(source, ANYONE)(block) == {**block, "uri": said}
    assert ResourceHost(notes=NOTES).library.links("notes", ANYONE)(block) is block


async def test_links_in_prompts_resolve_to_their_source() -> None:
    said = [{"role": "user", "content": {"type": kind, "uri": "x://1"}} for kind in ("resource_link", "text")]

    async def answer(_: Call) -> Result:
        return Result(data={"messages": [*said, "odd"]})

    host = ResourceHost(docs=DOCS, notes=NOTES, answer=answer)
    (link, text, odd) = (await host.library.get("mcp_notes_greet", None, ANYONE, {})).data["messages"]
    assert link["content"] == {"type": "resource_link", "uri": "toolcrib://notes/x://1"}
    assert (text, odd) == (said[1], "odd")
    plain = (await host.library.get("mcp_docs_greet", None, ANYONE, {})).data
    assert plain == {"messages": [*said, "odd"]}


@pytest.mark.parametrize("data", [{"contents": 7}, {}, [], "text"])
async def test_invalid_content_is_passed_through(data: Any) -> None:
    async def odd(_: Call) -> Result:
        return Result(data=data)

    assert (await read(ResourceHost(docs=DOCS, answer=odd), "x://1")).data == data


@pytest.mark.requirement("I5")
async def test_too_large_resource_is_refused() -> None:
    async def flood(_: Call) -> Result:
        return Result(data={"contents": [{"uri": "x://1", "text": "a" * 3_000}]})

    result = await read(ResourceHost(docs=DOCS, answer=flood), "x://1")
    assert result.problem is not None
    assert result.problem.code == "RESULT_TOO_LARGE"


async def test_an_error_of_the_server_comes_with_its_code() -> None:
    async def refuse(_: Call) -> Result:
        raise Failed("TOOL_FAILED", "no such thing", tool_code="-32002")

    result = await read(ResourceHost(docs=DOCS, answer=refuse), "x://1")
    assert result.problem is not None
    assert result.problem.tool_code == "-32002"


# --- policy ---


def test_contexts_select_resources_by_pseudo_tool_name() -> None:
    tools = {
        "all": None,
        "star": ("*",),
        "docs": ("docs:*",),
        "read": ("notes:resources/read",),
        "one": ("docs:tool",),
        "none": (),
    }
    host = ResourceHost(
        docs=DOCS, notes=NOTES, contexts={name: Context(tools=each) for name, each in tools.items()}
    )
    seen = {name: (len(uris(host, context=name)), len(names(host, context=name))) for name in tools}
    assert seen == {
        "all": (3, 3),
        "star": (3, 3),
        "docs": (1, 1),
        "read": (2, 0),
        "one": (0, 0),
        "none": (0, 0),
    }
    assert (uris(host, context="nowhere"), names(host, context="nowhere")) == ([], [])


async def test_hidden_resources_are_not_found() -> None:
    host = ResourceHost(docs=DOCS, notes=NOTES, overrides={"docs:resources/*": ToolOverride(hidden=True)})
    assert uris(host) == ["x://1", "x://2"]
    assert names(host) == ["mcp_docs_greet", "mcp_notes_greet", "mcp_notes_note"]
    assert (await read(host, "x://1")).data == {"uri": "x://1"}
    assert host.composed == ["notes:resources/read"]
    assert uris(host, disabled=frozenset({"notes"})) == []
    with pytest.raises(Refused, match="no resource x://1"):
        await read(host, "x://1", disabled=frozenset({"notes"}))


@pytest.mark.requirement("E1")
async def test_missing_permission_is_named_and_recorded() -> None:
    secret = ToolOverride(permissions=frozenset({"docs:read"}))
    host = ResourceHost(docs=DOCS, notes=NOTES, overrides={"docs:*": secret})
    assert uris(host) == ["x://1", "x://2"]
    ask = {"argument": {"name": "n", "value": ""}}
    refused = [
        await read(host, "toolcrib://docs/x://1"),
        await read(host, "x://t/3"),
        await host.library.get("docs:greet", {}, ANYONE, {}),
        await host.library.complete({"ref": {"uri": "x://t/{n}"}, **ask}, ANYONE, {}),
        await host.library.complete({"ref": {"name": "docs:greet"}, **ask}, ANYONE, {}),
    ]
    for result in refused:
        assert result.problem is not None
        assert result.problem.code == "PERMISSION_DENIED"
        assert "docs:read" in result.problem.message
    assert len(host.recordings.heard) == len(refused)
    assert host.composed == []
    holder = a_caller(permissions=frozenset({"docs:*"}))
    assert (await host.library.read("x://t/3", holder, {})).problem is None


async def test_denied_resource_is_not_suggested() -> None:
    """With one unreadable source, the error reveals nothing of its contents."""
    host = ResourceHost(docs=DOCS, overrides={"docs:*": ToolOverride(permissions=frozenset({"docs:read"}))})
    with pytest.raises(Refused) as refused:
        await read(host, "y://unheard-of")
    assert refused.value.problem.code == "NOT_FOUND"
    assert "docs" not in refused.value.problem.message


async def test_limits_apply_to_resources() -> None:
    slow = ToolOverride(rate_limit=RateLimit(1, 60_000), timeout=3.0, cache_ttl=60, expose_as="docs")
    host = ResourceHost(docs=DOCS, overrides={"docs:*": slow})
    door = host.catalog.snapshot.pseudo_tools["docs:resources/read"]
    assert (door.timeout, door.cache_ttl, door.exposed) == (3.0, None, "docs:resources/read")
    assert (await read(host, "x://1")).problem is None
    second = await read(host, "x://1")
    assert second.problem is not None
    assert second.problem.code == "RATE_LIMITED"


# --- unknown names ---


async def test_unknown_resource_is_refused() -> None:
    host = ResourceHost(docs=DOCS, notes=NOTES)
    endless = f"toolcrib://docs/{'x' * 10_000}"
    for uri in ("y://1", "toolcrib://nobody/x://1", "toolcrib://docs", "", endless):
        with pytest.raises(Refused) as caught:
            await read(host, uri)
        assert (caught.value.problem.code, caught.value.problem.path) == ("NOT_FOUND", "uri")
    with pytest.raises(Refused, match=r"notes:note\b"):
        await host.library.get("notes:noot", None, ANYONE, {})
    with pytest.raises(Refused, match="y://"):
        await host.library.complete({"ref": {"uri": "y://{z}"}}, ANYONE, {})


# --- completion ---


async def test_argument_completion_uses_the_pseudo_tool() -> None:
    host = ResourceHost(docs=DOCS, notes=NOTES)
    argument = {"name": "n", "value": "1"}
    prompt = {"ref": {"type": "ref/prompt", "name": "mcp_docs_greet"}, "argument": argument}
    result = await host.library.complete(prompt, ANYONE, {})
    assert result.data == {"ref": {"type": "ref/prompt", "name": "greet"}, "argument": argument}
    template = {"ref": {"type": "ref/resource", "uri": "x://t/{n}"}, "argument": argument}
    assert (await host.library.complete(template, ANYONE, {})).data == template
    assert host.composed == ["docs:prompts/complete", "docs:resources/complete"]


async def test_argument_completion_without_support_is_empty() -> None:
    host = ResourceHost(docs=DOCS, notes=NOTES)
    result = await host.library.complete({"ref": {"name": "note"}, "argument": {}}, ANYONE, {})
    assert result.data == {"completion": {"values": []}}
    assert host.composed == []


# --- announced capabilities, cached lists ---


def test_only_existing_capabilities_are_announced() -> None:
    host = ResourceHost(
        docs=DOCS, notes=NOTES, bare=SourceResources(), contexts={"notes": Context(tools=("notes:*",))}
    )
    everything = AnnouncedLists(resources=True, tells=True, prompts=True, completes=True)
    assert host.library.capabilities(ANYONE) == everything
    few = AnnouncedLists(resources=True, tells=False, prompts=True, completes=False)
    assert host.library.capabilities(a_caller(context="notes")) == few
    assert ResourceHost(bare=SourceResources()).library.capabilities(ANYONE) == NOTHING


def test_server_never_started_announces_all_capabilities() -> None:
    host = ResourceHost(servers=["late"])
    hoped = AnnouncedLists(resources=True, tells=True, prompts=True, completes=True)
    assert host.library.capabilities(ANYONE) == hoped
    host.offer("late", SourceResources())
    assert host.library.capabilities(ANYONE) == NOTHING


async def test_lists_are_rendered_once_per_audience() -> None:
    host = ResourceHost(docs=DOCS, notes=NOTES, contexts={"docs": Context(tools=("docs:*",))})
    first = host.library.resources(ANYONE)
    assert host.library.resources(a_caller(permissions=frozenset({"a:b"}))) is first
    assert host.library.resources(a_caller(context="docs")) is not first
    host.catalog.replace("tools", Offer(tools=[a_tool("tools:x")]))
    assert host.library.resources(ANYONE) is first
    await read(host, "x://1")
    host.offer("docs", materials(["x://1", "x://9"]))
    assert uris(host) == ["x://1", "x://9", "toolcrib://notes/x://1", "x://2"]
    assert names(host) == ["mcp_notes_greet", "mcp_notes_note"]
    await read(host, "x://1")
    assert host.composed == ["docs:resources/read"], "the chain of a door that is the same stays"


async def test_pseudo_tools_are_not_listed() -> None:
    host = ResourceHost(docs=DOCS)
    assert host.gateway.tools(ANYONE) == ()
    result = await host.gateway.call("docs:resources/read", {"uri": "x://1"}, ANYONE)
    assert result.problem is not None
    assert result.problem.code == "TOOL_NOT_FOUND"
