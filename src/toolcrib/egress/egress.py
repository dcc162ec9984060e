"""Egress policy (SSRF protection): URLs of the operator are unrestricted, all others are checked."""

import re
from dataclasses import dataclass, field
from ipaddress import ip_network
from typing import TYPE_CHECKING

from toolcrib.egress.addresses import Network, fault

if TYPE_CHECKING:
    from yarl import URL

_ODD = re.compile(r"[\x00-\x20\x7f\\]")
"""Characters that URL parsers interpret differently, so that a check could be bypassed."""

_NUMBER = re.compile(r"(?:0x[0-9a-f]*|[0-9]+)\Z", re.IGNORECASE)
_QUAD = re.compile(r"(?:(?:0|[1-9][0-9]{0,2})\.){3}(?:0|[1-9][0-9]{0,2})\Z")

LONGEST_LABEL = 63
"""Characters of a DNS label (RFC 1035); resolving a name with a longer one is an error."""
UNNAMEABLE = f"its host has an empty part or one of more than {LONGEST_LABEL} characters between the dots"


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
            return "only http and https are spoken"
        if not parsed.raw_host:
            return "it names no host"
        if not can_be_looked_up(parsed.raw_host):
            return UNNAMEABLE
        return self._suspicion(url, parsed, parsed.raw_host) if self.guarded else None

    def _suspicion(self, url: str, parsed: "URL", host: str) -> str | None:
        if _ODD.search(url):
            return "it holds blanks, control characters or a backslash"
        if "@" in parsed.raw_authority:
            return "it holds a user name or password; give credentials as headers"
        name = _plain(host)
        if _is_localhost(name):
            return self.fault("127.0.0.1") and self.fault("::1")
        if ":" in host:
            return self.fault(host)
        if not _NUMBER.match(name.rpartition(".")[2]):
            return None
        if not _QUAD.match(host):
            return "its host is an address in an unusual spelling"
        return self.fault(host)


def can_be_looked_up(host: str) -> bool:
    """Whether every label of a host, in ASCII, has a length valid for DNS; one trailing dot is allowed."""
    return all(0 < len(label) <= LONGEST_LABEL for label in host.removesuffix(".").split("."))


def literal_address(url: str) -> str | None:
    """Return the literal IP address of a URL (127.0.0.1 for `localhost`); None for any other host name."""
    from yarl import URL

    try:
        host = URL(url).raw_host or ""
    except ValueError:
        return None
    if _is_localhost(_plain(host)):
        return "127.0.0.1"
    return host if ":" in host or _QUAD.match(host) else None


def _plain(host: str) -> str:
    return host.removesuffix(".").lower()


def _is_localhost(name: str) -> bool:
    return name == "localhost" or name.endswith(".localhost")
