"""The valid calls that faults are made from: one by hand for each tool, else its author's examples."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from bench.hints.faults import ValidCall
from bench.hints.gateway import RobotGateway
from bench.hints.toolset import Request, Signature
from toolcrib.demo.apps import DEMO_USER

CORPUS = Path(__file__).resolve().parent / "corpus"
LEFT_OUT = frozenset({"local:control-volume", "local:search-web", "crib:mcp_add_server"})
"""Tools that would change this machine, need a network or add tools while the robot runs."""


def valid_calls(opened: RobotGateway) -> list[ValidCall]:
    """Return the calls of every tool that has an example or a call by hand, in the order of the catalog."""
    by_hand = by_tool(load("calls.json", opened.folder))
    return [
        call
        for name, signature in opened.tools.signatures.items()
        if name not in LEFT_OUT
        for call in _calls_of(signature, by_hand.get(name))
    ]


def load(name: str, folder: Path) -> Any:
    """Read a file of the corpus; {folder} in a text is the folder of the MCP servers."""
    text = (CORPUS / name).read_text(encoding="utf-8")
    return json.loads(text.replace("{folder}", str(folder)))


def by_tool(entries: list[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    """Return the calls by hand by their tools; each tool has one."""
    found = {each["tool"]: each for each in entries}
    assert len(found) == len(entries), "a tool has two calls by hand"
    return found


def _calls_of(signature: Signature, by_hand: Mapping[str, Any] | None) -> Iterator[ValidCall]:
    tool, given = signature.tool, by_hand or {}
    before = tuple(
        Request(each["tool"], each["arguments"]) for each in cast("list[Any]", given.get("before", ()))
    )
    user = DEMO_USER if tool.family == "app" else None
    arguments = [given["arguments"]] if "arguments" in given else [each.params for each in tool.examples]
    for each in arguments:
        yield ValidCall(request=Request(tool.name, each), before=before, user=user)
