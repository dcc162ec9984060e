"""The address of a client: no header makes a remote client local."""

import pytest

from tests.http.requests import request
from toolcrib.http import ClientAddresses

PLAIN = ClientAddresses()
BEHIND = ClientAddresses(["10.0.0.0/8", "127.0.0.1/32"])


@pytest.mark.requirement("I1")
@pytest.mark.parametrize(
    "client, local",
    [
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("::ffff:127.0.0.1", True),
        ("10.0.0.1", False),
        ("8.8.8.8", False),
        ("fe80::1%eth0", False),
        ("", False),
        ("testclient", False),
        (None, False),
    ],
)
def test_the_peer_decides(client: str | None, local: bool) -> None:
    for _ in range(2):
        assert PLAIN.is_local(request(client=client)) is local


@pytest.mark.parametrize("name", ["x-forwarded-for", "forwarded", "x-real-ip"])
def test_forwarded_by_untrusted_proxy_is_not_local(name: str) -> None:
    assert not PLAIN.is_local(request(headers={name: "127.0.0.1"}))


@pytest.mark.parametrize(
    "client, forwarded, local",
    [
        ("10.0.0.1", "127.0.0.1", True),
        ("10.0.0.1", "8.8.8.8", False),
        ("10.0.0.1", "127.0.0.1, 8.8.8.8", False),
        ("10.0.0.1", "8.8.8.8, 127.0.0.1", False),
        ("10.0.0.1", "127.0.0.2, 10.1.1.1", True),
        ("10.0.0.1", "nonsense", False),
        ("10.0.0.1", "", False),
        ("127.0.0.1", "8.8.8.8", False),
        ("8.8.8.8", "127.0.0.1", False),
    ],
)
def test_a_trusted_proxy_names_the_client(client: str, forwarded: str, local: bool) -> None:
    assert BEHIND.is_local(request(client=client, headers={"x-forwarded-for": forwarded})) is local


def test_a_trusted_proxy_itself_is_local_only_on_this_machine() -> None:
    assert BEHIND.is_local(request(client="127.0.0.1"))
    assert not BEHIND.is_local(request(client="10.0.0.1"))


def test_cache_is_bounded() -> None:
    clients = ClientAddresses()
    for number in range(3000):
        clients.is_local(request(client=f"10.0.{number // 250}.{number % 250}"))
    assert len(vars(clients)["_cached"]) == 1024
