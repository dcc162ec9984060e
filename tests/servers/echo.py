"""A server whose one tool returns its arguments."""

from typing import Any

from tests.servers.plain import Lines, Server, Tool

SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}


def echo(given: Any) -> Any:
    return given


ECHO = Server("echo", {"echo": Tool("Echoes what it is given.", echo, SCHEMA, query=True)})

if __name__ == "__main__":
    Lines(ECHO).run()
