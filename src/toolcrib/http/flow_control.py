"""The flow of one connection: what waits in memory either way is counted, and not kept for ever."""

import asyncio

from uvicorn.protocols.http.flow_control import FlowControl

from toolcrib.http.connection_limits import ClientConnection

READ_SECONDS, READ_BYTES = 60.0, 64 << 10
"""What a client must take of an answer in what time: it is kept in memory for as long as nobody reads it."""


class CountingFlow(FlowControl):
    """Counts an answer that is not read; hangs up on who does not read at all."""

    def __init__(self, transport: asyncio.Transport, connection: ClientConnection) -> None:
        super().__init__(transport)
        self._connection, self._loop = connection, asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None

    def resume_reading(self) -> None:
        """Read on: what had come so far was taken."""
        if self.read_paused:
            self._connection.incoming.clear()
            super().resume_reading()

    def pause_writing(self) -> None:
        """Watch over an answer that the client does not take."""
        super().pause_writing()
        self._watch_over(self._transport.get_write_buffer_size())

    def resume_writing(self) -> None:
        """Go on."""
        super().resume_writing()
        self.stop()

    def stop(self) -> None:
        """Watch no more."""
        self._connection.hold_unread(0)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _watch_over(self, unread: int) -> None:
        # First the timer: counting may be what ends the connection.
        self._timer = self._loop.call_later(READ_SECONDS, self._not_read, unread)
        self._connection.hold_unread(unread)

    def _not_read(self, before: int) -> None:
        unread = self._transport.get_write_buffer_size()
        if before - unread < READ_BYTES:
            self._transport.abort()
        else:
            self._watch_over(unread)
