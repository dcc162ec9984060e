"""A port is taken before anybody else can, or the reader learns who has it."""

import os
import socket
from contextlib import ExitStack

import pytest

from tests.texts import matches
from toolcrib.http import runner as module
from toolcrib.http.runner import PORTS, PortTaken, address_of, listen, port_holder


@pytest.fixture
def some_ports(monkeypatch: pytest.MonkeyPatch, free_port: int) -> range:
    """Ten ports of our own in place of the usual ones, so that a running gateway is not in the way."""
    monkeypatch.setattr(module, "PORTS", range(free_port, free_port + 3))
    return range(free_port, free_port + 3)


def test_the_usual_ports() -> None:
    assert (PORTS[0], PORTS[-1]) == (6740, 6749)


def test_any_port() -> None:
    with listen("127.0.0.1", 0) as opened:
        host, port = opened.getsockname()
        assert host == "127.0.0.1"
        assert address_of(opened) == f"http://127.0.0.1:{port}"
        with socket.create_connection((host, port), timeout=5):
            pass


@pytest.mark.requirement("F7")
def test_a_given_port_is_used_or_refused() -> None:
    with listen("127.0.0.1", 0) as first:
        port = first.getsockname()[1]
        with pytest.raises(PortTaken, match=f"port {port} on 127.0.0.1 is taken by process {os.getpid()} "):
            listen("127.0.0.1", port)
    with listen("127.0.0.1", port) as again:
        assert again.getsockname()[1] == port


@pytest.mark.requirement("F7")
def test_default_port_is_first_free_one_else_error(some_ports: range) -> None:
    with ExitStack() as stack:
        opened = [stack.enter_context(listen("127.0.0.1", None)) for _ in some_ports]
        assert [each.getsockname()[1] for each in opened] == list(some_ports)
        with pytest.raises(PortTaken, match=f"every port from {some_ports[0]} to {some_ports[-1]}.*--port"):
            listen("127.0.0.1", None)
        opened[1].close()
        assert stack.enter_context(listen("127.0.0.1", None)).getsockname()[1] == some_ports[1]


def test_names_and_kinds_of_addresses() -> None:
    with listen("localhost", 0) as opened:
        assert opened.getsockname()[0] == "127.0.0.1"
    with listen("0.0.0.0", 0) as opened:
        assert address_of(opened) == f"http://127.0.0.1:{opened.getsockname()[1]}"


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="this machine has no IPv6")
def test_the_newer_kind_of_address() -> None:
    with listen("[::1]", 0) as opened:
        assert address_of(opened) == f"http://[::1]:{opened.getsockname()[1]}"


@pytest.mark.parametrize("host", ["203.0.113.1", "no-such-name.invalid"])
def test_an_address_that_is_not_ours(host: str) -> None:
    with pytest.raises(PortTaken, match=host):
        listen(host, 0)


def test_port_without_visible_holder(free_port: int) -> None:
    assert matches("server", "port without visible holder", port_holder(free_port))
