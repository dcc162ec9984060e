"""Timeouts and limits of app sessions."""

from dataclasses import dataclass

from toolcrib.slots import DEFAULT_SHARE


@dataclass(frozen=True, slots=True, kw_only=True)
class AppTimeouts:
    """Timeouts in seconds, and limits of sizes and counts."""

    activation: float = 10.0
    """Time an app has to connect and authenticate after a start."""
    grace: float = 5.0
    """Time a disconnected app has to reconnect before its webhook is called."""
    heartbeat: float = 10.0
    """Interval of WebSocket pings; the frontend that owns the socket sends them."""
    idle: float | None = 600.0
    """An app without calls, messages or events for this long is stopped; None disables that."""
    first_frame: float = 5.0
    """Time a new connection has to send its first message, which authenticates it."""
    frame_bytes: int = 1 << 20
    """Bytes of the largest message an app may send."""
    webhook: float = 10.0
    """Timeout of a webhook response."""
    sockets: int = 4096
    """Maximum number of authenticated app connections."""
    share: float = DEFAULT_SHARE
    """Largest share of a limit for one principal: a key, or the key that owns the app."""
    phone_microphone: bool = True
    """Whether the phone's microphone counts as the device's."""
