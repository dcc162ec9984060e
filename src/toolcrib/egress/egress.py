"""SSRF guard: which addresses the gateway may connect to, and the settings of outbound HTTP."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import TYPE_CHECKING, Self

from toolcrib.model import AddressGiver

if TYPE_CHECKING:
    from yarl import URL

# --- Classifies IP addresses as public, private or forbidden, by its own tables ---
#
# The standard library's `is_private` and `is_global` differ between versions of Python and let through
# addresses that embed another one (NAT64, 6to4), so nothing here depends on them.

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
    "an address that embeds another one": (
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
GLOBAL_UNICAST = IPv6Network("2000::/3")
"""The allocated global unicast range of IPv6; any other address that is not private is refused."""


def fault(text: str, allowed: Iterable[Network]) -> str | None:
    """Return why an address is refused, or None if it is allowed; `allowed` are private networks."""
    try:
        address = _unwrapped(ip_address(text))
    except ValueError:
        return "it is not an IP address"
    for network, what in FORBIDDEN:
        if address in network:
            return f"it is {what}, which is never allowed"
    if any(address in network for network in PRIVATE):
        if any(address in network for network in allowed):
            return None
        return "it is a private address, and its network is not in allow_private"
    if isinstance(address, IPv6Address) and address not in GLOBAL_UNICAST:
        return "it is an unspecified or reserved address, which is never allowed"
    return None


def private_network(text: str) -> Network | None:
    """Return the private network that contains an address; None if it is public, forbidden or invalid."""
    try:
        address = _unwrapped(ip_address(text))
    except ValueError:
        return None
    if any(address in network for network, _ in FORBIDDEN):
        return None
    return next((network for network in PRIVATE if address in network), None)


def _unwrapped(address: Address) -> Address:
    """Unwrap an IPv4-mapped or IPv4-compatible IPv6 address (`::ffff:127.0.0.1`, `::127.0.0.1`)."""
    if isinstance(address, IPv4Address):
        return address
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    number = int(address)
    return IPv4Address(number) if 1 < number < 1 << 32 else address


# --- Egress policy (SSRF protection): URLs of the operator are unrestricted, all others are checked ---

_AMBIGUOUS = re.compile(r"[\x00-\x20\x7f\\]")
"""Characters that URL parsers interpret differently, so that a check could be bypassed."""

_NUMERIC_LABEL = re.compile(r"(?:0x[0-9a-f]*|[0-9]+)\Z", re.IGNORECASE)
_IPV4_LITERAL = re.compile(r"(?:(?:0|[1-9][0-9]{0,2})\.){3}(?:0|[1-9][0-9]{0,2})\Z")

MAX_LABEL_CHARACTERS = 63
"""Characters of a DNS label (RFC 1035); resolving a name with a longer one is an error."""
INVALID_HOST = (
    f"its host has an empty part or one of more than {MAX_LABEL_CHARACTERS} characters between the dots"
)


@dataclass(frozen=True, slots=True)
class Egress:
    """The addresses that may be connected to. If not `guarded`, any: the URL is from the operator's file."""

    allow_private: tuple[str, ...] = ()
    """Allowed private networks, such as `10.1.0.0/16`; forbidden networks cannot be allowed."""
    guarded: bool = True
    _networks: tuple[Network, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Parse `allow_private`; raise ValueError for an invalid network."""
        object.__setattr__(self, "_networks", tuple(ip_network(text) for text in self.allow_private))

    def fault(self, address: str) -> str | None:
        """Return why a resolved address is refused; None if it is allowed."""
        return fault(address, self._networks) if self.guarded else None

    def refusal(self, url: str) -> str | None:
        """Return why a URL is refused, as far as that is known without DNS resolution; None if it is not."""
        # Lazy import: it is slow to load, and most servers use stdio.
        from yarl import URL

        try:
            parsed = URL(url)
        except ValueError:
            return "it is not a URL"
        if parsed.scheme not in {"http", "https"}:
            return "only http and https are supported"
        if not parsed.raw_host:
            return "it has no host"
        if not is_resolvable(parsed.raw_host):
            return INVALID_HOST
        return self._refusal_reason(url, parsed, parsed.raw_host) if self.guarded else None

    def _refusal_reason(self, url: str, parsed: "URL", host: str) -> str | None:
        if _AMBIGUOUS.search(url):
            return "it contains spaces, control characters or a backslash"
        if "@" in parsed.raw_authority:
            return "it contains a user name or password; send credentials in headers"
        name = _normalized(host)
        if _is_localhost(name):
            return self.fault("127.0.0.1") and self.fault("::1")
        if ":" in host:
            return self.fault(host)
        if not _NUMERIC_LABEL.match(name.rpartition(".")[2]):
            return None
        if not _IPV4_LITERAL.match(host):
            return "its host is an IP address in an unusual notation"
        return self.fault(host)


def is_resolvable(host: str) -> bool:
    """Whether every label of a host, in ASCII, has a length valid for DNS; one trailing dot is allowed."""
    return all(0 < len(label) <= MAX_LABEL_CHARACTERS for label in host.removesuffix(".").split("."))


def literal_address(url: str) -> str | None:
    """Return the literal IP address of a URL (127.0.0.1 for `localhost`); None for any other host name."""
    from yarl import URL

    try:
        host = URL(url).raw_host or ""
    except ValueError:
        return None
    if _is_localhost(_normalized(host)):
        return "127.0.0.1"
    return host if ":" in host or _IPV4_LITERAL.match(host) else None


def _normalized(host: str) -> str:
    return host.removesuffix(".").lower()


def _is_localhost(name: str) -> bool:
    return name == "localhost" or name.endswith(".localhost")


# --- Egress rules for stored URLs: the allowed networks depend on who registered the URL ---

_MAX_CACHED_URLS = 4_096
_GIVEN_BEFORE = "was registered before the gateway recorded who supplies a URL, and keeps working"


@dataclass(slots=True, kw_only=True)
class AddressRules:
    """One Egress per kind of giver. Updated in place, so that a reload takes effect in every client."""

    operator: Egress
    """For the admin key: loopback and the networks of `allow_private`."""
    other: Egress
    """For every other key: the networks of `allow_private`."""
    unrecorded: Egress
    """For addresses stored before givers were recorded: the networks allowed at that time."""

    @classmethod
    def of(cls, allow_private: Iterable[str], unrecorded: Iterable[str]) -> Self:
        """Build the rules from networks: those of the config, and those for addresses without a giver."""
        named = tuple(allow_private)
        return cls(
            operator=Egress(allow_private=(*named, *map(str, LOOPBACK))),
            other=Egress(allow_private=named),
            unrecorded=Egress(allow_private=tuple(unrecorded)),
        )

    @classmethod
    def same(cls, egress: Egress) -> Self:
        """Build rules that apply one Egress to every giver."""
        return cls(operator=egress, other=egress, unrecorded=egress)

    def adopt(self, rules: "AddressRules") -> None:
        """Replace the rules in place."""
        self.operator, self.other, self.unrecorded = rules.operator, rules.other, rules.unrecorded

    def egress(self, giver: AddressGiver | None) -> Egress:
        """Return the Egress for a giver; None is a giver that was not recorded."""
        if giver is None:
            return self.unrecorded
        return self.operator if giver == "operator" else self.other

    def refusal(self, url: str, giver: AddressGiver | None) -> str | None:
        """Return why a URL is refused, and how to allow it; None if it is allowed. Does not resolve names."""
        reason = _refusal(self.egress(giver), url)
        return None if reason is None else f"{reason}{self._remedy(url)}"

    def remark(self, url: str, giver: AddressGiver | None) -> str | None:
        """Return a warning if a stored URL is refused, or would be refused if given now; else None."""
        if refused := self.refusal(url, giver):
            return f"is not connected to: {refused}"
        today = self.refusal(url, "other") if giver is None else None
        return None if today is None else f"{_GIVEN_BEFORE}; registered now, {today}"

    def needs_operator(self, url: str) -> bool:
        """Whether this URL is allowed for the admin key only."""
        return _refusal(self.other, url) is not None and _refusal(self.operator, url) is None

    def _remedy(self, url: str) -> str:
        address = literal_address(url)
        network = None if address is None else private_network(address)
        if network is None or _refusal(Egress(allow_private=(str(network),)), url) is not None:
            return ""
        allow = f"; to allow it, add `allow_private: [{network}]` to the config"
        return f"{allow}, or register it with the admin key" if self.needs_operator(url) else allow


@lru_cache(maxsize=_MAX_CACHED_URLS)
def _refusal(egress: Egress, url: str) -> str | None:
    """Check a URL; cached per Egress, since each status request checks the URLs of all apps."""
    return egress.refusal(url)
