"""Gateways with MCP servers of our own, built from a config file that can be rewritten."""

import json
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from toolcrib.config import load
from toolcrib.model import Caller, Result
from toolcrib.observe import Redactor
from toolcrib.runtime import Runtime, build

ROOT = Path(__file__).resolve().parents[2]
OPERATOR = Caller(id="operator", permissions=frozenset({"*"}))
PATIENCE = 30.0


def ledger(folder: Path, **more: Any) -> dict[str, Any]:
    """A server that keeps books, as the config names it."""
    command = [sys.executable, "-ES", "-m", "tests.servers.ledger", str(folder)]
    return {"transport": "stdio", "command": command, "cwd": str(ROOT), **more}


def missing(**more: Any) -> dict[str, Any]:
    """A server whose program is not there."""
    return {"transport": "stdio", "command": ["/nowhere/at-all"], **more}


def write(path: Path, servers: dict[str, Any], **sections: Any) -> None:
    """Write a config; JSON is YAML."""
    put(path, json.dumps({"mcp": {"servers": servers}, **sections}))


def put(path: Path, text: str) -> None:
    """Write a file as it is given."""
    path.write_text(text, encoding="utf-8")


@asynccontextmanager
async def running(path: Path, redactor: Redactor | None = None) -> AsyncGenerator[Runtime]:
    """Run the gateway of a config file, with its store beside it, once its servers have settled."""
    env = {"TOOLCRIB_HOME": str(path.parent / "home")}
    async with build(load(path, env=env), env=env, redactor=redactor) as runtime:
        assert await runtime.settled(PATIENCE)
        yield runtime


async def call(runtime: Runtime, name: str, **arguments: Any) -> Result:
    """Call a tool as the operator."""
    return await runtime.gateway.call(name, arguments, OPERATOR)


def listed(runtime: Runtime, source: str) -> dict[str, bool]:
    """The tools of a source on the operator's list, and whether each is degraded."""
    return {tool.local: tool.degraded for tool in runtime.gateway.tools(OPERATOR) if tool.source == source}
