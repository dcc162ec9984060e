"""The verdict on an address depends on who gave it, and a refusal names the setting that allows it."""

import pytest

from tests.egress.corpus import LOOPBACK, MALFORMED, NEVER, PRIVATE, PUBLIC
from toolcrib.egress import AddressRules, Egress
from toolcrib.egress.egress import literal_address, private_network
from toolcrib.model import AddressGiver

pytestmark = pytest.mark.requirement("I5")

HERE = ("127.0.0.0/8", "::1/128")
STRICT = AddressRules.of((), ())
LOOSE_BEFORE = AddressRules.of((), HERE)


def at(url: str) -> str:
    return url.replace("{port}", "7010")


@pytest.mark.parametrize("url", [at(url) for url in LOOPBACK])
def test_loopback_is_the_operators(url: str) -> None:
    assert STRICT.refusal(url, "operator") is None
    assert STRICT.refusal(url, "other") is not None
    assert STRICT.needs_operator(url)
    assert (STRICT.refusal(url, None) is None, LOOSE_BEFORE.refusal(url, None) is None) == (False, True)


@pytest.mark.parametrize("url", PRIVATE)
def test_private_addresses_need_allow_private_for_everyone(url: str) -> None:
    for giver in ("operator", "other", None):
        assert LOOSE_BEFORE.refusal(url, giver) is not None
    assert not STRICT.needs_operator(url)
    network = private_network(literal_address(url) or "")
    assert f"`allow_private: [{network}]`" in (STRICT.refusal(url, "operator") or "")
    assert AddressRules.of([str(network)], ()).refusal(url, "other") is None


@pytest.mark.parametrize("url", [at(url) for url in (*NEVER, *MALFORMED)])
def test_never_allowed_address_has_no_remedy(url: str) -> None:
    for giver in ("operator", "other", None):
        reason = LOOSE_BEFORE.refusal(url, giver)
        assert reason is not None
        assert "`allow_private" not in reason
    assert not STRICT.needs_operator(url)


@pytest.mark.parametrize("url", PUBLIC)
def test_public_addresses_are_everyones(url: str) -> None:
    assert not STRICT.needs_operator(url)
    for giver in ("operator", "other", None):
        assert (STRICT.refusal(url, giver), STRICT.remark(url, giver)) == (None, None)


@pytest.mark.parametrize(
    "giver, rules, remark",
    [
        ("operator", STRICT, None),
        ("other", STRICT, "is not connected to"),
        (None, STRICT, "is not connected to"),
        (None, LOOSE_BEFORE, "keeps working"),
        (None, AddressRules.of(HERE, HERE), None),
    ],
)
def test_a_stored_address_is_remarked_on(
    giver: AddressGiver | None, rules: AddressRules, remark: str | None
) -> None:
    found = rules.remark("http://127.0.0.1:7010", giver)
    assert found is None if remark is None else remark in (found or "")


def test_rules_change_in_place() -> None:
    held = AddressRules.of((), ())
    before = held.egress("other")
    held.adopt(AddressRules.of(["10.0.0.0/8"], ()))
    assert held.refusal("http://10.0.0.1", "other") is None
    assert held.egress("other") != before
    assert AddressRules.same(Egress(guarded=False)).egress(None) == Egress(guarded=False)


def test_a_network_is_found_for_private_addresses_alone() -> None:
    assert str(private_network("::ffff:10.0.0.1")) == "10.0.0.0/8"
    assert private_network("8.8.8.8") is private_network("169.254.169.254") is private_network("name") is None
