"""Host allowlist: Host headers with another name are refused (protection against DNS rebinding)."""

import re
from collections.abc import Iterable
from ipaddress import ip_address
from urllib.parse import urlsplit

LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})
_HOST = re.compile(r"(\[[0-9a-fA-F:.]{2,45}\]|[A-Za-z0-9_](?:[A-Za-z0-9._-]{0,252}))(?::([0-9]{1,5}))?")


def is_loopback(address: str) -> bool:
    """Return whether an address or a name is a loopback address."""
    try:
        return ip_address(address.strip("[]")).is_loopback
    except ValueError:
        return address.lower() == "localhost"


def is_everywhere(address: str) -> bool:
    """Return whether an address to listen on is the unspecified one: all interfaces."""
    try:
        return not address or ip_address(address.strip("[]")).is_unspecified
    except ValueError:
        return False


def split_host(host: str) -> tuple[str, str | None] | None:
    """Split a Host value into its lower-case name and its port; None if it is malformed."""
    found = _HOST.fullmatch(host)
    return None if found is None else (found[1].lower(), found[2])


class AllowedHosts:
    """The allowed hosts: names with any port, and pairs of a name and a port."""

    def __init__(self, bound: str, *, allowed: Iterable[str] = (), public_url: str | None = None) -> None:
        self._names: set[str] = set()
        self._exact: set[tuple[str, str]] = set()
        if is_loopback(bound) or is_everywhere(bound):
            self._names |= LOOPBACK_NAMES
        if not is_everywhere(bound):
            self._names.add(f"[{bound.lower()}]" if ":" in bound and "[" not in bound else bound.lower())
        for each in allowed:
            self._allow(each)
        self.public_origin = None
        if public_url:
            parts = urlsplit(public_url)
            self._allow(parts.netloc.rpartition("@")[2])
            self.public_origin = f"{parts.scheme}://{parts.netloc}".lower()

    def _allow(self, host: str) -> None:
        found = split_host(host) or split_host(f"[{host}]")
        if found is None:
            message = f"{host!r} is not a host name"
            raise ValueError(message)
        name, port = found
        if port is None:
            self._names.add(name)
        else:
            self._exact.add((name, port))

    def __contains__(self, host: tuple[str, str | None]) -> bool:
        name, port = host
        return name in self._names or (name, port) in self._exact
