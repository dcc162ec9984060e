"""The MCP server tools are well defined, use the setting names of the config, and report the outcome."""

from typing import Any, cast

import pytest

from toolcrib.admin import ServerAdmin
from toolcrib.builtin.admin_tools import server_tools
from toolcrib.errors import Refused
from toolcrib.model import LIBRARY, Actor, JsonObject
from toolcrib.sdk import Registry, ToolResult
from toolcrib.testing import a_caller

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("B8")]


ACTOR = Actor.of(a_caller(), "rest")


class StandIn:
    """A stand-in for the server administration: records calls and returns prepared answers."""

    def __init__(self, **answer: Any) -> None:
        self.answer: dict[str, Any] = {"state": "up", "tools": [], "error": None, **answer}
        self.added: list[tuple[str, JsonObject]] = []
        self.actors: list[Actor] = []

    async def add(self, server_id: str, settings: JsonObject, *, actor: Actor) -> JsonObject:
        self.actors.append(actor)
        if "refusal" in self.answer:
            raise self.answer["refusal"]
        self.added.append((server_id, settings))
        return {"server": server_id, **self.answer}

    def status(self) -> JsonObject:
        return {"enabled": False, "servers": {}, "tool_routes": {}}


async def run(stand_in: StandIn, tool: int, arguments: JsonObject) -> ToolResult[Any]:
    return await server_tools(cast("ServerAdmin", stand_in), lambda: ACTOR, lambda: None)[tool](arguments)


def test_there_are_two_and_nothing_falls_short() -> None:
    tools = server_tools(cast("ServerAdmin", StandIn()), lambda: LIBRARY, lambda: None)
    assert [each.bind("crib", "core").name for each in tools] == [
        "crib:mcp_add_server",
        "crib:mcp_list_servers",
    ]
    assert [set(each.definition.permissions) for each in tools] == [{"crib:servers"}, {"crib:status"}]
    found = [finding for each in tools for finding in Registry().validate(each)]
    assert {finding.rule for finding in found} == {"name"}, "callers know them by these names"


@pytest.mark.parametrize(
    "given, settings",
    [
        ({"url": "https://x.example/mcp"}, {"transport": "http", "url": "https://x.example/mcp"}),
        (
            {"url": "https://x.example/sse", "transport": "sse", "headers": {"A": "b"}},
            {"transport": "sse", "url": "https://x.example/sse", "headers": {"A": "b"}},
        ),
        ({"command": "npx", "args": ["-y", "x"]}, {"transport": "stdio", "command": ["npx", "-y", "x"]}),
        ({"command": ["npx", "x"]}, {"transport": "stdio", "command": ["npx", "x"]}),
        ({"command": "x", "start": "lazy"}, {"transport": "stdio", "command": ["x"], "start": "lazy"}),
        ({}, {"transport": "http"}),
    ],
)
async def test_arguments_become_settings_as_the_config_spells_them(
    given: JsonObject, settings: JsonObject
) -> None:
    stand_in = StandIn()
    await run(stand_in, 0, {"server_id": "x", **given})
    assert stand_in.added == [("x", settings)]


async def test_arguments_of_a_program_need_the_program() -> None:
    with pytest.raises(Refused) as refused:
        await run(StandIn(), 0, {"server_id": "x", "url": "https://x.example", "args": ["-y"]})
    assert (refused.value.problem.code, refused.value.problem.path) == ("INVALID_ARGUMENTS", "args")


@pytest.mark.parametrize(
    "answer, said",
    [
        ({"tools": ["mcp_x_a"]}, "I added x. One tool can be used now."),
        ({"tools": ["mcp_x_a", "mcp_x_b"]}, "I added x. 2 tools can be used now."),
        ({}, "I added x. No tools can be used now."),
        ({"state": "down", "error": "it ended"}, "I added x, but it does not run yet. It is tried again."),
        ({"state": "asleep"}, "I added x. It starts with the first call."),
        ({"state": "starting"}, "I added x. It starts."),
    ],
)
async def test_answer_reports_the_outcome(answer: JsonObject, said: str) -> None:
    result = await run(StandIn(**answer), 0, {"server_id": "x", "url": "https://x.example"})
    assert result.message == said
    assert result.data["state"] == answer.get("state", "up")


async def test_invalid_server_is_argument_error_other_codes_are_kept() -> None:
    faults = {
        "faults": [
            {"where": "mcp.servers.x.url", "message": "must be a URL, such as https://tools.example.com"}
        ]
    }
    for code, expected in (("INVALID_REQUEST", "INVALID_ARGUMENTS"), ("ALREADY_EXISTS", "ALREADY_EXISTS")):
        stand_in = StandIn(refusal=Refused(code, "said", details=faults))
        with pytest.raises(Refused) as refused:
            await run(stand_in, 0, {"server_id": "x", "url": "nowhere"})
        assert refused.value.problem.code == expected
        assert refused.value.problem.details == faults
        said = (
            "url must be a URL, such as https://tools.example.com"
            if expected == "INVALID_ARGUMENTS"
            else "said"
        )
        assert refused.value.problem.message == said


@pytest.mark.requirement("I5")
async def test_a_forbidden_address_names_the_argument() -> None:
    refusal = Refused("PERMISSION_DENIED", "said", path="mcp.servers.x.url")
    stand_in = StandIn(refusal=refusal)
    with pytest.raises(Refused) as refused:
        await run(stand_in, 0, {"server_id": "x", "url": "http://127.0.0.1"})
    problem = refused.value.problem
    assert (problem.code, problem.path, problem.message) == ("PERMISSION_DENIED", "arguments.url", "said")
    assert stand_in.actors == [ACTOR]


async def test_an_empty_list_is_a_list() -> None:
    result = await run(StandIn(), 1, {})
    assert (result.data, result.message) == ({"enabled": False, "servers": []}, "There are no MCP servers.")
