"""What a client is counted by: as much of its address as it cannot choose."""

import pytest

from toolcrib.quotas import client_network


@pytest.mark.parametrize(
    "address, network",
    [
        ("192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:DB8:1:2::", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("::1", "::/64"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("no address", "no address"),
        ("not:one", "not:one"),
        ("", ""),
    ],
)
def test_client_network(address: str, network: str) -> None:
    assert client_network(address) == network
