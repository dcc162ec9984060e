"""The interface of every transport: one open connection that carries any number of concurrent requests."""

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, Literal, Protocol

from toolcrib.model import JsonObject
from toolcrib.sources.mcp.request_callbacks import RequestCallbacks

Era = Literal["modern", "legacy"]
"""`modern`: stateless requests (2026-07-28). `legacy`: an `initialize` handshake first (up to 2025-11-25)."""

MODERN = "2026-07-28"
LEGACY = "2025-11-25"
"""The revision requested in a handshake; a server may answer with an older one."""

LARGEST = 8 << 20
"""Maximum bytes of one message, on every transport."""

Heard = Callable[[str, JsonObject], None]
"""Callback for each notification that belongs to no request: its method and parameters. Must not block."""


class Connection(Protocol):
    """A connection to one server. Any task may use it; one task opens, owns and closes it."""

    def speak(self, era: Era, revision: str) -> None:
        """Use this era and revision from now on; the initial era is modern, for the discovery request."""
        ...

    def relay(self, capabilities: JsonObject) -> None:
        """Relay the server's requests to a caller with a request in flight, within these capabilities.

        For connections with requests of one owner only; before this call, no server request is relayed.
        """
        ...

    async def request(
        self,
        method: str,
        params: bytes,
        *,
        name: str | None = None,
        headers: Mapping[str, str] | None = None,
        ear: RequestCallbacks | None = None,
    ) -> JsonObject:
        """Send a request with parameters that are serialized already (a JSON object); return its result.

        Raises a ServerError. Cancelling the caller cancels the request at the server. `name` is the tool's,
        for transports that send it in a header, too; the same transports send `headers`. Server messages for
        this request go to the callbacks, in the caller's task; if these want progress, a progress token is
        added to the parameters.
        """
        ...

    async def notify(self, method: str, params: bytes) -> None:
        """Send a notification."""
        ...

    async def hear(self) -> None:
        """Receive unsolicited messages until the connection ends; return early if the transport cannot."""
        ...

    async def lost(self) -> str:
        """Wait until the connection is lost for good; return the reason.

        Raises ServerMisbehaved if it was closed because the server flooded it with messages.
        """
        ...

    def details(self) -> Mapping[str, Any]:
        """Return the status fields for operators: process, standard error, session. Never a secret."""
        ...


def dropped(connection: Connection | None) -> int:
    """Return the number of server messages that a connection's rate limit dropped."""
    return 0 if connection is None else connection.details().get("dropped_messages", 0)


Dial = Callable[[Heard], AbstractAsyncContextManager[Connection]]
"""Opens a connection; leaving the context closes it gracefully and releases everything it started."""
