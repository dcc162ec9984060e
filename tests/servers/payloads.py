"""A server whose texts are payloads: `payloads.py FILE`, a JSON file of `{"texts": […], "suffix": "…"}`.

Every text is in every field of a definition that a server controls, and in what a call answers with.
"""

import json
import sys
from pathlib import Path
from typing import Any

from tests.servers.plain import Lines, Server


class Payloads(Server):
    """Lists two tools for each text of a file: one with a plain name, one with the text as its name."""

    def __init__(self, path: Path) -> None:
        super().__init__("payloads", {})
        self._path = path

    def _texts(self) -> list[str]:
        content = json.loads(self._path.read_text(encoding="utf-8"))
        return [text + content["suffix"] for text in content["texts"]]

    def greet(self, params: Any) -> Any:
        joined = " ".join(self._texts())
        info = {"name": joined, "title": joined, "version": joined, "websiteUrl": joined}
        return {**super().greet(params), "serverInfo": info, "instructions": joined}

    def list(self) -> Any:
        texts = self._texts()
        plain = [definition(f"upstream-{number}", text) for number, text in enumerate(texts)]
        return {"tools": [*plain, *(definition(text, text) for text in texts)]}

    def call(self, params: Any) -> Any:
        """Answer with an error in which every text occurs, as those of tools are shown."""
        return {"isError": True, "content": [{"type": "text", "text": text} for text in self._texts()]}


def definition(name: str, text: str) -> Any:
    """Return a tool with a text in every field that takes one."""
    said = {"title": text, "description": text}
    properties = {
        text: {"type": "string", **said},
        "choice": {"type": "string", "enum": [text, f"not {text}"], **said},
        "usual": {"type": "string", "default": text, "examples": [text], **said},
    }
    return {
        "name": name,
        **said,
        "annotations": {"title": text, "readOnlyHint": True},
        "inputSchema": {"type": "object", "properties": properties, **said},
        "outputSchema": {"type": "object", "properties": {text: {"const": text, **said}}, **said},
        "icons": [{"src": text, "mimeType": text}],
        "_meta": {text: text},
    }


if __name__ == "__main__":
    Lines(Payloads(Path(sys.argv[1]))).run()
