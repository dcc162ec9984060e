"""Twelve MCP servers of other people: how each is started, one call, and what its answer must hold."""

import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.parts import require
from tests.parts.browser import SWITCHES

CONTENT = "kept in a file of the test"


@dataclass(frozen=True, kw_only=True)
class Known:
    """A server started as its own documentation says, with one call that needs no network."""

    command: tuple[str, ...]
    tool: str
    arguments: Mapping[str, Any]
    expected: str
    """Stands somewhere in the answer."""
    env: Mapping[str, str] = field(default_factory=dict[str, str])

    def settings(self) -> dict[str, Any]:
        """What it is in the config."""
        return {"transport": "stdio", "command": list(self.command), "env": dict(self.env)}


def npm(name: str, *arguments: str) -> tuple[str, ...]:
    program = require("npm_servers") / name
    return (str(require("node")), str(program), *arguments)


def everything(_: Path, __: str) -> Known:
    return Known(
        command=npm("mcp-server-everything", "stdio"),
        tool="get-sum",
        arguments={"a": 2, "b": 3},
        expected="The sum of 2 and 3 is 5",
    )


def filesystem(folder: Path, _: str) -> Known:
    file = folder / "note.txt"
    file.write_text(CONTENT)
    return Known(
        command=npm("mcp-server-filesystem", str(folder)),
        tool="read_text_file",
        arguments={"path": str(file)},
        expected=CONTENT,
    )


def memory(folder: Path, _: str) -> Known:
    entity = {"name": "crib", "entityType": "gateway", "observations": ["serves tools"]}
    return Known(
        command=npm("mcp-server-memory"),
        env={"MEMORY_FILE_PATH": str(folder / "memory.json")},
        tool="create_entities",
        arguments={"entities": [entity]},
        expected="serves tools",
    )


def sequential_thinking(_: Path, __: str) -> Known:
    thought = {"thought": "one", "nextThoughtNeeded": False, "thoughtNumber": 1, "totalThoughts": 1}
    return Known(
        command=npm("mcp-server-sequential-thinking"),
        tool="sequentialthinking",
        arguments=thought,
        expected="thoughtHistoryLength",
    )


def playwright(folder: Path, page: str) -> Known:
    config = folder / "playwright.json"
    config.write_text(
        '{"browser": {"browserName": "chromium", "launchOptions": {"args": ["'
        + '", "'.join(SWITCHES)
        + '"]}}}'
    )
    options = ("--headless", "--no-sandbox", "--isolated", "--config", str(config))
    options += ("--executable-path", str(require("chromium")), "--output-dir", str(folder / "pages"))
    return Known(
        command=npm("playwright-mcp", *options),
        tool="browser_navigate",
        arguments={"url": page},
        expected="A page of the test",
    )


def hello_world(_: Path, __: str) -> Known:
    return Known(command=npm("mcp-hello-world"), tool="echo", arguments={"message": "crib"}, expected="crib")


def time(_: Path, __: str) -> Known:
    asked = {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}
    return Known(
        command=(str(require("modern_servers") / "mcp-server-time"), "--local-timezone=UTC"),
        tool="convert_time",
        arguments=asked,
        expected="21:00",
    )


def git(folder: Path, _: str) -> Known:
    repository = folder / "repository"
    author = ["-c", "user.name=crib", "-c", "user.email=crib@example.com"]
    for words in (["init", "-q"], [*author, "commit", "-q", "--allow-empty", "-m", "the first of all"]):
        repository.mkdir(exist_ok=True)
        subprocess.run(["git", *words], cwd=repository, check=True)
    return Known(
        command=(str(require("modern_servers") / "mcp-server-git"), "--repository", str(repository)),
        tool="git_log",
        arguments={"repo_path": str(repository)},
        expected="the first of all",
    )


def fetch(folder: Path, page: str) -> Known:
    program = str(require("modern_servers") / "mcp-server-fetch")
    return Known(
        command=(program, "--ignore-robots-txt", "--allow-private-ips"),
        # Where it finds Node, it has npm fetch packages at its first call.
        env={"PATH": str(folder)},
        tool="fetch",
        arguments={"url": page},
        expected="for whoever fetches it",
    )


def sqlite(folder: Path, _: str) -> Known:
    program = str(require("legacy_servers") / "mcp-server-sqlite")
    return Known(
        command=(program, "--db-path", str(folder / "tables.db")),
        tool="read_query",
        arguments={"query": "SELECT 6 * 7 AS product"},
        expected="42",
    )


def calculator(_: Path, __: str) -> Known:
    return Known(
        command=(str(require("legacy_servers") / "mcp-server-calculator"),),
        tool="calculate",
        arguments={"expression": "2+3"},
        expected="5",
    )


def duckdb(folder: Path, _: str) -> Known:
    program = str(require("legacy_servers") / "mcp-server-duckdb")
    return Known(
        command=(program, "--db-path", str(folder / "duck.db")),
        tool="query",
        arguments={"query": "select 40 + 2"},
        expected="42",
    )


TWELVE: dict[str, Callable[[Path, str], Known]] = {
    "everything": everything,
    "filesystem": filesystem,
    "memory": memory,
    "sequential-thinking": sequential_thinking,
    "playwright": playwright,
    "hello-world": hello_world,
    "time": time,
    "git": git,
    "fetch": fetch,
    "sqlite": sqlite,
    "calculator": calculator,
    "duckdb": duckdb,
}
"""By the id a config gives them; each takes a folder of its own and the address of a page to read."""

PAGE = b"<html><title>A page of the test</title><body><p>Words for whoever fetches it.</p></body></html>"


def known(name: str, folder: Path, page: str) -> Known:
    """One of the twelve, with what it needs in a folder of its own."""
    home = folder / name
    home.mkdir(parents=True)
    return TWELVE[name](home, page)
