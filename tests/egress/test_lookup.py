"""Connections go to checked addresses only: changing names, literals, an unreachable listener."""

import socket
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from threading import Event
from typing import Any

import pytest
from anyio import create_task_group, create_tcp_listener, fail_after, wait_all_tasks_blocked
from anyio.abc import SocketAttribute, SocketStream
from yarl import URL

from tests.egress.corpus import LOOPBACK, MALFORMED, NEVER
from tests.egress.peers import body_of
from tests.texts import matches
from toolcrib.egress import Egress
from toolcrib.egress.client import Client
from toolcrib.egress.connect import AddressBlocked, ResolvedAddress, Resolver
from toolcrib.egress.response import NoConnection

GUARD = Egress()
HERE = Egress(allow_private=("127.0.0.0/8",))


class Zone:
    """A name server in which every lookup of a name may have another answer."""

    def __init__(self, *answers: Sequence[str]) -> None:
        self.answers = list(answers)

    async def __call__(self, host: str, port: int) -> list[ResolvedAddress]:
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return [_place(address, port) for address in answer]


def _place(address: str, port: int) -> ResolvedAddress:
    host, _, zone = address.partition("%")
    if ":" not in host:
        return ResolvedAddress(socket.AF_INET, (host, port))
    return ResolvedAddress(socket.AF_INET6, (host, port, 0, socket.if_nametoindex(zone) if zone else 0))


@asynccontextmanager
async def canary() -> AsyncGenerator[tuple[int, list[str]]]:
    """A listener on every address of this machine that records the requested hosts."""
    asked: list[str] = []

    async def answer(stream: SocketStream) -> None:
        async with stream:
            asked.append("connected")
            head = (await stream.receive()).decode()
            asked[-1] = next(line for line in head.splitlines() if line.lower().startswith("host:"))
            await stream.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    listener = await create_tcp_listener(local_host="0.0.0.0")
    port = listener.extra(SocketAttribute.local_port)  # noqa: S610 -- anyio's, not Django's
    async with listener, create_task_group() as tasks:
        tasks.start_soon(listener.serve, answer)
        yield port, asked
        tasks.cancel_scope.cancel()


async def fetch(url: str, egress: Egress, look: Resolver | None = None) -> str:
    parsed = URL(url)
    async with Client(parsed, {}, egress, connect_seconds=3.0, resolver=look) as client:
        return (await body_of(await client.send("GET", parsed, {}))).decode()


def reason(error: NoConnection) -> str:
    assert isinstance(error.__cause__, AddressBlocked)
    assert str(error) == error.__cause__.strerror
    return str(error)


@pytest.mark.requirement("I5")
@pytest.mark.check(9)
async def test_no_spelling_reaches_this_machine() -> None:
    async with canary() as (port, asked):
        for url in (*NEVER, *LOOPBACK, *(url for url in MALFORMED if "example" not in url)):
            with pytest.raises((NoConnection, ValueError)):
                await fetch(url.replace("{port}", str(port)), GUARD)
        assert asked == []
        assert await fetch(f"http://127.0.0.1:{port}/", HERE) == "ok"


@pytest.mark.requirement("I5")
async def test_literals_are_judged_though_nothing_is_looked_up() -> None:
    async with canary() as (port, asked):
        for host in ("127.0.0.1", "[::ffff:127.0.0.1]"):
            with pytest.raises(NoConnection) as raised:
                await fetch(f"http://{host}:{port}/", GUARD)
            assert "private" in reason(raised.value)
        assert asked == []


@pytest.mark.requirement("I5")
@pytest.mark.check(9)
async def test_dns_rebinding_after_registration_is_refused() -> None:
    zone = Zone(["8.8.8.8"], ["127.0.0.1"])
    async with canary() as (port, asked):
        url = f"http://rebind.example:{port}/"
        assert GUARD.refusal(url) is None
        await zone("rebind.example", port)
        with pytest.raises(NoConnection) as raised:
            await fetch(url, GUARD, zone)
        assert "private" in reason(raised.value)
        assert asked == []


@pytest.mark.parametrize("address", ["169.254.169.254", "fe80::1%lo", "::ffff:169.254.169.254", "0.0.0.0"])
async def test_names_of_forbidden_addresses_are_refused(address: str) -> None:
    with pytest.raises(NoConnection) as raised:
        await fetch("http://name.example/", HERE, Zone([address]))
    assert "never allowed" in reason(raised.value)


async def test_only_checked_addresses_of_a_name_are_tried() -> None:
    async with canary() as (port, asked):
        zone = Zone(["169.254.169.254", "::1", "127.0.0.1"])
        assert await fetch(f"http://name.example:{port}/", HERE, zone) == "ok"
        assert asked == [f"Host: name.example:{port}"]


async def test_a_name_without_addresses_is_refused() -> None:
    with pytest.raises(NoConnection) as raised:
        await fetch("http://name.example/", GUARD, Zone([]))
    assert "no address" in reason(raised.value)


async def test_the_operators_own_addresses_are_connected_to() -> None:
    async with canary() as (port, asked):
        assert await fetch(f"http://localhost:{port}/", Egress(guarded=False)) == "ok"
        assert asked == [f"Host: localhost:{port}"]


@pytest.mark.requirement("I5")
async def test_names_that_take_long_keep_no_other_name_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    look, answer = socket.getaddrinfo, Event()

    def slow(host: Any, *more: Any, **options: Any) -> Any:
        if "slow" in str(host):
            answer.wait(20)
        return look("127.0.0.1" if "example" in str(host) else host, *more, **options)

    async def stuck(number: int) -> None:
        with pytest.raises(NoConnection):
            await fetch(f"http://slow{number}.example:1/", HERE)

    monkeypatch.setattr(socket, "getaddrinfo", slow)
    async with canary() as (port, _), create_task_group() as tasks:
        for number in range(50):
            tasks.start_soon(stuck, number)
        await wait_all_tasks_blocked()
        with fail_after(10):
            assert await fetch(f"http://quick.example:{port}/", HERE) == "ok"
        answer.set()


def test_an_address_that_has_a_zone_keeps_it() -> None:
    assert ResolvedAddress(socket.AF_INET6, ("fe80::1", 80, 0, 3)).shown == "fe80::1%3"
    assert ResolvedAddress(socket.AF_INET6, ("2001:4860::8888", 80, 0, 0)).shown == "2001:4860::8888"
    assert ResolvedAddress(socket.AF_INET, ("8.8.8.8", 80)).shown == "8.8.8.8"


@pytest.mark.parametrize("host", ["a..b", f"{'a' * 64}.example"])
async def test_invalid_hostname_is_unknown(host: str) -> None:
    with pytest.raises(NoConnection) as raised:
        await fetch(f"http://{host}/", Egress(guarded=False))
    assert matches("server", "invalid hostname is unknown", str(raised.value))
