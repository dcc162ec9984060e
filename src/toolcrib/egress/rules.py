"""Egress rules for stored URLs: the allowed networks depend on who gave the URL, not on the bind address."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Self

from toolcrib.egress.addresses import LOOPBACK, private_network
from toolcrib.egress.egress import Egress, literal_address
from toolcrib.model import AddressGiver

_MAX_JUDGED_URLS = 4_096
_GIVEN_BEFORE = "was given before the gateway recorded who gives an address, and keeps working"


@dataclass(slots=True, kw_only=True)
class AddressRules:
    """One Egress per kind of giver. Updated in place, so that a reload takes effect for every holder."""

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
        return None if today is None else f"{_GIVEN_BEFORE}; given now, {today}"

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


@lru_cache(maxsize=_MAX_JUDGED_URLS)
def _refusal(egress: Egress, url: str) -> str | None:
    """Check a URL; cached per Egress, since each status request checks the URLs of all apps."""
    return egress.refusal(url)
