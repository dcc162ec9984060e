"""A log in memory and its lines."""

import io
import json
from typing import Any

from toolcrib.observe import Redactor, setup
from toolcrib.observe.log import Level, Style

CANARY = "c4n4ry-v4lu3"


class Lines:
    """A log whose lines can be read; it knows one secret by default."""

    def __init__(
        self,
        level: Level = "info",
        *,
        secrets: tuple[str, ...] = (CANARY,),
        style: Style = "json",
        arguments: bool = True,
    ) -> None:
        self.stream = io.StringIO()
        self.log = setup(level, self.stream, Redactor(secrets), style=style, arguments=arguments)

    def text(self) -> str:
        assert self.log.sync(5)
        return self.stream.getvalue()

    def read(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.text().split("\n")[:-1]]
