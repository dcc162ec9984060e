"""The rule for addresses the gateway connects to: the operator's own are free, those of others are judged."""

import re
from dataclasses import dataclass, field
from ipaddress import ip_network
from typing import TYPE_CHECKING

from toolcrib.egress.addresses import Network, fault

if TYPE_CHECKING:
    from yarl import URL

_ODD = re.compile(r"[\x00-\x20\x7f\\]")
"""What parsers of URLs disagree about."""

_NUMBER = re.compile(r"(?:0x[0-9a-f]*|[0-9]+)\Z", re.IGNORECASE)
_QUAD = re.compile(r"(?:(?:0|[1-9][0-9]{0,2})\.){3}(?:0|[1-9][0-9]{0,2})\Z")

LONGEST_LABEL = 63
"""Characters between two dots of a name, by the standard for names; looking up a longer one is an error."""
UNNAMEABLE = f"its host has an empty part or one of more than {LONGEST_LABEL} characters between the dots"


@dataclass(frozen=True, slots=True)
class Egress:
    """What may be connected to. Not `guarded`: anything, as the operator's own file says so."""

    allow_private: tuple[str, ...] = ()
    """Private networks that may be reached all the same, such as `10.1.0.0/16`; never the forbidden ones."""
    guarded: bool = True
    _networks: tuple[Network, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Raise ValueError where a network in `allow_private` is none."""
        object.__setattr__(self, "_networks", tuple(ip_network(text) for text in self.allow_private))

    def fault(self, address: str) -> str | None:
        """Say why this address, already looked up, may not be connected to; None where it may."""
        return fault(address, self._networks) if self.guarded else None

    def refusal(self, url: str) -> str | None:
        """Say why a URL cannot be used, as far as that shows without a lookup; None where nothing does."""
        # Late, because it takes a while to load, and most servers are programs.
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
    """Whether every label of a host, in ASCII, has a length that a lookup takes; one dot may end it."""
    return all(0 < len(label) <= LONGEST_LABEL for label in host.removesuffix(".").split("."))


def literal_address(url: str) -> str | None:
    """Return the address that a URL names without a lookup; `localhost` is one, any other name is not."""
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
