"""uvicorn's HTTP protocol with limits on head size, arrival time, pipelining and abandoned requests."""

import asyncio
from functools import partial
from typing import Any, cast

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from toolcrib.http.connection_limits import ClientConnection, ConnectionLimits
from toolcrib.http.framing import (
    HEAD_END,
    ChunkedFraming,
    MalformedRequest,
    check_authority,
    coding_fault,
    parse_target,
)
from toolcrib.http.request_cycle import (
    UNCOUNTED_BODY_BYTES,
    CountingFlow,
    DefaultHeaders,
    RequestCycle,
    ServedApp,
    hold_body,
)
from toolcrib.http.websocket import APP_SOCKET_PATH, SocketHandler, WebSocket, accept_handshake

MAX_HEAD_BYTES = 64 << 10
"""Maximum bytes of an incomplete head. The guard has a lower limit, but needs a complete head."""
MAX_HEADERS = 256
"""Maximum number of headers in an incomplete head. The guard has a lower limit, with a specific error."""
ARRIVAL_SECONDS = 60.0
"""Seconds in which a request must arrive, head and body."""
MAX_PIPELINED = 64
"""Maximum number of pipelined requests of one connection; one more is refused and closes the connection."""
UNCOUNTED_HEAD_BYTES = 4 << 10
"""Bytes of an incomplete head that may be buffered before they are counted."""

_ASGI = {"version": "3.0", "spec_version": "2.3"}
_FRAMING_HEADERS = frozenset({b"expect", b"transfer-encoding", b"upgrade"})
_VERSIONS = frozenset({"1.0", "1.1"})
_TUNNEL = b"CONNECT"
"""After CONNECT the parser treats all following bytes as another protocol, regardless of the headers."""
_NOT_HTTP = "Invalid HTTP request received."


class _DiscardingParser:
    """Replaces the parser once a connection has sent bytes that are not a request."""

    def feed_data(self, data: bytes) -> None:
        """Ignore further input."""


class BoundedProtocol(HttpToolsProtocol):
    """One connection. The hot path of a request is implemented here; uvicorn handles the rare cases."""

    cycle: RequestCycle | None
    parser: Any
    _arrived = False
    _is_first = True
    """Whether no message has ended within the current read yet."""
    _head = _chunk = 0
    _head_tail = b""
    """The last bytes of an incomplete head, which may contain the start of its end."""
    _arrival_timer: asyncio.TimerHandle | None = None
    _idle_timer: asyncio.TimerHandle | None = None
    _idle_since = 0.0
    _limits: ConnectionLimits
    _connection: ClientConnection
    _running: RequestCycle | None = None
    """The request in progress; later ones wait in the pipeline."""
    _framing: ChunkedFraming | None = None
    _has_framing_headers = _upgrade_ignored = False
    _rendered_defaults: DefaultHeaders = ([], b"")
    is_spare = False
    """Whether the connection uses a descriptor reserved for the operator."""

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Register the connection and start the arrival timer of its first request."""
        super().connection_made(transport)
        self._served_app, self.headers = cast("ServedApp", self.app), []
        self._limits = getattr(self.config.app, "intake", None) or ConnectionLimits()
        peer = self.client[0] if self.client else ""
        self._connection = self._limits.opened(transport, peer, is_spare=self.is_spare)
        self.flow = CountingFlow(transport, self._connection)
        self._arrival_timer = self.loop.call_later(ARRIVAL_SECONDS, self._arrival_timed_out)

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the request of a client that disconnected: its response could not be delivered.

        A request with `toolcrib.outlives` in its scope is not cancelled.
        """
        self._stop_timers()
        self._limits.ended(self._connection)
        super().connection_lost(exc)
        running = self._running
        if running is None or running.response_complete:
            return
        running.disconnected = True
        running.message_event.set()
        if "toolcrib.outlives" not in running.scope:
            self._cancel(running)

    def _cancel(self, cycle: RequestCycle) -> None:
        if cycle.task is not None:
            # A task cancelled before its first step never runs, so it cannot remove itself.
            cycle.task.add_done_callback(self.tasks.discard)
            cycle.task.cancel()

    def data_received(self, data: bytes) -> None:
        """Parse a read, and limit the time and size of a request that is still incomplete."""
        self._chunk, self._is_first = len(data), True
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserError as error:
            self._refuse(_reason(error), own=self._head < 0 and not self._arrived)
            return
        except httptools.HttpParserUpgrade as upgrade:
            if not self._upgraded(data[upgrade.args[0] :]):
                return
        if self._framing is not None and self._framing.exceeds(data):
            self._refuse("the trailers and chunk extensions are too large; leave them out", own=True)
            return
        if self._arrived:
            if self._arrival_timer is not None:
                self._set_timer(running=False)
        elif not self.transport.is_closing():
            self._count_head(data)

    # Parser callbacks

    def on_message_begin(self) -> None:
        """Reset the state for a new message."""
        self.url, self.headers, self.expect_100_continue = b"", [], False
        self._arrived, self._head = False, 0
        self._has_framing_headers, self._framing = False, None

    def on_header(self, name: bytes, value: bytes) -> None:
        """Add a header. After the head it is a trailer field, which the framing drops."""
        name = name.lower()
        if name in _FRAMING_HEADERS:
            self._has_framing_headers = True
        self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        """Start the request, or queue it until the response of the previous one is complete."""
        parser, before = self.parser, self.cycle
        path, raw, query, _, authority = target = parse_target(self.url)
        method, version = parser.get_method(), parser.get_http_version()
        if authority:
            check_authority(target, self.headers)
        if version not in _VERSIONS or method == _TUNNEL:
            raise MalformedRequest("only HTTP/1.1 and HTTP/1.0 are supported, and no CONNECT tunnels")
        headers = self.headers
        if self._has_framing_headers and self._ignores_upgrade(path, version):
            return
        scope: dict[str, Any] = {
            "type": "http",
            "asgi": _ASGI,
            "http_version": version,
            "server": self.server,
            "client": self.client,
            "scheme": self.scheme,
            "method": method.decode("ascii"),
            "path": path,
            "raw_path": raw,
            "query_string": query,
            "headers": headers,
        }
        cycle = RequestCycle(
            scope, self.transport, self.flow, self._default_headers(), self.on_response_complete
        )
        cycle.keep_alive = version != "1.0" and parser.should_keep_alive()
        cycle.waiting_for_100_continue = self.expect_100_continue
        cycle.head, cycle.connection = self._head + self._chunk, self._connection
        if self._head > UNCOUNTED_HEAD_BYTES:
            self._connection.incoming.clear()
        self._head = -1
        self.cycle = cycle  # pyright: ignore[reportIncompatibleVariableOverride] - of ours, and None at first
        if before is None or before.response_complete:
            self._start(cycle)
        else:
            self._enqueue(cycle)

    def _enqueue(self, cycle: RequestCycle) -> None:
        """Queue a pipelined request until the responses before it are complete."""
        if len(self.pipeline) >= MAX_PIPELINED:
            raise MalformedRequest("too many pipelined requests on this connection; read the responses first")
        self.flow.pause_reading()
        self.pipeline.appendleft((cycle, cast("Any", self.app)))

    def _ignores_upgrade(self, path: str, version: str) -> bool:
        """Process the headers that change the framing; return whether the head must be parsed again."""
        fields = self.headers
        codings = [value for name, value in fields if name == b"transfer-encoding"]
        if codings:
            has_length = any(name == b"content-length" for name, _ in fields)
            fault = coding_fault(codings, version, has_length=has_length)
            if fault is not None:
                raise MalformedRequest(fault)
        self.expect_100_continue = any(
            name == b"expect" and value.lower() == b"100-continue" for name, value in fields
        )
        if self.parser.should_upgrade() and path != APP_SOCKET_PATH:
            self._upgrade_ignored = True
            return True
        if codings:
            start = self._head_tail if self._head else b""
            self._framing = ChunkedFraming(self._limits, start if self._is_first else None)
            self.headers = cast("Any", self._framing)
        return False

    def on_chunk_complete(self) -> None:
        """Report the end of a chunk to the framing."""
        if self._framing is not None:
            self._framing.end_chunk()

    def on_body(self, body: bytes) -> None:
        """Append a part of the body to the request."""
        cycle = self.cycle
        if self._framing is not None:
            self._framing.content += len(body)
        if cycle is not None and not cycle.response_complete and cycle.refusal is None:
            cycle.take(body)
            if len(cycle.body) > UNCOUNTED_BODY_BYTES:
                hold_body(cycle)

    def on_message_complete(self) -> None:
        """Mark the request as complete."""
        if self._upgrade_ignored:
            return
        self._arrived, self._is_first, cycle = True, False, self.cycle
        if cycle is not None and not cycle.response_complete:
            cycle.end()

    def on_response_complete(self) -> None:
        """Start the next pipelined request, or the keep-alive timer."""
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        if self.flow.read_paused and self._running is not None:
            # From here on this body is not counted, and nothing reads it.
            self._running.body = b""
            self.flow.resume_reading()
        if self.pipeline:
            cycle, _ = self.pipeline.pop()
            self._start(cast("RequestCycle", cycle))
            return
        self._idle_since = self.loop.time()
        if self._idle_timer is None:
            self._idle_timer = self.loop.call_later(self.timeout_keep_alive, self._idle_timed_out)

    # Timers

    def _idle_timed_out(self) -> None:
        """Close an idle connection. One timer serves all idle periods: it checks when the last one began."""
        left = self._idle_since + self.timeout_keep_alive - self.loop.time()
        resting = self._arrived and self.cycle is not None and self.cycle.response_complete
        if resting and left <= 0 and not self.transport.is_closing():
            self.transport.close()
        else:
            self._idle_timer = self.loop.call_later(
                left if left > 0 else self.timeout_keep_alive, self._idle_timed_out
            )

    def _count_head(self, data: bytes) -> None:
        if self._arrival_timer is None:
            self._set_timer(running=True)
        if self._head >= 0:
            self._head += self._chunk
            tail_start = 1 - len(HEAD_END)
            self._head_tail = (self._head_tail + data[tail_start:])[tail_start:]
            if self._head > MAX_HEAD_BYTES or len(self.headers) > MAX_HEADERS:
                limit = f"{MAX_HEADERS} headers of {MAX_HEAD_BYTES} bytes"
                self.send_400_response(f"the headers are over the limit of {limit}; send less")
            elif self._head > UNCOUNTED_HEAD_BYTES and not self._connection.hold_incoming(self._head):
                self.transport.abort()

    def _set_timer(self, *, running: bool) -> None:
        if self._arrival_timer is not None:
            self._arrival_timer.cancel()
        self._arrival_timer = (
            self.loop.call_later(ARRIVAL_SECONDS, self._arrival_timed_out) if running else None
        )

    def _stop_timers(self) -> None:
        self._set_timer(running=False)
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        cast("CountingFlow", self.flow).stop()

    def _arrival_timed_out(self) -> None:
        if self.pipeline:
            # It waits behind another request of the same client, while the gateway has paused reading.
            self._set_timer(running=True)
        elif not self._arrived and not self.transport.is_closing():
            self.transport.close()

    # Protocol upgrade

    def _upgraded(self, rest: bytes) -> bool:
        """Continue after a head that requests an upgrade; return whether the connection stays readable.

        The parser treats everything after such a head as the other protocol, also a body. If no upgrade is
        offered, the head is parsed again without the Upgrade header.
        """
        while self._upgrade_ignored:
            self._upgrade_ignored = False
            left, rest = len(rest), self._head_without_upgrade() + rest
            self.parser = httptools.HttpRequestParser(self)
            self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
            try:
                self.parser.feed_data(rest)
            except httptools.HttpParserError as error:
                self._refuse(_reason(error), own=self._head < 0 and not self._arrived)
                return False
            except httptools.HttpParserUpgrade as upgrade:
                rest = rest[upgrade.args[0] :]
                if len(rest) == left:
                    # The parser stopped at the same head again: this would loop forever.
                    self._refuse(_NOT_HTTP, own=False)
                    return False
            else:
                return True
        self._offer_upgrade(rest)
        return True

    def _head_without_upgrade(self) -> bytes:
        version = self.parser.get_http_version().encode()
        lines = [b"%b %b HTTP/%b\r\n" % (self.parser.get_method(), self.url, version)]
        lines += [b"%b: %b\r\n" % pair for pair in self.headers if pair[0] != b"upgrade"]
        return b"".join((*lines, b"\r\n"))

    def _offer_upgrade(self, more: bytes) -> None:
        """Offer the WebSocket upgrade to the handler; `more` are the bytes after the head."""
        cycle = self.cycle
        if cycle is not None and cycle.scope["path"] == APP_SOCKET_PATH:
            # Bytes from here on belong to the WebSocket, if it is opened; they cannot be another request.
            self.flow.pause_reading()
            cycle.keep_alive = False
            cycle.scope["toolcrib.upgrade"] = partial(self._upgrade, cycle, more)

    def _upgrade(self, cycle: RequestCycle, more: bytes, run: SocketHandler, *, heartbeat: float) -> None:
        """Complete the handshake and hand the connection over to a WebSocket."""
        protocol, handshake = accept_handshake(cycle.scope)
        cycle.response_started = cycle.response_complete = True
        self._stop_timers()
        self.connections.discard(self)
        socket = WebSocket(protocol, self.transport, self.connections, (self._limits, self._connection))
        self.transport.set_protocol(socket)
        self.transport.write(handshake)
        task = self.loop.create_task(socket.run(run, heartbeat))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        if more:
            socket.data_received(more)
        self.flow.resume_reading()

    # Responses

    def _refuse(self, message: str, *, own: bool) -> None:
        """Refuse malformed input and stop parsing; `own` if it belongs to the body of the last request.

        An earlier request still gets its response, and the connection is closed after that.
        """
        self._limits.count_malformed(self._connection)
        self.parser = cast("Any", _DiscardingParser())
        last = self.cycle
        if own and last is not None:
            if self.pipeline and self.pipeline[0][0] is last:
                self.pipeline.popleft()
            else:
                last.disconnected = not last.response_complete
                self._cancel(last)
                if last.response_started:
                    self.transport.close()
                    return
        running = self._running
        if running is not None and not (running.response_complete or running.disconnected):
            waiting = cast("RequestCycle", self.pipeline[0][0]) if self.pipeline else running
            waiting.keep_alive = False
            return
        self.send_400_response(message)

    def send_400_response(self, msg: str) -> None:
        """Send a 400 response in the gateway's error format, and close the connection."""
        body = cast("ServedApp", self.config.app).malformed(msg)
        head = (
            b"HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\ncache-control: no-store\r\n"
            b"x-content-type-options: nosniff\r\nconnection: close\r\ncontent-length: %d\r\n\r\n"
        )
        self.transport.write(head % len(body) + body)
        self.transport.close()

    def _default_headers(self) -> DefaultHeaders:
        """Return uvicorn's default headers, rendered; cached until uvicorn replaces them, once a second."""
        headers = self.server_state.default_headers
        if self._rendered_defaults[0] is not headers:
            self._rendered_defaults = (headers, b"".join(b"%b: %b\r\n" % pair for pair in headers))
        return self._rendered_defaults

    def _start(self, cycle: RequestCycle) -> None:
        """Start the request's task, and store it so that a disconnect can cancel it."""
        cycle.scope["toolcrib.short"] = self._running = cycle
        task = cycle.task = self.loop.create_task(cycle.run(self._served_app, self.tasks))
        self.tasks.add(task)
        if self._arrival_timer is not None:
            # A pipelined request is read on only from here, so its arrival time starts here.
            self._set_timer(running=True)


def _reason(error: httptools.HttpParserError) -> str:
    """Return the reason of a parser error if it was raised here, else a generic message."""
    return str(error.__context__) if isinstance(error.__context__, MalformedRequest) else _NOT_HTTP
