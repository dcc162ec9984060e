"""A server whose list of tools is read from a file: `changing.py FILE`."""

import json
import sys
from pathlib import Path
from typing import Any

from tests.servers.plain import Lines, Server


class Changing(Server):
    """Lists the definitions in a file, and answers a call of any of them."""

    def __init__(self, path: Path) -> None:
        super().__init__("changing", {})
        self._path = path

    def list(self) -> Any:
        return {"tools": json.loads(self._path.read_text(encoding="utf-8"))}

    def call(self, params: Any) -> Any:
        return {"content": [{"type": "text", "text": params["name"]}]}


if __name__ == "__main__":
    Lines(Changing(Path(sys.argv[1]))).run()
