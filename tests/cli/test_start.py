"""A start loads what it needs and nothing else: a migration library only where something must migrate."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.processes import environment

pytestmark = pytest.mark.slow

START = """
import os, sys, anyio
from toolcrib.runtime import build
from toolcrib.config import default_document

async def start():
    async with build(default_document(os.environ), env=os.environ):
        print(" ".join(sorted({"alembic", "sqlalchemy", "opentelemetry", "requests"} & set(sys.modules))))

anyio.run(start)
"""
HELP = """
import sys
from toolcrib.cli import run
run(["--help"])
print(sorted({"mcp", "sqlalchemy", "pydantic", "aiohttp", "uvicorn", "rich"} & set(sys.modules)))
"""
STDIO = """
import sys
from toolcrib.cli import run
run(["stdio"])
print(" ".join(sys.modules))
"""
ASKED = (
    {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        },
    },
    {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
)
OF_A_SERVER = {"uvicorn", "httptools", "prometheus_client", "toolcrib.server", "toolcrib.http.runner"}
OF_OTHERS = {"aiohttp", "yarl", "toolcrib.egress.client", "toolcrib.sources.mcp.source"}
OF_TERMINALS = {"rich", "alembic", "opentelemetry", "requests", "mcp", "starlette", "watchfiles"}


def _lines(program: str, folder: Path, said: str = "") -> list[str]:
    command = [sys.executable, "-c", program]
    done = subprocess.run(
        command, cwd=folder, env=environment(), input=said, capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines()


def _last_line(program: str, folder: Path) -> str:
    return _lines(program, folder)[-1]


def test_start_does_not_import_migrations(tmp_path: Path) -> None:
    assert _last_line(START, tmp_path) == "sqlalchemy"
    assert _last_line(START, tmp_path) == "sqlalchemy"


def test_asking_for_help_loads_no_framework(tmp_path: Path) -> None:
    assert _last_line(HELP, tmp_path) == "[]"


def test_a_client_over_stdio_waits_for_nothing_it_does_not_use(tmp_path: Path) -> None:
    """No server, no HTTP and no vendor's client is loaded where no MCP server is configured."""
    (tmp_path / "toolcrib.yaml").write_text("{}")
    said = "".join(json.dumps(message) + "\n" for message in ASKED)
    welcome, listed, loaded = _lines(STDIO, tmp_path, said)
    assert json.loads(welcome)["result"]["serverInfo"]["name"] == "toolcrib"
    assert json.loads(listed)["result"]["tools"]
    assert not (OF_A_SERVER | OF_OTHERS | OF_TERMINALS) & set(loaded.split())
