"""Config of gateways over the servers of this folder, as an operator would write it."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PYTHON = (sys.executable, "-ES", "-m")
LIMITS = {"per_user": "10000000/min"}


def config(servers: Mapping[str, Any], **more: Any) -> str:
    """A config file with these servers; JSON is YAML, too."""
    return json.dumps({"limits": LIMITS, "mcp": {"servers": dict(servers)}, **more}, indent=1)


def stdio(*command: str, **more: Any) -> dict[str, Any]:
    return {"transport": "stdio", "command": list(command), "cwd": str(ROOT), **more}


def ledger(folder: Path, *options: str, **more: Any) -> dict[str, Any]:
    """A server that keeps its books in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    return stdio(*PYTHON, "tests.servers.ledger", str(folder), *options, **more)


def shelled(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The same server behind a shell that starts it and waits, as many launchers do."""
    return {**settings, "command": ["/bin/sh", "-c", '"$@"; exit $?', "sh", *settings["command"]]}


def hostile(at: str = "", kind: str = "", **more: Any) -> dict[str, Any]:
    """A server that misbehaves on request, or always at one method."""
    env = {"HOSTILE_AT": at, "HOSTILE_KIND": kind}
    return stdio(*PYTHON, "tests.servers.hostile", env=env, **more)
