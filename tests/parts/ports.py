"""Ports for servers under test, below the ephemeral range of the kernel, so that they stay free."""

import random
import socket

LOW, HIGH = 20000, 32000


def free_port() -> int:
    for _ in range(200):
        port = random.randrange(LOW, HIGH)  # noqa: S311 -- any free one will do
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise RuntimeError("no free port found between 20000 and 32000")
