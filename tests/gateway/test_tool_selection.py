"""Tool lists over a limit: which tools stay, and that the others may still be called."""

import pytest

from tests.gateway.provider_client import ProviderClient, said
from tests.texts import matches
from toolcrib.errors import Refused
from toolcrib.formats import FORMATS, PROVIDERS
from toolcrib.gateway import Declarations, DeclaredTools, ToolSelection
from toolcrib.model import Tool
from toolcrib.policy import Context
from toolcrib.testing import a_caller, a_tool, echo

pytestmark = pytest.mark.requirement("F8")

MANY = tuple(a_tool(f"x:tool-{n:03d}", category="query") for n in range(200))
WEATHER = a_tool("x:weather", description="Tells the weather of a town: rain, wind and sun.")
MAIL = a_tool("x:mail", description="Sends a letter to somebody by electronic mail.")
LAMP = a_tool("x:lamp", description="Switches the light of a room on or off.")


def client_for(*tools: Tool, used: dict[str, int] | None = None, **context: object) -> ProviderClient:
    return ProviderClient(*tools, work=echo, contexts={"default": Context(**context)}, used=used)  # type: ignore[arg-type]


def kept(client: ProviderClient, format: str = "rest", text: str = "", *, query: str = "") -> list[str]:
    caller = a_caller()
    found = client.gateway.search(caller, query)
    cut = ToolSelection(client.gateway).cut(found, caller, format, text=text, ranked=bool(query))
    return [tool.local for tool in cut]


def declared(client: ProviderClient, format: str, style: str | None = None) -> DeclaredTools:
    declaring, caller = Declarations(client.gateway), a_caller()
    return declaring.declare(
        client.gateway.tools(caller), caller, format, declaring.style(caller, format, style)
    )


def test_list_within_the_limit_is_unchanged() -> None:
    assert (
        kept(client_for(WEATHER, MAIL)) == kept(client_for(WEATHER, MAIL, max_tools=2)) == ["weather", "mail"]
    )


def test_order_is_pinned_then_relevant_then_most_used() -> None:
    tools = (*MANY[:5], WEATHER, MAIL, LAMP)
    used = {"x:tool-003": 5, "x:tool-001": 2, "x:mail": 1}
    assert kept(client_for(*tools, max_tools=2, used=used)) == ["tool-001", "tool-003"]
    rain = "will it rain today?"
    assert kept(client_for(*tools, max_tools=2, used=used), text=rain) == ["tool-003", "weather"]
    pinned = client_for(*tools, max_tools=3, used=used, pinned=("x:lamp", "x:tool-004"))
    assert kept(pinned, text=rain) == ["tool-004", "weather", "lamp"]
    assert kept(pinned, text="  ") == ["tool-003", "tool-004", "lamp"]


def test_pins_match_names_globs_tags_and_categories() -> None:
    tools = (*MANY[:3], a_tool("x:tagged", tags=("home",)), a_tool("y:other", aliases=("old",)))
    for entry, name in (
        ("tag:home", "tagged"),
        ("y:*", "other"),
        ("category:mutation", "tagged"),
        ("old", "other"),
    ):
        assert kept(client_for(*tools, max_tools=1, pinned=(entry,))) == [name]
    assert kept(client_for(*tools, max_tools=2, pinned=("*",))) == ["tool-000", "tool-001"]


def test_search_result_is_truncated_at_the_limit() -> None:
    client = client_for(LAMP, MAIL, WEATHER, max_tools=1, used={"x:lamp": 9})
    assert (
        kept(client, query="weather lamp")[:1]
        == kept(client_for(LAMP, MAIL, WEATHER), query="weather lamp")[:1]
    )


@pytest.mark.parametrize("format", FORMATS)
def test_provider_tool_limit_holds(format: str) -> None:
    spoken = PROVIDERS.get(format)
    most = None if spoken is None else spoken.bounds.tools
    tools = tuple(a_tool(f"x:tool-{n}", category="query") for n in range(600))
    found = declared(client_for(*tools), format)
    assert found.total == 600
    assert found.cut == (0 if most is None else 600 - most)
    # Every kept tool is declared once.
    assert str(found.tools).count("Does what x:tool-") == 600 - found.cut


def test_smallest_limit_wins() -> None:
    caller = a_caller()
    assert ToolSelection(client_for(WEATHER).gateway).max_tools(caller, "rest") is None
    assert ToolSelection(client_for(WEATHER).gateway).max_tools(caller, "openai_chat") == 128
    assert ToolSelection(client_for(WEATHER, max_tools=5).gateway).max_tools(caller, "openai_chat") == 5
    assert ToolSelection(client_for(WEATHER, max_tools=500).gateway).max_tools(caller, "openai_chat") == 128
    assert ToolSelection(client_for(WEATHER, provider="openai_chat").gateway).max_tools(caller, "rest") == 128
    assert (
        ToolSelection(client_for(WEATHER, provider="openai_chat").gateway).max_tools(
            a_caller(context="gone"), "rest"
        )
        is None
    )


async def test_cut_tools_are_callable_and_explained() -> None:
    client = client_for(WEATHER, MAIL, max_tools=1, pinned=("x:mail",))
    assert kept(client) == ["mail"]
    (reply,) = await client.replies(said("a", "weather"))
    assert not reply.failed
    cutting, caller = ToolSelection(client.gateway), a_caller()
    assert cutting.why_cut(MAIL, caller) is None
    why = cutting.why_cut(WEATHER, caller)
    assert why is not None
    assert matches("errors", "tool over the limit of its context", why)


# --- declarations ---


def test_omitted_tool_has_a_reason() -> None:
    schema = {"type": "object", "properties": {"what for?": {"type": "string"}, "b": {"type": "string"}}}
    needs = a_tool("x:needs", input_schema={**schema, "required": ["what for?"]})
    inside = a_tool(
        "x:inside",
        input_schema={
            "type": "object",
            "properties": {"list": {"type": "array", "items": needs.input_schema}},
        },
    )
    may = a_tool("x:may", input_schema=schema)
    found = declared(client_for(needs, may, inside, WEATHER), "gemini")
    withheld = found.as_json()["withheld"]
    assert [each["name"] for each in withheld] == ["x:needs", "x:inside"]
    (reason,) = {each["reason"] for each in withheld}
    assert matches("errors", "parameter name that a provider does not take", reason)
    assert (found.total, found.cut) == (4, 0)
    (tool,) = found.tools
    assert [each["name"] for each in tool["functionDeclarations"]] == ["may", "weather"]
    assert "what for?" not in str(tool)
    assert set(declared(client_for(needs, WEATHER), "openai_chat").as_json()) == {"tools", "total"}


def test_safe_names_replace_unsupported_ones() -> None:
    client = client_for(a_tool("x:größe messen"), a_tool("x:plain-name"))
    names = [each["name"] for each in declared(client, "anthropic", "flat").tools]
    assert names == ["gr_e_messen", "plain-name"]
    assert [each["name"] for each in declared(client, "rest", "flat").tools] == ["größe messen", "plain-name"]


def test_styles() -> None:
    client = client_for(WEATHER, style="flat")
    declaring, caller = Declarations(client.gateway), a_caller()
    assert declaring.style(caller, "rest") == "flat"
    assert declaring.style(caller, "rest", "qualified") == "qualified"
    assert Declarations(client_for(WEATHER).gateway).style(caller, "gemini") == "safe"
    with pytest.raises(Refused) as refused:
        declaring.style(caller, "gemini", "qualified")
    assert matches("errors", "name style that a provider does not take", refused.value.problem.message)


# --- what is done once ---


def test_excess_pinned_tools_are_ranked_by_relevance() -> None:
    client = client_for(*MANY[:4], WEATHER, LAMP, max_tools=2, pinned=("*",), used={"x:tool-002": 3})
    assert kept(client, text="will it rain today?") == ["tool-002", "weather"]
    assert kept(client) == ["tool-000", "tool-002"]


def test_conversation_ranks_only_search_results() -> None:
    lamps = tuple(a_tool(f"x:lamp-{n}", description="A lamp, a lamp, a lamp.") for n in range(9))
    dim = a_tool("x:dim", description="Dims a light, if it is a lamp that can be dimmed.")
    others = (a_tool(f"y:dim-{n}", description="Dims the sun.") for n in range(3))
    client = client_for(*lamps, *others, dim, max_tools=1)
    assert kept(client, query="dim sun") == ["dim-0"]
    assert kept(client, text="the lamp", query="dim sun") == ["dim"]


def test_list_options_are_parsed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    pinned, needed = list[str](), list[str]()
    pins, misfit = Context.pins, Declarations._rejected_name  # pyright: ignore[reportPrivateUsage]

    def pinning(context: Context, tool: Tool) -> bool:
        pinned.append(tool.name)
        return pins(context, tool)

    def looking(declaring: Declarations, tool: Tool, allowed: str) -> str | None:
        needed.append(tool.name)
        return misfit(declaring, tool, allowed)

    monkeypatch.setattr(Context, "pins", pinning)
    monkeypatch.setattr(Declarations, "_rejected_name", looking)
    client = client_for(*MANY, max_tools=5, pinned=("x:tool-150",))
    lists = [declared(client, "gemini").tools for _ in range(3)]
    assert lists[0] == lists[1] == lists[2]
    assert len(pinned) == len(needed) == len(MANY)
