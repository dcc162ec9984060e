"""A start loads what it needs and nothing else: a migration library only where something must migrate."""

import subprocess
import sys
from pathlib import Path

from tests.cli.processes import environment

START = """
import os, sys, anyio
from toolcrib.build import build
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


def _last_line(program: str, folder: Path) -> str:
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=folder, env=environment(), capture_output=True, text=True, check=True)
    return done.stdout.splitlines()[-1]


def test_no_start_loads_what_only_an_upgrade_needs(tmp_path: Path) -> None:
    assert _last_line(START, tmp_path) == "sqlalchemy"
    assert _last_line(START, tmp_path) == "sqlalchemy"


def test_asking_for_help_loads_no_framework(tmp_path: Path) -> None:
    assert _last_line(HELP, tmp_path) == "[]"
