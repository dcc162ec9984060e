"""No form hides a second request: sent directly, and through a real nginx and a real HAProxy."""

import contextlib
import re
import socket
import subprocess
from collections.abc import AsyncGenerator, Callable, Generator
from functools import partial
from pathlib import Path

import pytest
from anyio import to_thread

from tests.frontends.rest.tools import add
from tests.gateways import ADMIN, InProcessGateway, listening, open_gateway
from tests.http.smuggling import FORMS
from tests.parts import require
from tests.parts.ports import free_port
from tests.waiting import until
from toolcrib.http import Receive, Scope, Send

pytestmark = [pytest.mark.anyio, pytest.mark.slow, pytest.mark.requirement("I5")]

Address = tuple[str, int]
ONES_OWN = (
    f"GET /api/keys HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nAuthorization: Bearer {ADMIN}\r\n\r\n"
).encode()
"""A request of another client, which must get its own answer."""

NGINX = """
daemon off; master_process off; pid {folder}/pid; error_log {folder}/error crit;
events {{ worker_connections 256; }}
http {{
  access_log off; client_body_temp_path {folder}/a; proxy_temp_path {folder}/b;
  fastcgi_temp_path {folder}/c; uwsgi_temp_path {folder}/d; scgi_temp_path {folder}/e;
  upstream gateway {{ server {host}:{port}; keepalive 1; }}
  server {{
    listen 127.0.0.1:{listen};
    location / {{
      proxy_pass http://gateway; proxy_http_version 1.1; proxy_request_buffering off;
      proxy_set_header X-Front 1; proxy_set_header Connection ""; proxy_set_header Host $http_host;
    }}
  }}
}}
"""
HAPROXY = """
defaults
  mode http
  timeout connect 5s
  timeout client 5s
  timeout server 5s
  http-reuse always
frontend f
  bind 127.0.0.1:{listen}
  default_backend b
backend b
  http-request set-header X-Front 1
  server gateway {host}:{port} pool-max-conn 1
"""


class Counting:
    """The gateway, which notes the path of every request it gets, and whether a proxy marked it."""

    def __init__(self, crib: InProcessGateway) -> None:
        self._server = crib.server
        self.intake = crib.server.intake
        self.malformed, self.interrupted = crib.server.malformed, crib.server.interrupted
        self.drain, self.idle = crib.server.drain, crib.server.idle
        self.paths: list[str] = []
        self.unmarked: list[str] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.paths.append(scope["path"])
        if all(name != b"x-front" for name, _ in scope["headers"]):
            self.unmarked.append(scope["path"])
        await self._server(scope, receive, send)


def exchange(address: Address, words: bytes) -> bytes:
    """Send bytes on a connection of their own and return what comes until it is closed, or nothing more."""
    read = b""
    with contextlib.suppress(OSError), socket.create_connection(address, timeout=5) as connection:
        connection.sendall(words)
        connection.settimeout(1)
        while part := connection.recv(65536):
            read += part
            connection.settimeout(0.03)
    return read


def answer_to_own(address: Address) -> bytes:
    """Send the request of another client; return what comes until the connection is closed."""
    with socket.create_connection(address, timeout=60) as connection:
        connection.sendall(ONES_OWN)
        return b"".join(iter(partial(connection.recv, 65536), b""))


def is_listening(address: Address) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(address, timeout=5):
        return True
    return False


def statuses(answer: bytes) -> list[int]:
    """The status of each answer; bodies of the gateway hold no status line."""
    return [int(each) for each in re.findall(rb"HTTP/1\.[01] ([2-5]\d\d) ", answer)]


@contextlib.contextmanager
def proxy(name: str, gateway: Address, folder: Path) -> Generator[Address]:
    """Run a proxy before the gateway."""
    program, port = require(name), free_port()
    template, path = (NGINX if name == "nginx" else HAPROXY), folder / "config"
    path.write_text(template.format(folder=folder, host=gateway[0], port=gateway[1], listen=port))
    arguments = ["-c", path, "-p", folder] if name == "nginx" else ["-f", path, "-db", "-q"]
    process = subprocess.Popen([program, *arguments], stderr=subprocess.DEVNULL)
    try:
        yield "127.0.0.1", port
    finally:
        process.terminate()
        process.wait(10)


@pytest.fixture
async def gateway() -> AsyncGenerator[tuple[Counting, Address]]:
    async with open_gateway(tools=[add]) as crib:
        counting = Counting(crib)
        async with listening(counting) as url:  # pyright: ignore[reportArgumentType] - all that is used is there
            host, port = url.removeprefix("http://").split(":")
            yield counting, (host, int(port))


async def send_all(counting: Counting, address: Address, smuggled: Callable[[], object]) -> int:
    """Send every form; return how many were refused before the gateway saw a request."""
    refused = 0
    for name, words in FORMS.items():
        counting.paths.clear()
        counting.unmarked.clear()
        await to_thread.run_sync(exchange, address, words)
        assert not smuggled(), (name, counting.paths)
        refused += not counting.paths
        own = await to_thread.run_sync(answer_to_own, address)
        assert statuses(own) == [200], (name, own)
        assert b'"keys"' in own, (name, own)
    return refused


async def test_no_form_smuggles_directly(gateway: tuple[Counting, Address]) -> None:
    counting, address = gateway
    refused = await send_all(counting, address, lambda: len(counting.paths) > 1)
    print(f"{refused} of {len(FORMS)} forms are refused before they are a request")
    assert refused > len(FORMS) // 2


@pytest.mark.parametrize("name", ["nginx", "haproxy"])
async def test_no_form_smuggles_through_a_proxy(
    gateway: tuple[Counting, Address], name: str, tmp_path: Path
) -> None:
    counting, address = gateway
    with proxy(name, address, tmp_path) as front:
        await until(lambda: is_listening(front))
        # What the proxy took for a request is marked; what was hidden in a body is not.
        refused = await send_all(counting, front, lambda: counting.unmarked)
    print(f"{name}: {refused} of {len(FORMS)} forms do not reach the gateway")
