"""A real MCP server that is prone to trouble: it fails, hangs and holds calls up as files in a folder say.

    python -m tests.supervisor.crashing_server FOLDER KIND TOOL...

One of the kind `parent` has a child, one of the kind `stray` has one that leaves for a session of its own.
Both, and their children, do not listen when they are asked to end.
"""

import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Literal, get_args

from tests.servers.plain import Lines, Server, Tool

Kind = Literal["plain", "parent", "stray"]
KINDS: tuple[Kind, ...] = get_args(Kind)
TROUBLE, RELEASE = "trouble", "release"
"""Names of the files."""
NAP = 0.01


def said(folder: Path) -> str:
    file = folder / TROUBLE
    return file.read_text() if file.exists() else ""


def main(folder: Path, kind: str, *tools: str) -> int:
    def answer(arguments: Any) -> Any:
        while arguments.get("hold") and not (folder / RELEASE).exists():
            time.sleep(NAP)
        return arguments

    if said(folder) == "fails":
        return 3
    if kind != "plain":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        subprocess.Popen(["sleep", "600"], stdin=subprocess.DEVNULL, start_new_session=kind == "stray")
    while said(folder) == "hangs":
        time.sleep(NAP)
    Lines(Server("prone", {name: Tool("Answer.", answer, slow=True) for name in tools})).run()
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), *sys.argv[2:]))
