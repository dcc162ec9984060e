"""A server whose tools answer with its name: `named.py NAME GATE TOOL...`; it waits for the file GATE."""

import sys
import time
from pathlib import Path
from typing import Any

from tests.servers.plain import Lines, Server, Tool

PAUSE = 0.01


def main(name: str, gate: str, *tools: str) -> None:
    def answer(_: Any) -> Any:
        return {"owner": name}

    while not Path(gate).exists():
        time.sleep(PAUSE)
    Lines(Server(name, {tool: Tool("Answer with the name of the server.", answer) for tool in tools})).run()


if __name__ == "__main__":
    main(*sys.argv[1:])
