"""Flow control of one connection: bytes buffered in either direction are counted, and for a limited time."""

import asyncio

from uvicorn.protocols.http.flow_control import FlowControl

from toolcrib.http.connection_limits import ClientConnection

READ_SECONDS, READ_BYTES = 60.0, 64 << 10
"""Seconds, and the bytes of a response a client must read in them: unread bytes stay in memory until then."""


class CountingFlow(FlowControl):
    """Counts unread response bytes and aborts the connection of a client that reads too slowly."""

    def __init__(self, transport: asyncio.Transport, connection: ClientConnection) -> None:
        super().__init__(transport)
        self._connection, self._loop = connection, asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None

    def resume_reading(self) -> None:
        """Resume reading: the bytes received so far were consumed."""
        if self.read_paused:
            self._connection.incoming.clear()
            super().resume_reading()

    def pause_writing(self) -> None:
        """Start to watch the write buffer (backpressure: the client does not read)."""
        super().pause_writing()
        self._watch_over(self._transport.get_write_buffer_size())

    def resume_writing(self) -> None:
        """Resume writing and stop the watch."""
        super().resume_writing()
        self.stop()

    def stop(self) -> None:
        """Stop the watch and release the counted bytes."""
        self._connection.hold_unread(0)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _watch_over(self, unread: int) -> None:
        # Timer first: counting the bytes may abort this connection.
        self._timer = self._loop.call_later(READ_SECONDS, self._not_read, unread)
        self._connection.hold_unread(unread)

    def _not_read(self, before: int) -> None:
        unread = self._transport.get_write_buffer_size()
        if before - unread < READ_BYTES:
            self._transport.abort()
        else:
            self._watch_over(unread)
