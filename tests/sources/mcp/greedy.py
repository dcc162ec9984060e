"""A server that takes as much of one thing as it is told to; run as a program, it speaks over its streams."""

import errno
import json
import os
import sys
from collections.abc import Callable
from typing import Any


def memory(amount: int) -> Any:
    """Hold so many MiB at once."""
    try:
        return len(bytearray(amount << 20)) >> 20
    except MemoryError:
        return "MemoryError"


def memory_fatally(amount: int) -> Any:
    return len(bytearray(amount << 20)) >> 20


def files(amount: int) -> Any:
    """Open files until that fails; return how many there are then, the standard streams included."""
    opened: list[int] = []
    try:
        while len(opened) < amount:
            opened.append(os.open(os.devnull, os.O_RDONLY))
    except OSError as error:
        return [errno.errorcode[error.errno or 0], len(opened) + 3]
    return len(opened)


def processor(_: int) -> Any:
    """Calculate for ever."""
    while True:
        pass


def size(amount: int) -> Any:
    """Write a file of so many MiB."""
    path = os.environ["GREEDY_FILE"]
    try:
        with open(path, "wb") as file:  # noqa: PTH123 - pathlib would be loaded for nothing else
            for _ in range(amount):
                file.write(bytes(1 << 20))
                file.flush()
    except OSError as error:
        return [errno.errorcode[error.errno or 0], os.path.getsize(path) >> 20]  # noqa: PTH202 - the same
    return amount


def forks(amount: int) -> Any:
    """Start processes until that fails; return how many could be started.

    The system does not hold root to it, and counts all processes of a user: so become one that has no others.
    """
    if os.geteuid() == 0:
        os.setuid(54_321)
    for number in range(amount):
        try:
            pid = os.fork()
        except OSError as error:
            return [errno.errorcode[error.errno or 0], number]
        if pid == 0:
            while True:
                if not os.read(0, 1):
                    os._exit(0)
    return amount


DEEDS: dict[str, Callable[[int], Any]] = {
    each.__name__: each for each in (memory, memory_fatally, files, processor, size, forks)
}

if __name__ == "__main__":
    for line in sys.stdin:
        request = json.loads(line)
        result = {"got": DEEDS[request["method"]](request["params"]["amount"])}
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}) + "\n")
        sys.stdout.flush()
