"""Binds the configured port or the first free default port, and reports which process occupies a port."""

import errno
import socket
from contextlib import suppress
from pathlib import Path

from toolcrib.http.hosts import is_everywhere

PORTS = range(6740, 6750)
_BACKLOG = 2048


class PortTaken(Exception):
    """No port is free to listen on; the message gives the reason and a remedy."""


def listen(host: str, port: int | None) -> socket.socket:
    """Return a socket that already listens: no other process can bind the port before the server runs."""
    family, address = _resolve(host)
    for candidate in PORTS if port is None else (port,):
        try:
            return _open(family, address, candidate)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                message = f"cannot listen on {host} port {candidate}: {error.strerror or error}"
                raise PortTaken(message) from None
    raise PortTaken(_in_the_way(host, port))


def address_of(listening: socket.socket) -> str:
    """Return the URL of a listening socket, as a browser on this machine can open it."""
    host, port = listening.getsockname()[:2]
    if is_everywhere(host):
        host = "127.0.0.1"
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _resolve(host: str) -> tuple[socket.AddressFamily, str]:
    try:
        name = host.strip("[]") or None
        found = socket.getaddrinfo(name, 0, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError as error:
        message = f"{host} is not an address of this machine: {error.strerror or error}"
        raise PortTaken(message) from None
    # A name such as localhost resolves to IPv4 and IPv6; most clients try IPv4 first.
    family, _, _, _, address = min(found, key=lambda each: each[0] != socket.AF_INET)
    return family, str(address[0])


def _open(family: socket.AddressFamily, address: str, port: int) -> socket.socket:
    opened = socket.socket(family, socket.SOCK_STREAM)
    try:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        opened.bind((address, port))
        # With SO_REUSEADDR, two sockets may be bound to one address until one of them listens.
        opened.listen(_BACKLOG)
        opened.setblocking(False)
    except BaseException:
        opened.close()
        raise
    return opened


def _in_the_way(host: str, port: int | None) -> str:
    if port is None:
        taken = "; ".join(f"{each}: {holder(each)}" for each in PORTS)
        return (
            f"every port from {PORTS.start} to {PORTS.stop - 1} on {host} is taken ({taken}); "
            "stop one of them, or choose another port with --port"
        )
    return (
        f"port {port} on {host} is taken by {holder(port)}; "
        "stop it, choose another port with --port, or leave the port out to get a free one"
    )


def holder(port: int) -> str:
    """Return a description of the process that listens on a port, as far as /proc shows it."""
    sockets = {f"socket:[{inode}]" for inode in _inodes(port)}
    for process in Path("/proc").glob("[0-9]*") if sockets else ():
        with suppress(OSError):
            if any(str(each.readlink()) in sockets for each in (process / "fd").iterdir()):
                return f"process {process.name} ({(process / 'comm').read_text().strip()})"
    return "another program, perhaps another Toolcrib"


def _inodes(port: int) -> set[str]:
    """Return the inodes of the sockets that listen on a port, from /proc/net; empty outside Linux."""
    found: set[str] = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with suppress(OSError):
            rows = [line.split() for line in Path(table).read_text().splitlines()[1:]]
            found |= {row[9] for row in rows if row[3] == "0A" and int(row[1].rpartition(":")[2], 16) == port}
    return found
