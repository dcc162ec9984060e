"""LangChain's own tools, and those of its MCP client, in their own environment behind a gateway of ours."""

import json
import os
import subprocess
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.gateway_process import GatewayProcess, gateway_process
from tests.hint_fields import HINT_FIELD_SET
from tests.parts import node, others, require
from tests.texts import matches

pytestmark = [
    pytest.mark.slow,
    pytest.mark.requirement("B4"),
    pytest.mark.needs("langchain"),
]

PATIENCE = 120
ROOT = Path(__file__).parents[2]
EVERYTHING = "node_modules/@modelcontextprotocol/server-everything/dist/index.js"
SURROUNDINGS = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT / 'examples'}"}


def said_by(*words: str | Path) -> str:
    """What a program says in the environment that has LangChain; warnings are errors there too."""
    # Without -P the folder of the script would stand before the packages, and ours is named like one.
    command = [str(require("langchain")), "-P", "-W", "error", *map(str, words)]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env=SURROUNDINGS, timeout=PATIENCE
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


def complete(answer: dict[str, Any]) -> None:
    """Every field of the hints, the metadata and a sentence, whatever became of the call."""
    assert set(answer["agentHints"]) >= HINT_FIELD_SET
    assert {"toolVersion", "timestamp", "executionTime", "traceId", "cached"} <= set(answer["metadata"])
    assert answer["message"]


@pytest.fixture(scope="module")
def walk() -> dict[str, Any]:
    """All that the walk tells: one process, since starting it takes longer than all its calls."""
    time_server = require("modern_servers") / "mcp-server-time"
    require("npm_servers")
    script = Path(__file__).parent / "langchain_walk.py"
    told = said_by(script, time_server, node.find_node() or node.fetch_node(), others.NPM / EVERYTHING)
    return json.loads(told)


def test_they_are_listed_under_their_names_with_their_schemas(walk: dict[str, Any]) -> None:
    tools = walk["tools"]
    assert {"tools:double", "tools:shout-text", "tools:one-text", "tools:place_order"} <= set(tools)
    shout = tools["tools:shout-text"]
    assert (shout["description"], shout["tags"]) == ("Shout a text.", ["voice"])
    assert shout["names"] == {
        "qualified": "tools:shout-text",
        "safe": "shout_text",
        "flat": "shout-text",
    }
    assert walk["mcp"]["shout_text"]["_meta"] == {"langchain/metadata": {"owner": "choir"}}
    assert tools["tools:place_order"]["permissions"] == ["orders:place"]
    assert tools["tools:place_order"]["inputSchema"]["properties"]["lines"]["type"] == "array"
    assert list(tools["tools:keep_id"]["inputSchema"]["properties"]) == ["text"]
    assert tools["tools:one-text"]["inputSchema"]["required"] == ["tool_input"]
    assert tools["tools:whoami"]["inputSchema"] == {"type": "object", "properties": {}}
    assert {"retry", "breaker", "activate"} <= set(walk["steps"])


@pytest.mark.parametrize(
    "call,data",
    [
        ("double", 43.0),
        ("whoami", "u1"),
        ("waited", "opened"),
        ("keep_id", {"text": "x", "has_id": True}),
        ("ours_alone", "nobody: x"),
        ("draw", {"word": "house", "strokes": [1, 2]}),
        ("silent", ""),
        ("shout", {"said": "HO"}),
        (
            "placed",
            {
                "lines": [{"item": "pen", "count": 2}],
                "notes": {"type": "tool_call", "deep": [{"a": None}]},
            },
        ),
        ("old", "4 ordered"),
        ("one", "one word"),
    ],
)
def test_arguments_arrive_and_answers_come_back(walk: dict[str, Any], call: str, data: Any) -> None:
    answer = walk["calls"][call]
    assert (answer["status"], answer["data"]) == ("success", data)


def test_every_answer_is_as_complete_as_any_other(walk: dict[str, Any]) -> None:
    answers = [
        *walk["calls"].values(),
        *(walk["adapted"][call] for call in walk["adapted"] if call != "listed"),
    ]
    assert len(answers) > 20
    for answer in answers:
        complete(answer)


def test_content_and_artifact_stay_apart(walk: dict[str, Any]) -> None:
    drawn = walk["calls"]["draw"]
    kinds = [(block["type"], block.get("mimeType")) for block in drawn["content"]]
    assert kinds == [("text", None), ("image", "image/png"), ("image", "image/gif")]
    assert drawn["message"] == "a house"


@pytest.mark.requirement("E11")
@pytest.mark.parametrize(
    "call,code,said,path",
    [
        ("wrong", "INVALID_ARGUMENTS", "must be a number", "arguments.number"),
        ("overfull", "INVALID_ARGUMENTS", "more", "arguments.more"),
        ("misplaced", "INVALID_ARGUMENTS", "too many notes", "arguments.notes"),
        ("odd", "INVALID_ARGUMENTS", "odd", "arguments.count"),
        ("refuse", "TOOL_FAILED", "not today", None),
        ("unsaid", "TOOL_FAILED", "nothing to shout", None),
        ("crash", "HANDLER_ERROR", "the details are in the log", None),
        ("stumble", "HANDLER_ERROR", "the details are in the log", None),
    ],
)
def test_every_failure_has_its_code(
    walk: dict[str, Any], call: str, code: str, said: str, path: str | None
) -> None:
    error = walk["calls"][call]["error"]
    assert (error["code"], error.get("path")) == (code, path)
    assert said in error["message"]
    assert "hunter2" not in json.dumps(walk["calls"][call])


def test_tool_requiring_agent_state_is_refused(walk: dict[str, Any]) -> None:
    assert walk["refused"].startswith("tool wants_a_state: state is injected by a running agent")


def test_tools_of_its_mcp_client_are_tools_too(walk: dict[str, Any]) -> None:
    told = walk["adapted"]
    assert [tool["name"] for tool in told["listed"]] == ["clock_get_current_time", "clock_convert_time"]
    assert told["listed"][0]["annotations"]["readOnlyHint"] is True
    assert told["converted"]["data"]["time_difference"] == "+8.0h"
    assert set(told["structured"]["data"]) == {"temperature", "conditions", "humidity"}
    assert [block["type"] for block in told["image"]["content"]] == ["text", "image", "text"]
    assert told["nowhere"]["error"]["code"] == "TOOL_FAILED"
    assert "Nowhere" in told["nowhere"]["error"]["message"]
    assert (told["unfit"]["error"]["code"], told["unfit"]["error"]["path"]) == (
        "INVALID_ARGUMENTS",
        "arguments.location",
    )


@pytest.mark.requirement("D10")
def test_langchain_is_not_imported_without_its_tools() -> None:
    code = "import sys, toolcrib.server, toolcrib.crib, toolcrib.sdk.langchain"
    shown = "print([name for name in sys.modules if name.startswith(('langchain', 'langsmith'))])"
    assert said_by("-c", f"{code}; {shown}") == "[]\n"


def test_the_example_prints_what_it_promises() -> None:
    assert matches(
        "sources", "the example prints what it promises", said_by(ROOT / "examples/langchain_tools.py")
    )


@pytest.fixture(scope="module")
async def gateway(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[GatewayProcess]:
    """The example, served from a config as any module of tools is."""
    home = tmp_path_factory.mktemp("served")
    config, python = "functions: [langchain_tools]\n", require("langchain")
    async with gateway_process(home, config, env=SURROUNDINGS, demo=False, python=python) as running:
        yield running


async def test_over_http_they_are_like_any_other(gateway: GatewayProcess) -> None:
    async with aiohttp.ClientSession(gateway.url, headers=gateway.admin) as session:
        async with session.get("/api/tools") as listed:
            tools = {each["name"]: each for each in (await listed.json())["tools"]}
        book = tools["langchain_tools:find-book"]
        assert (book["source"], book["category"], book["tags"]) == ("langchain_tools", "query", ["books"])
        assert book["inputSchema"]["required"] == ["title"]
        assert "local:get-datetime" in tools
        asked = {"name": "find_book", "arguments": {"title": "Moby-Dick"}}
        async with session.post("/api/tools/execute", json=asked) as answered:
            answer = await answered.json()
        assert (answered.status, answer["data"]) == (200, {"title": "Moby-Dick", "shelf": "A3"})
        complete(answer)
