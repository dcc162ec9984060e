"""What every transport gives: one warm way to a server, over which any number of requests run at once."""

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, Literal, Protocol

from toolcrib.model import JsonObject
from toolcrib.sources.mcp.request_callbacks import RequestCallbacks

Era = Literal["modern", "legacy"]
"""`modern`: every request stands alone (2026-07-28). `legacy`: a handshake first (up to 2025-11-25)."""

MODERN = "2026-07-28"
LEGACY = "2025-11-25"
"""What we ask for in a handshake; a server may answer with an older revision."""

LARGEST = 8 << 20
"""The most bytes of one message, whatever the transport."""

Heard = Callable[[str, JsonObject], None]
"""Told of every notification that belongs to no request: its method and parameters. Must not wait."""


class Connection(Protocol):
    """One server, connected. Used from any task; owned, opened and closed by one."""

    def speak(self, era: Era, revision: str) -> None:
        """Use this era and revision from now on; before the first call it is modern, for the probe."""
        ...

    def relay(self, capabilities: JsonObject) -> None:
        """Put what the server asks to whoever has a request under way here, within these capabilities.

        For connections whose requests are all of one owner; before this is called, nobody is asked anything.
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
        """Send a request whose parameters are a JSON object already encoded; return its result.

        Raises what `faults` lists. Cancelling the caller cancels the request at the server. `name` is the
        tool's, for transports that say it outside the body; `headers` are sent where there are headers.
        What the server says meanwhile goes to the `ear`, in the task of the caller; where that wants
        progress, the parameters get a token for it.
        """
        ...

    async def notify(self, method: str, params: bytes) -> None:
        """Send a notification."""
        ...

    async def hear(self) -> None:
        """Hear what the server says unasked for as long as the connection lasts; return where it cannot."""
        ...

    async def lost(self) -> str:
        """Wait until the connection is gone for good; return why.

        Raises ServerMisbehaved where it was closed because of what the server sent.
        """
        ...

    def details(self) -> Mapping[str, Any]:
        """Say what operators should know: process, standard error, session. Never a secret."""
        ...


def dropped(connection: Connection | None) -> int:
    """Return how many messages of the server a connection has not passed on, as there were too many."""
    return 0 if connection is None else connection.details().get("dropped_messages", 0)


Dial = Callable[[Heard], AbstractAsyncContextManager[Connection]]
"""Opens a connection; leaving the block closes it gracefully, and leaves nothing behind."""
