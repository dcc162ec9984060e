"""A server that answers as no server should, over stdio or HTTP; asked to be `fine`, it is its healthy twin.

    python -m tests.servers.hostile [--http]

The kind of answer is an argument of the tool `misbehave`. HOSTILE_AT and HOSTILE_KIND in the environment
spoil a method instead (`initialize`, `tools/list`), whoever asks. Over HTTP the argument `events` asks for an
event stream.
"""

import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tests.servers.plain import OBJECT, Lines, Server, Tool, spelled

NEXT = b"\n"
"""Between two messages; each transport has its own way to write that."""
PIECE = b"x" * 65536
HUGE = 120 << 20
MANY = 1000
DEPTH = 50_000
PAUSE = 0.05
FOREVER = 600

Pieces = Iterator[bytes]
Kind = Callable[[bytes, bytes], Pieces]
"""Takes the correct answer and its id, both encoded; returns what is sent instead."""


def opened(id: bytes, start: bytes) -> bytes:
    return b'{"jsonrpc":"2.0","id":' + id + b',"result":' + start


def worded(id: bytes, text: bytes) -> bytes:
    return opened(id, b'{"content":[{"type":"text","text":"' + text + b'"}]}}')


def fine(answer: bytes, _: bytes) -> Pieces:
    yield answer


def silent(_: bytes, __: bytes) -> Pieces:
    yield b" "
    time.sleep(FOREVER)


def endless(_: bytes, id: bytes) -> Pieces:
    yield opened(id, b'{"content":"')
    while True:
        yield PIECE


def huge(__: bytes, id: bytes) -> Pieces:
    yield opened(id, b'{"content":[{"type":"text","text":"')
    for _ in range(HUGE // len(PIECE)):
        yield PIECE
    yield b'"}]}}'


def deep(_: bytes, id: bytes) -> Pieces:
    yield opened(id, b"[" * DEPTH + b"]" * DEPTH + b"}")


def deep_objects(_: bytes, id: bytes) -> Pieces:
    yield opened(id, b'{"content":[],"structuredContent":' + b'{"a":' * DEPTH + b"1" + b"}" * DEPTH + b"}}")


def nan(_: bytes, id: bytes) -> Pieces:
    yield opened(id, b'{"content":[],"structuredContent":{"a":NaN,"b":-Infinity}}}')


def bad_utf8(_: bytes, id: bytes) -> Pieces:
    yield worded(id, b"\xff\xfe\xc3\x28\xed\xa0\x80")


def surrogate(_: bytes, id: bytes) -> Pieces:
    yield worded(id, b"\\ud800 alone")


def shapeless(_: bytes, id: bytes) -> Pieces:
    yield opened(id, b'[{"content":7}]}')


def wrong_ids(answer: bytes, _: bytes) -> Pieces:
    ids = (b"-1", b"999999999999", b"null", b'"7"', b"1.5", b"true", b"[1]", b"{}", b"1e400", b"9" * 400)
    for number in range(MANY):
        yield worded(ids[number % len(ids)], b"for nobody")
        yield NEXT
    yield answer


UNASKED: tuple[Any, ...] = (
    {"method": "notifications/message", "params": {"level": "error", "data": "x" * 2000}},
    {"method": "notifications/progress", "params": {"progressToken": "none", "progress": 1}},
    {"method": "notifications/tools/list_changed"},
    {"method": "notifications/cancelled", "params": {"requestId": 1}},
    {"method": "notifications/" + "y" * 2000, "params": []},
    {"id": 1, "method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 1}},
    {"id": "a", "method": "elicitation/create", "params": {"message": "?", "requestedSchema": OBJECT}},
    {"id": 2, "method": "roots/list"},
    {"id": 3, "method": "ping"},
    {"id": 4, "method": "no/such"},
)


def flood(answer: bytes, _: bytes) -> Pieces:
    for number in range(MANY):
        yield spelled({"jsonrpc": "2.0", **UNASKED[number % len(UNASKED)]})
        yield NEXT
    yield answer


def stray(answer: bytes, _: bytes) -> Pieces:
    texts = (
        b"Listening ...",
        b"",
        b"null",
        b"[]",
        b"7",
        b'"text"',
        b"{}",
        b"\xef\xbb\xbf{}",
        b"\x00\x1b[2J",
        b"{",
    )
    for number in range(MANY):
        yield texts[number % len(texts)]
        yield NEXT
    yield answer


def drip(answer: bytes, _: bytes) -> Pieces:
    yield b" " * 1000
    for number in range(len(answer)):
        time.sleep(PAUSE)
        yield answer[number : number + 1]


KINDS: Mapping[str, Kind] = {
    each.__name__: each
    for each in (
        *(fine, silent, endless, huge, deep, deep_objects, nan, bad_utf8, surrogate),
        *(shapeless, wrong_ids, flood, stray, drip),
    )
}


def bomb(height: int = 40) -> Any:
    """A schema that doubles at every level: naive traversal takes 2 ** height steps."""
    rooms: Any = {
        f"r{step}": {"allOf": [{"$ref": f"#/$defs/r{step + 1}"}, {"$ref": f"#/$defs/r{step + 1}"}]}
        for step in range(height)
    }
    rooms[f"r{height}"] = {"type": "string"}
    return {"type": "object", "properties": {"value": {"$ref": "#/$defs/r0"}}, "$defs": rooms}


def strict_text(pattern: str) -> Any:
    return {"type": "object", "properties": {"text": {"type": "string", "pattern": pattern}}}


def repeated(arguments: Any) -> Any:
    return dict(arguments)


def long_text(_: Any) -> Any:
    return {"text": "a" * 64 + "!"}


def one_value(_: Any) -> Any:
    return {"value": "x"}


TOOLS: Mapping[str, Tool] = {
    "misbehave": Tool("Answer in the way that is asked for.", repeated, slow=True),
    "redos": Tool("Takes a text no quick check can judge.", repeated, strict_text("^(a+)+$")),
    "redos_words": Tool("The same in other clothes.", repeated, strict_text("^(([a-z])+.)+[A-Z]([a-z])+$")),
    "bomb": Tool("Takes a value that is checked very often.", repeated, bomb()),
    "redos_output": Tool("Gives a text no quick check can judge.", long_text, output=strict_text("^(a+)+$")),
    "bomb_output": Tool("Gives a value that is checked very often.", one_value, output=bomb()),
    "rootless": Tool("Has a schema without its root type.", repeated, {"properties": {}}),
    "absurd": Tool("Has a schema that is none.", repeated, {"type": "banana", "properties": 7}),
}


class Hostile(Server):
    """Knows how each answer is to be spoilt."""

    def __init__(self) -> None:
        super().__init__("hostile", TOOLS)
        self._at, self._kind = os.environ.get("HOSTILE_AT", ""), os.environ.get("HOSTILE_KIND", "")

    def arguments(self, message: Any) -> Any:
        params: Any = message.get("params", {})
        return params.get("arguments") or {}

    def kind(self, message: Any) -> str:
        """How a request is to be answered."""
        if message["method"] == self._at:
            return self._kind
        return self.arguments(message).get("kind", "fine")

    def spoils(self, message: Any) -> bool:
        return self.kind(message) != "fine" or bool(self.arguments(message).get("events"))

    def pieces(self, message: Any) -> Pieces:
        """Everything that is sent for a request."""
        return KINDS[self.kind(message)](spelled(self.answer(message)), spelled(message["id"]))


class HostileLines(Lines):
    """Over standard output, and never two answers at once: one that does not end keeps the others waiting."""

    def __init__(self, server: Hostile) -> None:
        super().__init__(server)
        self._hostile = server

    def reply(self, message: Any) -> None:
        with self.writing:
            for piece in self._hostile.pieces(message):
                sys.stdout.buffer.write(piece)
                sys.stdout.buffer.flush()
            sys.stdout.buffer.write(NEXT)
            sys.stdout.buffer.flush()


def main() -> None:
    if "--http" in sys.argv:
        from tests.servers.hostile_http import serve

        serve(Hostile())
    else:
        HostileLines(Hostile()).run()


if __name__ == "__main__":
    main()
