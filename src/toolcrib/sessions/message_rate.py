"""How much an app may say at a time: so many messages at once, refilled evenly."""

import anyio

BURST = 500.0
RATE = 100.0
"""Messages a second, for as long as it likes."""
_BYTES = 4_096
"""A message of more bytes counts for several."""


class MessageRate:
    """One app's allowance, for one user."""

    def __init__(self) -> None:
        self._left, self._at = BURST, anyio.current_time()

    def take(self, size: int) -> bool:
        """Count a message; False where it is too much."""
        now = anyio.current_time()
        self._left = min(BURST, self._left + (now - self._at) * RATE) - 1 - size // _BYTES
        self._at = now
        return self._left >= 0
