"""Rate limit for messages of an app (token bucket)."""

import anyio

# Tokens of a full bucket.
BURST = 500.0
RATE = 100.0
"""Tokens added per second."""
_BYTES = 4_096
"""Bytes per extra token: a larger message costs several tokens."""


class MessageRate:
    """The token bucket of one app session."""

    def __init__(self) -> None:
        self._left, self._at = BURST, anyio.current_time()

    def take(self, size: int) -> bool:
        """Charge a message of this size in bytes; return False if it exceeds the limit."""
        now = anyio.current_time()
        self._left = min(BURST, self._left + (now - self._at) * RATE) - 1 - size // _BYTES
        self._at = now
        return self._left >= 0
