"""Resolves the client address of a request: the peer's, or the one a trusted proxy forwards."""

from collections.abc import Iterable
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolcrib.http.request import Request

Address = IPv4Address | IPv6Address
_FORWARDED = (b"x-forwarded-for", b"forwarded", b"x-real-ip")
_MOST_KNOWN = 1024


class ClientAddresses:
    """Trusts forwarding headers only from trusted proxies."""

    def __init__(self, trusted: Iterable[str] = ()) -> None:
        self._networks = tuple(ip_network(each, strict=False) for each in trusted)
        self._known: dict[str, tuple[bool, bool]] = {}

    def is_local(self, request: "Request") -> bool:
        """Return whether the request originates from this machine.

        A forwarded request does not, unless a trusted proxy names a loopback client.
        """
        peer = request.scope.get("client")
        if peer is None:
            return False
        loopback, trusted = self._known.get(peer[0]) or self._look(peer[0])
        if not (loopback or trusted):
            return False
        headers = request.headers
        if not any(name in headers for name in _FORWARDED):
            return loopback
        named = self._named(headers.get(b"x-forwarded-for", b"")) if trusted else None
        return named is not None and named.is_loopback

    def is_proxy(self, peer: str) -> bool:
        """Return whether an address belongs to a trusted proxy."""
        return bool(self._networks) and (self._known.get(peer) or self._look(peer))[1]

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

    def _look(self, peer: str) -> tuple[bool, bool]:
        address = _address(peer)
        found = (False, False) if address is None else (address.is_loopback, self._trusts(address))
        if len(self._known) < _MOST_KNOWN:
            self._known[peer] = found
        return found

    def _trusts(self, address: Address) -> bool:
        return any(address in network for network in self._networks)

    def _named(self, forwarded: bytes) -> Address | None:
        """Walk X-Forwarded-For from the right past trusted proxies: the first other address is the client."""
        client: Address | None = None
        for entry in reversed(forwarded.decode("latin-1").split(",")):
            client = _address(entry.strip())
            if client is None or not self._trusts(client):
                break
        return client


def _address(text: str) -> Address | None:
    try:
        address = ip_address(text.partition("%")[0].strip("[]"))
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address
