"""A server that does what it is told, good or bad; run as a program, it speaks over its standard streams.

Each request's method is a behaviour; `params` are its settings. Imports little, so that it starts fast.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

Message = dict[str, Any]
HISTORY: list[Message] = []
SLEEPER = "import time\nwhile True: time.sleep(60)"


def put(data: bytes) -> None:
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def send(message: Any) -> None:
    put(json.dumps(message).encode() + b"\n")


def answer(request: Message, result: Any) -> None:
    send({"jsonrpc": "2.0", "id": request["id"], "result": result})


def echo(request: Message) -> None:
    answer(request, request["params"])


def environment(request: Message) -> None:
    here = os.getcwd()  # noqa: PTH109 - pathlib would be loaded for nothing else
    answer(request, {"env": dict(os.environ), "cwd": here, "session": os.getsid(0), "pid": os.getpid()})


def raw(request: Message) -> None:
    """Write text as it is, then answer."""
    put(request["params"]["text"].encode("latin-1").replace(b"ID", str(request["id"]).encode()))
    if request["params"].get("answer", True):
        answer(request, {"done": True})


def huge(request: Message) -> None:
    """Write an answer of a size, with its id first or last."""
    filling = b'"result":{"text":"' + b"x" * request["params"]["size"] + b'"}'
    id = b'"id":%d' % request["id"]  # noqa: A001 - the wire's word
    parts = [id, filling] if request["params"]["first"] else [filling, id]
    put(b"{" + b",".join(parts) + b"}\n")


def endless(_: Message) -> None:
    block = b"x" * (1 << 20)
    while True:
        put(block)


def notes(request: Message) -> None:
    """Write many notifications at once, then answer."""
    count = request["params"]["count"]
    put(
        b"".join(
            b'{"jsonrpc":"2.0","method":"notifications/message","params":{"n":%d}}\n' % n
            for n in range(count)
        )
    )
    if request["params"].get("leave"):
        os._exit(0)
    answer(request, {"count": count})


def progress(request: Message) -> None:
    token = request["params"]["_meta"]["progressToken"]
    for step in range(3):
        params = {"progressToken": token, "progress": step, "total": 3, "message": f"step {step}"}
        send({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})
    answer(request, {"token": token})


def ask(request: Message) -> None:
    """Ask the client for things, and answer with its answers."""
    methods = request["params"]["methods"]
    for number, method in enumerate(methods):
        send({"jsonrpc": "2.0", "id": f"s{number}", "method": method})
    answer(request, {"answers": [json.loads(sys.stdin.buffer.readline()) for _ in methods]})


def beg(request: Message) -> None:
    """Ask over and over, and do not listen to any answer."""
    put(b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n' * request["params"]["count"])
    answer(request, {})
    pause()


def history(request: Message) -> None:
    """Answer with every message that came so far."""
    answer(request, {"messages": HISTORY})


def deaf(request: Message) -> None:
    """Answer, and read nothing until there is a file."""
    answer(request, {})
    while not os.path.exists(request["params"]["until"]):  # noqa: PTH110 - the same
        time.sleep(0.01)


def errors(request: Message) -> None:
    sys.stderr.buffer.write(request["params"]["text"].encode("latin-1") * request["params"].get("times", 1))
    sys.stderr.buffer.flush()
    answer(request, {})


def leave(request: Message) -> None:
    os._exit(request["params"]["status"])


def last_words(request: Message) -> None:
    answer(request, {"last": True})
    os._exit(3)


def close(request: Message) -> None:
    """Close a stream and stay."""
    os.close(request["params"]["stream"])
    pause()


def silent(_: Message) -> None:
    """Do not answer, but go on."""


def stubborn(request: Message) -> None:
    """Do not end when the input does; with `deaf`, not on TERM either."""
    if request["params"].get("deaf"):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    answer(request, {"pid": os.getpid()})
    pause()


def family(request: Message) -> None:
    """Have children of every kind that could be forgotten; answer with their numbers."""
    plain = _sleeper()
    session = _sleeper(start_new_session=True)
    stubborn_one = _sleeper("import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n")
    answer(request, {"pids": [plain, session, stubborn_one, _daemon(), os.getpid()]})


def _sleeper(first: str = "", *, start_new_session: bool = False) -> int:
    script = f"{first}print('up', flush=True)\n{SLEEPER}"
    child = subprocess.Popen(
        [sys.executable, "-S", "-c", script], stdout=subprocess.PIPE, start_new_session=start_new_session
    )
    if child.stdout is not None:
        child.stdout.readline()
    return child.pid


def _daemon() -> int:
    """Start a process that leaves session and parent, as daemons do."""
    told, telling = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.write(telling, str(os.getpid()).encode())
            pause()
        os._exit(0)
    os.wait()
    return int(os.read(told, 32))


def pause() -> None:
    while True:
        time.sleep(60)


BEHAVIOURS: dict[str, Callable[[Message], None]] = {
    each.__name__: each
    for each in (
        echo,
        environment,
        raw,
        huge,
        endless,
        notes,
        progress,
        ask,
        beg,
        history,
        deaf,
        errors,
        leave,
        last_words,
        close,
        silent,
        stubborn,
        family,
    )
}


def main() -> None:
    for line in sys.stdin.buffer:
        message = json.loads(line)
        HISTORY.append(message)
        behaviour = BEHAVIOURS.get(message["method"])
        if behaviour is not None:
            behaviour(message)


if __name__ == "__main__":
    main()
