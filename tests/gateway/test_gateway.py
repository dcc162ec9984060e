"""The gateway: lookup, policy, call and completion; refusals are complete results."""

from dataclasses import replace
from typing import Any

import pytest

from tests.hint_fields import HINT_FIELD_SET
from toolcrib.catalog import Catalog
from toolcrib.errors import Refused
from toolcrib.gateway import Completion, Gateway
from toolcrib.interfaces import Handler, Offer
from toolcrib.model import Deprecation, Tool
from toolcrib.pipeline import compose
from toolcrib.policy import Context, Contexts, DisabledRule, PermissionsRule, Policy, RemovedRule
from toolcrib.steps.recover import Recover
from toolcrib.steps.verify import Verify
from toolcrib.testing import Recordings, a_caller, a_tool, echo

pytestmark = pytest.mark.anyio


class CatalogHost:
    """A gateway with a catalog, a policy and an echo handler."""

    def __init__(self, *tools: Tool, contexts: dict[str, Context] | None = None) -> None:
        sources = list(dict.fromkeys(tool.source for tool in tools))
        self.recordings, self.composed = Recordings(), list[str]()
        self.catalog = Catalog(sources)
        rule = Contexts(contexts or {})
        ids = iter(range(10_000))
        self.gateway = Gateway(
            Policy([rule, DisabledRule(), PermissionsRule(), RemovedRule(today=lambda: "2030-01-01")]),
            self._compose,
            Completion(lambda _tool: (1.0, 0.0, 0)),
            self.recordings,
            new_id=lambda: f"id-{next(ids)}",
            contexts=lambda: rule.contexts,
        )
        self.catalog.listen(self.gateway.adopt)
        for source in sources:
            self.offer(source, *(tool for tool in tools if tool.source == source))

    def offer(self, source: str, *tools: Tool) -> None:
        self.catalog.replace(source, Offer(tools=tools))

    def _compose(self, tool: Tool) -> Handler:
        self.composed.append(tool.name)
        return compose((Recover(), Verify()), tool, echo)

    async def code(self, name: str, **caller: Any) -> str | None:
        result = await self.gateway.call(name, {}, a_caller(**caller))
        return None if result.problem is None else result.problem.code


async def test_a_call_is_answered_and_completed() -> None:
    result = await CatalogHost(a_tool("x:a", version="2.1.0")).gateway.call("x:a", {"k": 1}, a_caller())
    assert result.data == {"k": 1}
    assert result.hints is not None
    assert set(result.hints.as_json()) >= HINT_FIELD_SET
    assert result.metadata is not None
    assert result.metadata.tool_version == "2.1.0"
    assert result.metadata.timestamp.endswith("Z")
    assert result.metadata.trace_id
    assert result.metadata.correlation_id
    assert result.message


async def test_missing_arguments_are_an_empty_object() -> None:
    assert (await CatalogHost(a_tool("x:a")).gateway.call("x:a", None, a_caller())).data == {}


@pytest.mark.requirement("A5")
@pytest.mark.parametrize("name", [":x", "x:", ":"])
async def test_empty_half_of_a_name_is_refused(name: str) -> None:
    assert await CatalogHost(a_tool("x:a")).code(name) == "INVALID_TOOL_NAME"


@pytest.mark.requirement("A5")
async def test_unknown_tool_suggests_visible_similar_names() -> None:
    host = CatalogHost(a_tool("x:find-card"), a_tool("x:find-cord", hidden=True))
    result = await host.gateway.call("find-crd", {}, a_caller())
    assert result.problem is not None
    assert result.problem.code == "TOOL_NOT_FOUND"
    assert result.problem.details["near"] == ["x:find-card"]
    assert "find-cord" not in result.problem.message
    assert host.recordings.refusals == ["TOOL_NOT_FOUND"]
    many = CatalogHost(*(a_tool(f"x:find-card-{letter}") for letter in "abcdef"))
    result = await many.gateway.call("find-card", {}, a_caller())
    assert result.problem is not None
    assert len(result.problem.details["near"]) == 3


@pytest.mark.requirement("D5")
async def test_each_refusal_has_its_code() -> None:
    gone = Deprecation(since="1", replacement="x:new", removal_date="2029-01-01")
    host = CatalogHost(
        a_tool("x:open"),
        a_tool("x:guarded", permissions=frozenset({"x:use"})),
        a_tool("x:hidden", hidden=True, permissions=frozenset({"x:use"})),
        a_tool("x:gone", deprecated=gone),
        contexts={"none": Context(tools=())},
    )
    assert await host.code("x:open") is None
    assert await host.code("x:guarded") == "PERMISSION_DENIED"
    assert await host.code("x:guarded", permissions=frozenset({"x:use"})) is None
    assert await host.code("x:hidden") == "TOOL_NOT_FOUND"
    assert await host.code("x:gone") == "TOOL_REMOVED"
    assert await host.code("x:open", context="none") == "TOOL_NOT_FOUND"


async def test_a_denied_call_is_recorded_with_its_tool() -> None:
    host = CatalogHost(a_tool("x:guarded", permissions=frozenset({"x:use"}), version="3.0.0"))
    result = await host.gateway.call("x:guarded", {}, a_caller())
    ((call, recorded, _),) = host.recordings.heard
    assert (call.tool.name, recorded.problem) == ("x:guarded", result.problem)
    assert result.metadata is not None
    assert result.metadata.tool_version == "3.0.0"
    assert host.recordings.refusals == []


@pytest.mark.requirement("F4")
async def test_unlisted_tools_cannot_be_called() -> None:
    host = CatalogHost(a_tool("x:a"), a_tool("x:b"), contexts={"narrow": Context(tools=("x:a",))})
    caller = a_caller(context="narrow")
    assert [tool.name for tool in host.gateway.tools(caller)] == ["x:a"]
    assert await host.code("x:b", context="narrow") == "TOOL_NOT_FOUND"


@pytest.mark.requirement("F4")
async def test_a_caller_enters_only_contexts_of_its_scope() -> None:
    gateway = CatalogHost(a_tool("x:a"), contexts={"a": Context(), "b": Context()}).gateway
    bound = a_caller(context="a", contexts=frozenset({"a"}))
    assert gateway.enter(bound, None) is bound
    assert gateway.enter(a_caller(), "b").context == "b"
    for context in ("b", "nowhere"):
        with pytest.raises(Refused) as refused:
            gateway.enter(bound, context)
        assert refused.value.problem.code == "NOT_FOUND"


@pytest.mark.requirement("A2")
async def test_tool_names_per_style_resolve() -> None:
    reading = a_tool("files:readFile", family="mcp")
    alone = CatalogHost(reading)
    (tool,) = alone.gateway.tools(a_caller())
    spelled = [alone.gateway.named(tool, style, a_caller()) for style in ("qualified", "safe", "flat")]
    assert spelled == ["files:readFile", "mcp_files_read_file", "readFile"]
    shared = CatalogHost(reading, a_tool("other:readFile", family="mcp"))
    tools = shared.gateway.tools(a_caller())
    flat = [shared.gateway.named(tool, "flat", a_caller()) for tool in tools]
    assert flat == ["readFile", "mcp_other_read_file"]


@pytest.mark.requirement("A4", "A5")
async def test_flat_name_belongs_to_first_owner_in_scope() -> None:
    first = a_tool("a:read", family="mcp", permissions=frozenset({"a:use"}))
    host = CatalogHost(
        first,
        a_tool("b:read", family="mcp"),
        a_tool("c:read", family="mcp"),
        contexts={"narrow": Context(tools=("b:*", "c:*"))},
    )
    gateway = host.gateway
    allowed = a_caller(permissions=frozenset({"a:use"}))
    assert gateway.tool("read", allowed).name == "a:read"
    assert await host.code("read") == "PERMISSION_DENIED", "a denied owner passes its name to nobody"
    narrow = replace(allowed, context="narrow")
    assert gateway.tool("read", narrow).name == "b:read", "out of its context, a tool owns nothing"
    assert [gateway.named(tool, "flat", narrow) for tool in gateway.tools(narrow)] == ["read", "mcp_c_read"]
    host.offer("a")
    with pytest.raises(Refused) as unknown:
        gateway.tool("read", allowed)
    assert unknown.value.problem.code == "TOOL_NOT_FOUND"
    assert "b:read" in (unknown.value.problem.details or {})["near"]
    assert gateway.tool("read", narrow).name == "b:read"


async def test_chains_are_composed_once_per_tool_and_definition() -> None:
    host = CatalogHost(a_tool("x:a"), a_tool("y:b"))

    async def call_all() -> list[str]:
        host.composed.clear()
        for _ in range(2):
            for name in ("x:a", "x:c", "y:b"):
                await host.gateway.call(name, {}, a_caller())
        return host.composed

    assert await call_all() == ["x:a", "y:b"]
    host.offer("x", a_tool("x:a"), a_tool("x:c"))
    assert await call_all() == ["x:c"]
    host.offer("x", replace(a_tool("x:a"), description="another"), a_tool("x:c"))
    assert await call_all() == ["x:a"]


async def test_a_list_is_rendered_once_per_version_and_audience() -> None:
    host, rendered = CatalogHost(a_tool("x:a"), a_tool("x:b", permissions=frozenset({"b:b"}))), list[int]()

    def render(tools: Any) -> bytes:
        rendered.append(len(tools))
        return b",".join(tool.name.encode() for tool in tools)

    for caller in (a_caller(id="1"), a_caller(id="2"), a_caller(id="3", permissions=frozenset({"*"}))):
        host.gateway.view(caller, "names", render)
    assert rendered == [1, 2]
    host.offer("x", a_tool("x:z"))
    assert host.gateway.view(a_caller(), "names", render) == b"x:z"


async def test_listeners_are_notified_of_catalog_changes() -> None:
    host, heard = CatalogHost(a_tool("x:a")), list[int]()
    host.gateway.listen(lambda: heard.append(host.gateway.version))
    host.offer("x")
    assert heard == [host.gateway.version]
