"""Where a request comes from: allowed hosts, and the client's address behind proxies."""

import re
from collections.abc import Iterable
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from toolcrib.http.request import Request

# --- Host allowlist: Host headers with another name are refused (protection against DNS rebinding) ---

LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})
_HOST_PATTERN = re.compile(
    r"(\[[0-9a-fA-F:.]{2,45}\]|[A-Za-z0-9_](?:[A-Za-z0-9._-]{0,252}))(?::([0-9]{1,5}))?"
)


def is_loopback(address: str) -> bool:
    """Return whether an address or a name is a loopback address."""
    try:
        return ip_address(address.strip("[]")).is_loopback
    except ValueError:
        return address.lower() == "localhost"


def is_unspecified(address: str) -> bool:
    """Return whether an address to listen on is the unspecified one: all interfaces."""
    try:
        return not address or ip_address(address.strip("[]")).is_unspecified
    except ValueError:
        return False


def split_host(host: str) -> tuple[str, str | None] | None:
    """Split a Host value into its lower-case name and its port; None if it is malformed."""
    found = _HOST_PATTERN.fullmatch(host)
    return None if found is None else (found[1].lower(), found[2])


class AllowedHosts:
    """The allowed hosts: names with any port, and pairs of a name and a port."""

    def __init__(self, bound: str, *, allowed: Iterable[str] = (), public_url: str | None = None) -> None:
        self._names: set[str] = set()
        self._exact: set[tuple[str, str]] = set()
        if is_loopback(bound) or is_unspecified(bound):
            self._names |= LOOPBACK_NAMES
        if not is_unspecified(bound):
            self._names.add(f"[{bound.lower()}]" if ":" in bound and "[" not in bound else bound.lower())
        for host in allowed:
            self._allow(host)
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


# --- Resolves the client address of a request: the peer's, or the one a trusted proxy forwards ---

Address = IPv4Address | IPv6Address
_FORWARDING_HEADERS = (b"x-forwarded-for", b"forwarded", b"x-real-ip")
_MAX_CACHED_PEERS = 1024


class ClientAddresses:
    """Trusts forwarding headers only from trusted proxies."""

    def __init__(self, trusted: Iterable[str] = ()) -> None:
        self._networks = tuple(ip_network(network, strict=False) for network in trusted)
        self._cached: dict[str, tuple[bool, bool]] = {}

    def is_local(self, request: "Request") -> bool:
        """Return whether the request originates from this machine.

        A forwarded request does not, unless a trusted proxy names a loopback client.
        """
        peer = request.scope.get("client")
        if peer is None:
            return False
        loopback, trusted = self._cached.get(peer[0]) or self._classify(peer[0])
        if not (loopback or trusted):
            return False
        headers = request.headers
        if not any(name in headers for name in _FORWARDING_HEADERS):
            return loopback
        named = self._named(headers.get(b"x-forwarded-for", b"")) if trusted else None
        return named is not None and named.is_loopback

    def is_proxy(self, peer: str) -> bool:
        """Return whether an address belongs to a trusted proxy."""
        return bool(self._networks) and (self._cached.get(peer) or self._classify(peer))[1]

    def address(self, request: "Request") -> str:
        """Return the client's address: the peer's, or the X-Forwarded-For entry set by a trusted proxy."""
        peer = request.scope.get("client")
        if peer is None:
            return ""
        # Fast path for every call: most gateways trust no proxy.
        if not self._networks or not self.is_proxy(peer[0]):
            return peer[0]
        named = self._named(request.headers.get(b"x-forwarded-for", b""))
        return peer[0] if named is None else str(named)

    def _classify(self, peer: str) -> tuple[bool, bool]:
        address = _parsed_address(peer)
        found = (False, False) if address is None else (address.is_loopback, self._trusts(address))
        if len(self._cached) < _MAX_CACHED_PEERS:
            self._cached[peer] = found
        return found

    def _trusts(self, address: Address) -> bool:
        return any(address in network for network in self._networks)

    def _named(self, forwarded: bytes) -> Address | None:
        """Walk X-Forwarded-For from the right past trusted proxies: the first other address is the client."""
        client: Address | None = None
        for entry in reversed(forwarded.decode("latin-1").split(",")):
            client = _parsed_address(entry.strip())
            if client is None or not self._trusts(client):
                break
        return client


def _parsed_address(text: str) -> Address | None:
    try:
        address = ip_address(text.partition("%")[0].strip("[]"))
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address
