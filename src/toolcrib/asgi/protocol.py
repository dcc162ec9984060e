"""uvicorn's HTTP protocol with bounds: on the head, on the time to arrive, on work for nobody."""

import asyncio
from functools import lru_cache, partial
from typing import Any, cast
from urllib.parse import unquote

import httptools
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from toolcrib.asgi.cycle import App, Cycle, Usual
from toolcrib.asgi.switch import SOCKETS, Run
from toolcrib.asgi.websocket import WebSocket, shake

HEAD_BYTES = 64 << 10
"""Where the parser stops; the guard refuses less than this, but needs a head that is whole."""
ARRIVAL_SECONDS = 60.0
"""How long a request may take to arrive, head and body."""
READ_SECONDS, READ_BYTES = 60.0, 64 << 10
"""What a client must take of an answer in what time: it is kept in memory for as long as nobody reads it."""

_ASGI = {"version": "3.0", "spec_version": "2.3"}
_LONGEST_KEPT = 256


class BoundedProtocol(HttpToolsProtocol):
    """One connection. What comes with every request is done here, more cheaply; what is rare is uvicorn's."""

    cycle: Cycle | None
    parser: Any
    _arrived = False
    _head = _chunk = 0
    _late: asyncio.TimerHandle | None = None
    _unread: asyncio.TimerHandle | None = None
    _idle: asyncio.TimerHandle | None = None
    _since = 0.0
    _task: asyncio.Task[None] | None = None
    _usual: Usual = ([], b"")

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Give the first request its time."""
        super().connection_made(transport)
        self._served = cast("App", self.app)
        self._late = self.loop.call_later(ARRIVAL_SECONDS, self._too_late)

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the work for a client that left: nobody is there to hear the answer.

        Some may not be cut short by that alone, and says so in its scope.
        """
        self._stop_timers()
        super().connection_lost(exc)
        cycle = self.cycle
        if self._task is None or cycle is None or not cycle.disconnected:
            return
        if "toolcrib.outlives" not in cycle.scope:
            # One that has not begun will not, and cannot leave by itself.
            self._task.add_done_callback(self.tasks.discard)
            self._task.cancel()

    def data_received(self, data: bytes) -> None:
        """Read on, and watch over a request that does not arrive in one piece."""
        self._chunk = len(data)
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserError:
            self.logger.warning("Invalid HTTP request received.")
            self.send_400_response("Invalid HTTP request received.")
            return
        except httptools.HttpParserUpgrade as upgrade:
            self._offer(data[upgrade.args[0] :])
        if self._arrived:
            if self._late is not None:
                self._set_timer(running=False)
        elif not self.transport.is_closing():
            self._count()

    # What the parser finds

    def on_message_begin(self) -> None:
        """Start anew."""
        self.url, self.headers, self.expect_100_continue = b"", [], False
        self._arrived, self._head = False, 0

    def on_header(self, name: bytes, value: bytes) -> None:
        """Note a header."""
        name = name.lower()
        if name == b"expect":
            self.expect_100_continue = value.lower() == b"100-continue"
        self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        """Begin to answer, or wait until the request before has been answered."""
        parser, before = self.parser, self.cycle
        path, raw, query = _place(self.url) if len(self.url) <= _LONGEST_KEPT else _parsed(self.url)
        version = parser.get_http_version()
        scope: dict[str, Any] = {
            "type": "http",
            "asgi": _ASGI,
            "http_version": version,
            "server": self.server,
            "client": self.client,
            "scheme": self.scheme,
            "method": parser.get_method().decode("ascii"),
            "path": path,
            "raw_path": raw,
            "query_string": query,
            "headers": self.headers,
        }
        cycle = Cycle(scope, self.transport, self.flow, self._headers(), self.on_response_complete)
        cycle.keep_alive = version != "1.0" and parser.should_keep_alive()
        cycle.waiting_for_100_continue = self.expect_100_continue
        cycle.head = self._head + self._chunk
        self._head = -1
        self.cycle = cycle  # pyright: ignore[reportIncompatibleVariableOverride] - of ours, and None at first
        if before is None or before.response_complete:
            self._start(cycle)
        else:
            self.flow.pause_reading()
            self.pipeline.appendleft((cycle, cast("Any", self.app)))

    def on_body(self, body: bytes) -> None:
        """Pass on a part of the body."""
        cycle = self.cycle
        if cycle is not None and not cycle.response_complete:
            cycle.take(body)
            if len(cycle.body) > HIGH_WATER_LIMIT:
                self.flow.pause_reading()

    def on_message_complete(self) -> None:
        """Note that the request is whole."""
        self._arrived, cycle = True, self.cycle
        if cycle is not None and not cycle.response_complete:
            cycle.end()

    def on_response_complete(self) -> None:
        """Go on to the request that waits, or rest."""
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        if self.pipeline:
            cycle, _ = self.pipeline.pop()
            self._start(cast("Cycle", cycle))
            return
        self._since = self.loop.time()
        if self._idle is None:
            self._idle = self.loop.call_later(self.timeout_keep_alive, self._rested)

    def pause_writing(self) -> None:
        """Watch over an answer that the client does not take."""
        super().pause_writing()
        self._watch_over(self.transport.get_write_buffer_size())

    def resume_writing(self) -> None:
        """Go on."""
        super().resume_writing()
        if self._unread is not None:
            self._unread.cancel()

    # Time

    def _watch_over(self, unread: int) -> None:
        self._unread = self.loop.call_later(READ_SECONDS, self._not_read, unread)

    def _not_read(self, before: int) -> None:
        unread = self.transport.get_write_buffer_size()
        if before - unread < READ_BYTES:
            self.transport.abort()
        else:
            self._watch_over(unread)

    def _rested(self) -> None:
        """Hang up after a long rest. One timer serves all rests of a connection: it looks how long it was."""
        left = self._since + self.timeout_keep_alive - self.loop.time()
        resting = self._arrived and self.cycle is not None and self.cycle.response_complete
        if resting and left <= 0 and not self.transport.is_closing():
            self.transport.close()
        else:
            self._idle = self.loop.call_later(left if left > 0 else self.timeout_keep_alive, self._rested)

    def _count(self) -> None:
        if self._late is None:
            self._set_timer(running=True)
        if self._head >= 0:
            self._head += self._chunk
            if self._head > HEAD_BYTES:
                self.send_400_response(f"the headers are over the limit of {HEAD_BYTES} bytes; send less")

    def _set_timer(self, *, running: bool) -> None:
        if self._late is not None:
            self._late.cancel()
        self._late = self.loop.call_later(ARRIVAL_SECONDS, self._too_late) if running else None

    def _stop_timers(self) -> None:
        self._set_timer(running=False)
        for timer in (self._idle, self._unread):
            if timer is not None:
                timer.cancel()

    def _too_late(self) -> None:
        if self.pipeline:
            # It waits behind another request of the same client, and we are the ones who do not read on.
            self._set_timer(running=True)
        elif not self._arrived and not self.transport.is_closing():
            self.transport.close()

    # Another protocol

    def _offer(self, more: bytes) -> None:
        """Offer a socket to whoever answers; elsewhere it is as if the request had not asked for one."""
        cycle = self.cycle
        if cycle is not None and cycle.scope["path"] == SOCKETS:
            # What comes from here on is for the socket, if there will be one.
            self.flow.pause_reading()
            cycle.scope["toolcrib.switch"] = partial(self._switch, cycle, more)

    def _switch(self, cycle: Cycle, more: bytes, run: Run, *, heartbeat: float) -> None:
        """Leave the connection to a socket."""
        wire, answer = shake(cycle.scope)
        cycle.response_started = cycle.response_complete = True
        self._stop_timers()
        self.connections.discard(self)
        socket = WebSocket(wire, self.transport, self.connections)
        self.transport.set_protocol(socket)
        self.transport.write(answer)
        task = self.loop.create_task(socket.run(run, heartbeat))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        if more:
            socket.data_received(more)
        self.flow.resume_reading()

    # Answers

    def send_400_response(self, msg: str) -> None:
        """Answer in the shape of all our errors, and hang up."""
        body = cast("App", self.config.app).malformed(msg)
        head = (
            b"HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\ncache-control: no-store\r\n"
            b"x-content-type-options: nosniff\r\nconnection: close\r\ncontent-length: %d\r\n\r\n"
        )
        self.transport.write(head % len(body) + body)
        self.transport.close()

    def _headers(self) -> Usual:
        """Return uvicorn's own headers; it makes another list of them once a second."""
        headers = self.server_state.default_headers
        if self._usual[0] is not headers:
            self._usual = (headers, b"".join(b"%b: %b\r\n" % pair for pair in headers))
        return self._usual

    def _start(self, cycle: Cycle) -> None:
        """Start as uvicorn does, and remember the task, to cancel it where the client leaves."""
        cycle.scope["toolcrib.short"] = cycle
        task = self._task = cycle.task = self.loop.create_task(cycle.run(self._served, self.tasks))
        self.tasks.add(task)
        if self._late is not None:
            # What waited behind another request is read on from here, so its time starts here.
            self._set_timer(running=True)


def _parsed(url: bytes) -> tuple[str, bytes, bytes]:
    parsed = httptools.parse_url(url)
    path = parsed.path.decode("ascii")
    return unquote(path) if "%" in path else path, parsed.path, parsed.query or b""


_place = lru_cache(maxsize=1024)(_parsed)
"""The same addresses are asked for again and again."""
