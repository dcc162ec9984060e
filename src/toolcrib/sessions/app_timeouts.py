"""How long an app may take to come, to come back, and to do nothing."""

from dataclasses import dataclass

from toolcrib.slots import DEFAULT_SHARE


@dataclass(frozen=True, slots=True, kw_only=True)
class AppTimeouts:
    """All times in seconds."""

    activation: float = 10.0
    """How long an app that is called may take until it is connected and known."""
    grace: float = 5.0
    """How long one whose connection broke may take to come back by itself."""
    heartbeat: float = 10.0
    """How often a connection is tried, by whoever holds the socket."""
    idle: float | None = 600.0
    """After how long without a call, a message or an event an app is stopped; None for never."""
    first_frame: float = 5.0
    """How long a new connection may take to say whose it is."""
    frame_bytes: int = 1 << 20
    """The largest message an app may send."""
    webhook: float = 10.0
    """How long the answer to a webhook is waited for."""
    sockets: int = 4096
    """How many connections of apps that are known there may be."""
    share: float = DEFAULT_SHARE
    """The largest part of a shared limit that one principal may hold: a key, or the key an app belongs to."""
    phone_microphone: bool = True
    """Whether the microphone of the phone counts as the device's."""
