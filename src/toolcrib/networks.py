"""Client networks: the range from which one client can choose its address."""

from ipaddress import IPv6Address, IPv6Network

IPV6_PREFIX_BITS = 64
"""Prefix length of a client's IPv6 network; the client chooses the remaining bits."""


def client_network(address: str) -> str:
    """Return the rate-limit key of a client: IPv4 address, IPv6 /64 network, or the text unchanged."""
    if ":" not in address:
        return address
    try:
        parsed = IPv6Address(address)
    except ValueError:
        return address
    if parsed.ipv4_mapped is not None:
        # IPv4 on a dual-stack socket (::ffff:0:0/96); one /64 network would contain all of IPv4.
        return str(parsed.ipv4_mapped)
    return str(IPv6Network((parsed, IPV6_PREFIX_BITS), strict=False))
