"""A server that keeps books: each execution is a file of its own, so none is lost or doubled unseen.

    python -m tests.servers.ledger FOLDER [--launch] [--child] [--stray]

`--launch` starts the real server as a child and waits for it, as npx does; `--child` has it start a child
that outlives it; with `--stray` that child also leaves for a session of its own.
"""

import itertools
import os
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from tests.servers.plain import Lines, Server, Tool

OP: Any = {"type": "object", "properties": {"op_id": {"type": "string"}}, "required": ["op_id"]}
SLOW: Any = {
    "type": "object",
    "properties": {"op_id": {"type": "string"}, "ms": {"type": "number"}},
    "required": ["op_id", "ms"],
}
RELEASE = "release"
"""Name of the file that ends every `hold`."""
NAP = 0.01
FOREVER = 600


class Ledger:
    """What is done, in files of a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._numbers = itertools.count()

    def append(self, arguments: Any) -> Any:
        name = f"{arguments['op_id']}.{os.getpid()}.{next(self._numbers)}"
        handle = os.open(self.folder / name, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
        os.fsync(handle)
        os.close(handle)
        return {"op_id": arguments["op_id"], "pid": os.getpid()}

    def slow(self, arguments: Any) -> Any:
        done = self.append(arguments)
        time.sleep(arguments["ms"] / 1000)
        return done

    def hold(self, arguments: Any) -> Any:
        done = self.append(arguments)
        while not (self.folder / RELEASE).exists():
            time.sleep(NAP)
        return done

    def crash(self, _: Any) -> Any:
        os._exit(3)

    def pid(self, _: Any) -> Any:
        return {"pid": os.getpid()}

    def tools(self) -> dict[str, Tool]:
        return {
            "append": Tool("Write one execution down.", self.append, OP),
            "slow": Tool("Write it down, then take a while.", self.slow, SLOW, slow=True),
            "hold": Tool("Write it down, then wait to be released.", self.hold, OP, slow=True),
            "pid": Tool("Say which process this is.", self.pid, query=True),
            "crash": Tool("End without a word.", self.crash),
        }


def executions(folder: Path) -> Counter[str]:
    """How often each operation was carried out."""
    return Counter(file.name.split(".")[0] for file in folder.iterdir() if "." in file.name)


def main(folder: str, *options: str) -> int:
    if "--launch" in options:
        rest = [option for option in options if option != "--launch"]
        return subprocess.call([sys.executable, "-ES", "-m", "tests.servers.ledger", folder, *rest])
    if "--child" in options or "--stray" in options:
        nap = [sys.executable, "-ES", "-c", f"import time; time.sleep({FOREVER})"]
        subprocess.Popen(nap, stdin=subprocess.DEVNULL, start_new_session="--stray" in options)
    Lines(Server("ledger", Ledger(Path(folder)).tools())).run()
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
