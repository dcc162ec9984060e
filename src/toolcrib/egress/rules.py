"""Which networks a stored address may be in. That depends on who gave it, not on the bind address."""

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
    """One Egress for each kind of giver. Changes in place, so that a reload reaches everyone who holds it."""

    operator: Egress
    """For the operator's own key: loopback, and what `allow_private` names."""
    other: Egress
    """For every other key: what `allow_private` names."""
    unrecorded: Egress
    """For addresses stored before givers were recorded: what the rule of that time allowed."""

    @classmethod
    def of(cls, allow_private: Iterable[str], unrecorded: Iterable[str]) -> Self:
        """Make the rules from networks: those the config names, and those that were allowed before."""
        named = tuple(allow_private)
        return cls(
            operator=Egress(allow_private=(*named, *map(str, LOOPBACK))),
            other=Egress(allow_private=named),
            unrecorded=Egress(allow_private=tuple(unrecorded)),
        )

    @classmethod
    def same(cls, egress: Egress) -> Self:
        """Make rules that judge every address alike."""
        return cls(operator=egress, other=egress, unrecorded=egress)

    def adopt(self, rules: "AddressRules") -> None:
        """Judge by these rules from now on."""
        self.operator, self.other, self.unrecorded = rules.operator, rules.other, rules.unrecorded

    def egress(self, giver: AddressGiver | None) -> Egress:
        """Return what an address is judged by; None is a giver that was not recorded."""
        if giver is None:
            return self.unrecorded
        return self.operator if giver == "operator" else self.other

    def refusal(self, url: str, giver: AddressGiver | None) -> str | None:
        """Say why a URL may not be stored and how to allow it; None where it may. Nothing is looked up."""
        reason = _refusal(self.egress(giver), url)
        return None if reason is None else f"{reason}{self._remedy(url)}"

    def remark(self, url: str, giver: AddressGiver | None) -> str | None:
        """Say whether a stored URL is refused, or would be if it were given now; None where neither is so."""
        if refused := self.refusal(url, giver):
            return f"is not connected to: {refused}"
        today = self.refusal(url, "other") if giver is None else None
        return None if today is None else f"{_GIVEN_BEFORE}; given now, {today}"

    def needs_operator(self, url: str) -> bool:
        """Whether this URL is allowed to the operator's own key alone."""
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
    """Judge a URL once per rule: the status judges those of all apps each time."""
    return egress.refusal(url)
