"""The valid calls that faults are made from, one for each tool, and none of them an example of its tool."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench.hints.faults import ValidCall
from bench.hints.gateway import RobotGateway
from bench.hints.toolset import Request, Signature
from toolcrib.demo.apps import DEMO_USER

CORPUS = Path(__file__).resolve().parent / "corpus"


def valid_calls(opened: RobotGateway) -> list[ValidCall]:
    """Return the call of every tool that the gateway has.

    Tools that need a network, a person to answer, a sound card or energy have none, nor have those whose call
    cannot be repeated. A call is never an example of its tool: who suggests examples would seem to repair it.
    """
    found: list[ValidCall] = []
    for entry in load("calls.json", opened.folder):
        signature = opened.tools.find(entry["tool"])
        if signature is not None:
            found.append(_call(signature, entry))
    return found


def load(name: str, folder: Path) -> list[Mapping[str, Any]]:
    """Read a file of the corpus; {folder} in a text is the folder of the MCP servers."""
    text = (CORPUS / name).read_text(encoding="utf-8")
    return json.loads(text.replace("{folder}", str(folder)))


def _call(signature: Signature, entry: Mapping[str, Any]) -> ValidCall:
    before = tuple(Request(each["tool"], each["arguments"]) for each in entry.get("before", ()))
    user = DEMO_USER if signature.tool.family == "app" else None
    request = Request(signature.tool.name, entry["arguments"])
    return ValidCall(request=request, before=before, user=user)
