"""Fake provider servers on loopback, which play one exchange and record it."""

import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from toolcrib.model import JsonObject

CITIES = ("Oslo", "Bergen")
BYE = "Both are sunny."


class Socket:
    """One connection to a fake server."""

    def __init__(self, socket: web.WebSocketResponse) -> None:
        self._socket = socket
        self.heard: list[Any] = []

    async def say(self, message: JsonObject) -> None:
        await self._socket.send_json(message)

    async def hear(self) -> Any:
        """Wait for the next message, note it, and return it."""
        self.heard.append(await self._socket.receive_json())
        return self.heard[-1]


Play = Callable[[Socket], Awaitable[None]]
Handle = Callable[[web.Request], Awaitable[web.StreamResponse]]


def socket(play: Play, heard: list[Any]) -> Handle:
    """Play a part on every socket that is opened."""

    async def handle(request: web.Request) -> web.StreamResponse:
        response = web.WebSocketResponse()
        await response.prepare(request)
        talk = Socket(response)
        talk.heard = heard
        await play(talk)
        await response.close()
        return response

    return handle


def replies(answers: list[JsonObject], heard: list[Any]) -> Handle:
    """Answer one request after the other, and note what each of them held."""
    waiting = iter(answers)

    async def handle(request: web.Request) -> web.StreamResponse:
        heard.append(await request.json())
        return web.json_response(next(waiting))

    return handle


@asynccontextmanager
async def served(*routes: web.RouteDef, tls: ssl.SSLContext | None = None) -> AsyncGenerator[int]:
    """Listen on a free loopback port; yields its number."""
    app = web.Application()
    app.add_routes(routes)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls).start()
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


def certificate(folder: Path) -> tuple[Path, ssl.SSLContext]:
    """Make what a server needs to call itself 127.0.0.1: the file to trust, and what it serves with."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.now(UTC)
    signed = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    trusted, both = folder / "trusted.pem", folder / "both.pem"
    trusted.write_bytes(signed.public_bytes(Encoding.PEM))
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    both.write_bytes(private + trusted.read_bytes())
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(both)
    return trusted, context
