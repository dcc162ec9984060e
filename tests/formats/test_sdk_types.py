"""Declarations, calls and results validated with the types of the providers' SDKs."""

import json
import subprocess
from collections.abc import Generator, Iterable, Mapping, Sequence
from pathlib import Path
from subprocess import PIPE
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from mcp_types import CallToolRequest, CallToolResult
from mcp_types import Tool as McpTool

from tests.contracts.dialogues import DIALOGUES, Said
from tests.contracts.drawn import IDS, NAMES, OBJECTS, results, tools
from tests.contracts.rules import faults
from tests.gateway_process import gateway_process
from tests.parts import require
from tests.servers.client import Client, client, until
from tests.servers.settings import config
from tests.servers.third_party import TWELVE, known
from toolcrib.formats import PROVIDERS
from toolcrib.interfaces import ProviderResult
from toolcrib.model import Result, Tool

pytestmark = [pytest.mark.slow, pytest.mark.requirement("F2"), pytest.mark.needs("providers")]

SERVERS = ("node", "npm_servers", "modern_servers", "legacy_servers", "chromium")
SCRIPT = Path(__file__).parent / "sdk_types.py"
OVER = 60
"""The minimum number of tools of the real servers."""

Line = tuple[str, str, Any]
"""A format, the kind of value (a tool, a message, …) and the value."""


# Importing compiles the SDK modules, and one of them triggers a warning.
SLIP = "ignore:invalid escape sequence"
STRICT = ("-W", "error", "-W", f"{SLIP}:DeprecationWarning", "-W", f"{SLIP}:SyntaxWarning")


class Judges:
    """The SDKs in their own environment: one process, since to import them takes longer than to judge."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def say(self, lines: Iterable[Line]) -> dict[str, Any]:
        """Their verdicts on these values."""
        told, heard = self._process.stdin, self._process.stdout
        assert told is not None
        assert heard is not None
        told.writelines(f"{json.dumps(each)}\n" for each in lines)
        told.write("\n")
        told.flush()
        return json.loads(heard.readline())

    def agree(self, lines: Sequence[Line]) -> int:
        """How many were judged, all of them right; those of MCP by the SDK that is here."""
        said = self.say(lines)
        assert [f"{each['format']} {each['kind']}: {each['fault']}" for each in said["faults"]] == []
        own = [(kind, value) for name, kind, value in lines if name == "mcp" and kind in MCP]
        for kind, value in own:
            MCP[kind](value)
        return said["judged"] + len(own)


@pytest.fixture(scope="module")
def judges() -> Generator[Judges]:
    command = [str(require("providers")), "-P", *STRICT, str(SCRIPT)]
    with subprocess.Popen(command, stdin=PIPE, stdout=PIPE, text=True, encoding="utf-8") as process:
        yield Judges(process)


def _mcp_tool(value: Any) -> None:
    assert McpTool.model_validate(value).model_dump(mode="json", by_alias=True, exclude_unset=True) == value


def _mcp_call(value: Any) -> None:
    asked = {"method": value["method"], "params": value["params"]}
    assert CallToolRequest.model_validate(asked).params.name == value["params"]["name"]


def _mcp_replies(value: Any) -> None:
    for each in value:
        made = CallToolResult.model_validate(each["result"])
        assert made.model_dump(mode="json", by_alias=True, exclude_unset=True) == each["result"]


MCP = {"tool": _mcp_tool, "message": _mcp_call, "replies": _mcp_replies}


def declared_in(name: str, listed: Any) -> list[Any]:
    """The declarations in a provider's list."""
    if name.startswith("gemini"):
        return [each for tool in listed for each in tool["functionDeclarations"]]
    return listed


# --- our own tools, and those of the real servers, as a gateway lists them ---


async def listed(crib: Client, name: str) -> list[Line]:
    """The declarations of a gateway in one format, single and together; none breaks a rule."""
    answer = await crib.get(f"/api/tools?format={name}")
    each = declared_in(name, answer["tools"])
    refused = {DIALOGUES[name].declared(one)["name"]: faults(name, one) for one in each}
    assert {name: why for name, why in refused.items() if why} == {}
    return [(name, "tools", answer["tools"]), *((name, "tool", one) for one in each)]


def named(lines: Iterable[Line], name: str) -> set[str]:
    """Which tools are declared in one format."""
    apart = DIALOGUES[name].declared
    return {apart(one)["name"] for format_, kind, one in lines if (format_, kind) == (name, "tool")}


async def test_builtin_tools_fit_the_sdk_types(tmp_path: Path, judges: Judges) -> None:
    async with gateway_process(tmp_path) as gateway, client(gateway) as crib:
        lines = [line for name in PROVIDERS for line in await listed(crib, name)]
    names = named(lines, "mcp")
    assert {"get_datetime", "control_volume", "search_web", "mcp_add_server"} <= names
    assert judges.agree(lines) >= len(PROVIDERS) * len(names)


@pytest.mark.needs(*SERVERS)
async def test_tools_of_real_servers_fit_the_sdk_types(
    tmp_path: Path, judges: Judges, capsys: pytest.CaptureFixture[str]
) -> None:
    page = "data:text/html,<title>A page of the test</title>"
    servers = {name: known(name, tmp_path, page).settings() for name in TWELVE}
    async with (
        gateway_process(tmp_path, config(servers, functions=[]), demo=False) as gateway,
        client(gateway) as crib,
    ):

        async def all_up() -> bool:
            return await crib.all_up(*TWELVE)

        await until(all_up)
        lines = [line for name in PROVIDERS for line in await listed(crib, name)]
        originals = (await crib.get("/api/tools?style=safe"))["tools"]
    far = [each for each in originals if each.get("serverId")]
    assert len(far) >= OVER
    wanted = {each["name"] for each in far}
    assert [name for name in PROVIDERS if not wanted <= named(lines, name)] == []
    assert judges.agree(lines) >= len(PROVIDERS) * len(far)
    with capsys.disabled():
        print(_report(far))


def _report(originals: Sequence[Mapping[str, Any]]) -> str:
    """The losses of each format for the schemas of real servers."""
    said = ["", f"{len(originals)} tools of real servers:"]
    for name, provider in PROVIDERS.items():
        lost: dict[str, int] = {}
        touched = 0
        for each in originals:
            losses = provider.losses(Tool(name="far:x", source="far", input_schema=each["inputSchema"]))
            touched += bool(losses)
            for loss in losses:
                lost[loss.keyword] = lost.get(loss.keyword, 0) + 1
        words = ", ".join(f"{keyword} {count}" for keyword, count in sorted(lost.items()))
        said.append(f"{name}: {touched} lose something ({words or 'nothing'})")
    return "\n".join(said)


# --- tools, calls and results by chance ---


@pytest.mark.no_cover
def test_any_declaration_fits_the_sdk_types(judges: Judges) -> None:
    lines: list[Line] = []

    @given(tool=tools(), safe=NAMES)
    @settings(max_examples=150, phases=[Phase.generate], database=None)
    def draw(tool: Tool, safe: str) -> None:
        for name, provider in PROVIDERS.items():
            declared = provider.tool(tool, safe)
            lines.extend([(name, "tool", declared), (name, "tools", provider.tools([declared]))])

    draw()
    assert judges.agree(lines) >= 100 * len(PROVIDERS)


OUTCOMES = st.tuples(results(most=5_000), st.just("") | st.just("Next: look {}") | OBJECTS)
"""Results, and the hints for the model beside them."""


def test_calls_and_results_fit_the_sdk_types(judges: Judges) -> None:
    lines: list[Line] = []

    @given(call_id=IDS, safe=NAMES, arguments=OBJECTS, outcome=OUTCOMES, many=st.integers(1, 3))
    @settings(max_examples=100, phases=[Phase.generate], database=None)
    def draw(
        call_id: str, safe: str, arguments: dict[str, Any], outcome: tuple[Result, Any], many: int
    ) -> None:
        for name, provider in PROVIDERS.items():
            dialogue = DIALOGUES[name]
            said = [Said(id=f"{call_id}{n}", name=safe, arguments=arguments) for n in range(many)]
            message = dialogue.asks(said if dialogue.parallel else said[:1])
            answers = [
                ProviderResult(call=each, result=outcome[0], hints=outcome[1])
                for each in provider.calls(message)
            ]
            lines.extend([(name, "message", message), (name, "replies", provider.results(answers))])
            if dialogue.cancels is not None:
                lines.append((name, "cancellation", dialogue.cancels([call_id])))

    draw()
    assert judges.agree(lines) >= 100 * len(PROVIDERS)


def test_sdk_types_reject_invalid_values(judges: Judges) -> None:
    wrong: list[Line] = [
        ("openai_chat", "tool", {"type": "function", "name": "x", "parameters": {}}),
        ("openai_responses", "tool", {"type": "function", "name": "x", "parameters": {}}),
        ("openai_realtime", "tool", {"type": "function", "function": {"name": "x"}}),
        ("anthropic", "tool", {"name": "x", "parameters": {}}),
        ("gemini", "tool", {"name": "x", "parameters": {"type": "OBJECT", "const": 1}}),
        (
            "gemini_live",
            "replies",
            [{"toolResponse": {"functionResponses": [{"id": "1", "response": "text"}]}}],
        ),
        ("deepgram", "tool", {"name": "x", "functions": []}),
        ("elevenlabs", "tool", {"type": "client", "name": "x"}),
        ("langchain", "replies", [{"type": "tool", "content": "x"}]),
    ]
    told = judges.say(wrong)
    assert [each["format"] for each in told["faults"]] == [name for name, _, _ in wrong]
    with pytest.raises(ValueError, match="inputSchema"):
        _mcp_tool({"name": "x", "parameters": {}})
