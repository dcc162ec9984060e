"""Networks of clients: what one client can choose its address from."""

from ipaddress import IPv6Address, IPv6Network

IPV6_PREFIX_BITS = 64
"""How much of an IPv6 address is its network: the rest is the client's own choice."""


def client_network(address: str) -> str:
    """Return what a client is counted by: an IPv4 address, an IPv6 network, else the text as it is."""
    if ":" not in address:
        return address
    try:
        parsed = IPv6Address(address)
    except ValueError:
        return address
    if parsed.ipv4_mapped is not None:
        # How a socket for both kinds shows IPv4; a network of these would be all of it.
        return str(parsed.ipv4_mapped)
    return str(IPv6Network((parsed, IPV6_PREFIX_BITS), strict=False))
