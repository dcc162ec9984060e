"""What may be connected to is judged by address: literals when a URL is given, names when they are used."""

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.egress.corpus import LOOPBACK, MALFORMED, NEVER, PRIVATE, PUBLIC
from tests.texts import matches
from toolcrib.egress import INVALID_HOST, Egress

GUARD = Egress()
ANYTHING_PRIVATE = Egress(allow_private=("0.0.0.0/0", "::/0"))


def spelled(url: str) -> str:
    return url.replace("{port}", "8080")


@pytest.mark.check(9)
def test_the_corpus_is_large() -> None:
    assert len({*NEVER, *LOOPBACK, *PRIVATE, *MALFORMED}) >= 100


@pytest.mark.requirement("I5")
@pytest.mark.parametrize("url", [*NEVER, *MALFORMED])
@pytest.mark.check(9)
def test_never_allowed_addresses_cannot_be_allowed(url: str) -> None:
    assert GUARD.refusal(spelled(url))
    assert ANYTHING_PRIVATE.refusal(spelled(url))


@pytest.mark.requirement("I5")
@pytest.mark.parametrize("url", [*LOOPBACK, *PRIVATE])
def test_private_addresses_need_to_be_allowed(url: str) -> None:
    assert matches("server", "private addresses need to be allowed", GUARD.refusal(spelled(url)))
    assert ANYTHING_PRIVATE.refusal(spelled(url)) is None


@pytest.mark.parametrize("url", PUBLIC)
def test_public_addresses_and_names_pass(url: str) -> None:
    assert GUARD.refusal(url) is None


def test_only_the_named_network_is_allowed() -> None:
    egress = Egress(allow_private=("10.1.0.0/16", "127.0.0.1/32"))
    assert egress.refusal("http://10.1.2.3/") is None
    assert egress.refusal("http://10.2.2.3/")
    assert egress.refusal("http://localhost:9000/") is None
    assert egress.refusal("http://127.0.0.2/")
    assert egress.refusal("http://[::ffff:10.1.2.3]/") is None
    assert egress.refusal("http://[::1]/")


def test_a_network_that_is_none_is_an_error() -> None:
    with pytest.raises(ValueError, match="does not appear to be"):
        Egress(allow_private=("private",))


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:8080/", "http://169.254.169.254/", "http://user:word@host/"]
)
def test_the_operators_own_addresses_are_free(url: str) -> None:
    assert Egress(guarded=False).refusal(url) is None
    assert Egress(guarded=False).fault("169.254.169.254") is None


@pytest.mark.parametrize("url", ["file:///etc/passwd", "http:///", "http://[::1/"])
def test_even_the_operator_needs_a_url(url: str) -> None:
    assert Egress(guarded=False).refusal(url)


def test_invalid_address_is_refused() -> None:
    assert matches("server", "invalid address is refused", GUARD.fault("example.org"))


@given(st.ip_addresses())
def test_allowed_addresses_are_global_in_ipaddress(
    address: ipaddress.IPv4Address | ipaddress.IPv6Address,
) -> None:
    if GUARD.fault(str(address)) is not None:
        return
    inside = getattr(address, "ipv4_mapped", None) or address
    assert inside.is_global or int(address) >> 32 == 0
    assert not inside.is_multicast
    assert not inside.is_link_local


@given(st.ip_addresses(v=4))
def test_a_wrapped_address_is_judged_like_the_one_inside(address: ipaddress.IPv4Address) -> None:
    assert GUARD.fault(f"::ffff:{address}") == GUARD.fault(str(address))
    if int(address) > 1:
        assert GUARD.fault(str(ipaddress.IPv6Address(int(address)))) == GUARD.fault(str(address))
    for network in ("64:ff9b::", "64:ff9b:1::", "::ffff:0:"):
        assert GUARD.fault(f"{network}{address}")
    assert GUARD.fault(str(ipaddress.IPv6Address((0x2002 << 112) | (int(address) << 80))))


@pytest.mark.parametrize("host", ["a..b", ".a", "a..", f"{'a' * 64}.example"])
def test_unresolvable_host_is_refused_for_everyone(host: str) -> None:
    assert Egress(guarded=False).refusal(f"http://{host}/mcp") == INVALID_HOST
