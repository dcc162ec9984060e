"""Classifies IP addresses as public, private or forbidden, by its own tables.

The standard library's `is_private` and `is_global` differ between versions of Python and let through
addresses that embed another one (NAT64, 6to4), so nothing here depends on them.
"""

from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

_FORBIDDEN = {
    "a link-local or metadata address": (
        "169.254.0.0/16",
        "fe80::/10",
        # Metadata services of clouds, which return credentials, outside the link-local range.
        "100.100.100.200/32",
        "168.63.129.16/32",
        "192.0.0.192/32",
        "fd00:ec2::254/128",
        "fd20:ce::254/128",
    ),
    "a multicast address": ("224.0.0.0/4", "ff00::/8"),
    "an unspecified or reserved address": ("0.0.0.0/8", "240.0.0.0/4", "192.88.99.0/24", "::/128"),
    "an address that stands for another one": (
        "64:ff9b::/96",
        "64:ff9b:1::/48",
        "::ffff:0:0:0/96",
        "2001::/23",
        "2002::/16",
    ),
}

_PRIVATE = (
    "10.0.0.0/8",
    "100.64.0.0/10",
    "127.0.0.0/8",
    "172.16.0.0/12",
    "192.0.0.0/24",
    "192.0.2.0/24",
    "192.168.0.0/16",
    "198.18.0.0/15",
    "198.51.100.0/24",
    "203.0.113.0/24",
    "::1/128",
    "2001:db8::/32",
    "3fff::/20",
    "fc00::/7",
    "fec0::/10",
)

FORBIDDEN = tuple((ip_network(text), what) for what, texts in _FORBIDDEN.items() for text in texts)
PRIVATE = tuple(ip_network(text) for text in _PRIVATE)
LOOPBACK: tuple[Network, ...] = (IPv4Network("127.0.0.0/8"), IPv6Network("::1/128"))
UNICAST = IPv6Network("2000::/3")
"""The allocated global unicast range of IPv6; any other address that is not private is refused."""


def fault(text: str, allowed: Iterable[Network]) -> str | None:
    """Return why an address is refused, or None if it is allowed; `allowed` are private networks."""
    try:
        address = _inside(ip_address(text))
    except ValueError:
        return "it is not an internet address"
    for network, what in FORBIDDEN:
        if address in network:
            return f"it is {what}, and those are never allowed"
    if any(address in network for network in PRIVATE):
        if any(address in network for network in allowed):
            return None
        return "it is a private address, and allow_private does not name its network"
    if isinstance(address, IPv6Address) and address not in UNICAST:
        return "it is an unspecified or reserved address, and those are never allowed"
    return None


def private_network(text: str) -> Network | None:
    """Return the private network that contains an address; None if it is public, forbidden or invalid."""
    try:
        address = _inside(ip_address(text))
    except ValueError:
        return None
    if any(address in network for network, _ in FORBIDDEN):
        return None
    return next((network for network in PRIVATE if address in network), None)


def _inside(address: Address) -> Address:
    """Unwrap an IPv4-mapped or IPv4-compatible IPv6 address (`::ffff:127.0.0.1`, `::127.0.0.1`)."""
    if isinstance(address, IPv4Address):
        return address
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    number = int(address)
    return IPv4Address(number) if 1 < number < 1 << 32 else address
