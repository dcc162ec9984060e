"""A handshake-era server that asks its client things; run as a program, it speaks over its standard streams.

Imports little, so that many of it start fast. Each tool is a function of its call.
"""

import json
import os
import sys
from collections.abc import Callable
from typing import Any

Message = dict[str, Any]
CLIENT: Message = {}
ROOTS: list[Any] = []
LEVELS: list[str] = []
META: list[Any] = []
WAITING: dict[Any, Callable[[Message], None]] = {}


def send(**message: Any) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def say(call: Message, said: Any) -> None:
    text = {"type": "text", "text": json.dumps(said)}
    send(id=call["id"], result={"content": [text], "structuredContent": {"said": said}})


def question(number: Any, method: str, params: Any, then: Callable[[Message], None]) -> None:
    WAITING[number] = then
    send(id=number, method=method, params=params)


def outcome(answer: Message) -> Any:
    return answer.get("result") or {"error": answer.get("error")}


def forget(_answer: Message) -> None:
    """Do not care."""


def ask(call: Message, method: str, params: Any) -> None:
    """Ask, and answer the call with the answer."""
    question(f"q{call['id']}", method, params, lambda answer: say(call, outcome(answer)))


def withdraw(call: Message, method: str, params: Any) -> None:
    """Ask, take the question back with the next message that comes, and answer the call."""
    number = f"q{call['id']}"
    question(number, method, params, forget)
    send(method="notifications/cancelled", params={"requestId": number})
    say(call, "never mind")


def leave_open(call: Message, method: str, params: Any) -> None:
    """Ask, answer the call without waiting, and remember what comes."""
    question(f"q{call['id']}", method, params, ROOTS.append)
    say(call, "done")


def flood(call: Message, method: str, count: int) -> None:
    """Ask many things at once; answer with how many of them were refused."""
    answers: list[Message] = []

    def take(answer: Message) -> None:
        answers.append(answer)
        if len(answers) == count:
            say(call, sum("error" in each for each in answers))

    for number in range(count):
        question(f"q{call['id']}-{number}", method, {"number": number}, take)


def log(call: Message, count: int, level: str = "info") -> None:
    for number in range(count):
        send(method="notifications/message", params={"level": level, "data": number})
    say(call, "logged")


def about(call: Message) -> None:
    """Say what is known of the client."""
    seen = {"client": CLIENT, "roots": ROOTS, "levels": LEVELS, "meta": META[-1], "pid": os.getpid()}
    say(call, seen)


def linger(call: Message) -> None:
    """Do not answer."""


def die(call: Message) -> None:
    os._exit(3)


TOOLS = {each.__name__: each for each in (ask, withdraw, leave_open, flood, log, about, linger, die)}


def initialize(message: Message) -> None:
    if os.environ.get("CURIOUS_ONCE") and not set(message["params"]["capabilities"]) >= {"roots", "sampling"}:
        sys.stderr.write("there can be only one\n")
        sys.exit(4)
    CLIENT.update(message["params"])
    result: Message = {
        "protocolVersion": "2025-06-18",
        "capabilities": {"tools": {}, "logging": {}},
        "serverInfo": {"name": "curious", "version": "1"},
    }
    send(id=message["id"], result=result)


def initialized(_message: Message) -> None:
    """Ask for roots at once, as servers do that want to know them."""
    if "roots" in CLIENT["capabilities"]:
        question("roots", "roots/list", {}, lambda answer: ROOTS.append(outcome(answer)))


def list_tools(message: Message) -> None:
    tools = [{"name": name, "inputSchema": {"type": "object"}} for name in TOOLS]
    send(id=message["id"], result={"tools": tools})


def set_level(message: Message) -> None:
    LEVELS.append(message["params"]["level"])
    send(id=message["id"], result={})


def call_tool(message: Message) -> None:
    params = message["params"]
    META.append(params.get("_meta"))
    TOOLS[params["name"]](message, **params["arguments"])


METHODS = {
    "initialize": initialize,
    "notifications/initialized": initialized,
    "tools/list": list_tools,
    "logging/setLevel": set_level,
    "tools/call": call_tool,
}


def take(message: Message) -> None:
    method = message.get("method")
    if method is None:
        WAITING.pop(message["id"], forget)(message)
    elif method in METHODS:
        METHODS[method](message)
    elif "id" in message:
        send(id=message["id"], error={"code": -32601, "message": "Method not found"})


def main() -> None:
    for line in sys.stdin:
        take(json.loads(line))


if __name__ == "__main__":
    main()
