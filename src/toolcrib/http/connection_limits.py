"""Limits connections and unfinished request bodies per principal, so that no principal can exhaust them."""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Collection
from time import monotonic
from typing import TYPE_CHECKING

from toolcrib.descriptors import soft_limit, spare_descriptors
from toolcrib.errors import Refused
from toolcrib.http.client_address import ClientAddresses
from toolcrib.http.memory import BLOCK_BYTES, EXEMPT, LARGE_BYTES, HeldMemory, MemoryWatch
from toolcrib.quotas import client_network
from toolcrib.slots import DEFAULT_SHARE, Slots

if TYPE_CHECKING:
    from toolcrib.http.request import Request

MAX_CONNECTIONS, MAX_BODIES, MAX_BODY_BYTES, MAX_UNREAD_BYTES = 2000, 256, 64 << 20, 128 << 20
SURPLUS_SECONDS, MAX_SURPLUS = 5.0, 128
"""Seconds until a connection over the limit must authenticate, and how many such connections may be open."""
MIN_WAITING_BLOCKS = 16
"""Minimum number of blocks for input that is not processed yet: heads, bodies, WebSocket messages.
The budget is half of that for unfinished bodies, but at least this."""
MAX_UNDECIDED = 32
"""Bodies over the limit that stay in memory for one event loop iteration; each is at most one socket read."""
OVERLOAD_RETRY_SECONDS = 2.0
MALFORMED_LOG_SECONDS = 60.0
"""Minimum seconds between two warnings of malformed requests: any client could flood the log with them."""
_NO_PRINCIPAL = "-"
RESERVED_DESCRIPTORS = 256
"""File descriptors reserved for everything other than client connections."""

log = logging.getLogger(__name__)


class ClientConnection:
    """One connection and the principal that it counts against."""

    __slots__ = (
        "_intake",
        "incoming",
        "is_counted",
        "is_ended",
        "is_proxied",
        "is_spare",
        "is_undecided",
        "principal",
        "timer",
        "transport",
        "unread",
    )

    def __init__(
        self,
        transport: asyncio.Transport,
        principal: str,
        intake: "ConnectionLimits",
        *,
        is_proxied: bool,
        is_spare: bool,
    ) -> None:
        self.transport, self.principal, self._intake = transport, principal, intake
        self.is_proxied, self.is_spare = is_proxied, is_spare
        self.is_counted = self.is_ended = self.is_undecided = False
        self.incoming, self.unread = HeldMemory(intake.waiting_blocks), HeldMemory(intake.unread_blocks)
        """Received bytes that are not processed yet, and sent bytes that the client has not read yet."""
        self.timer: asyncio.TimerHandle | None = None
        """Aborts the connection; runs while it is over the limit and has not authenticated."""

    def hold_incoming(self, size: int) -> bool:
        """Count received bytes that are not processed yet; return False if they exceed the limit."""
        is_shed = self._intake.memory.is_high and self.principal != EXEMPT
        if not is_shed and self.incoming.fit(self.principal, size):
            return True
        self.incoming.clear()
        return False

    def defer(self) -> bool:
        """Retain a body over the limit until its request is authenticated; return whether that is allowed."""
        self.is_undecided = self._intake.undecided < MAX_UNDECIDED
        self._intake.undecided += self.is_undecided
        return self.is_undecided

    def decided(self) -> None:
        """Mark the deferred body as decided."""
        self.is_undecided = False
        self._intake.undecided -= 1

    def hold_unread(self, size: int) -> None:
        """Count bytes the client has not read; over the limit, the oldest backlogs are aborted."""
        self._intake.hold_unread(self, size)


class ConnectionLimits:
    """The connection limits of one process.

    A connection counts against its peer's address until a request on it authenticates, then against that
    principal. A connection from a trusted proxy counts against its request's principal or client address.
    """

    def __init__(
        self,
        clients: ClientAddresses | None = None,
        *,
        connections: int = MAX_CONNECTIONS,
        bodies: int = MAX_BODIES,
        body_bytes: int = MAX_BODY_BYTES,
        unread_bytes: int = MAX_UNREAD_BYTES,
        share: float = DEFAULT_SHARE,
        memory: MemoryWatch | None = None,
    ) -> None:
        self._clients = clients or ClientAddresses()
        self.memory = memory or MemoryWatch(None)
        self.connections = Slots(connections, share)
        self.bodies = Slots(bodies, share)
        self.blocks = Slots(max(1, body_bytes // BLOCK_BYTES), share)
        self.waiting_blocks = Slots(max(MIN_WAITING_BLOCKS, self.blocks.total // 2), share)
        self.unread_blocks = Slots(max(1, unread_bytes // BLOCK_BYTES), share)
        self.trailers_dropped = self.unread_dropped = self.undecided = self.malformed = 0
        self._warned = -MALFORMED_LOG_SECONDS
        self._max_surplus = min(MAX_SURPLUS, max(1, connections // 4))
        # Only half: the operator's request may need further descriptors.
        self._max_spare = max(1, spare_descriptors() // 2)
        self._surplus: dict[ClientConnection, None] = {}
        self._strangers: OrderedDict[ClientConnection, None] = OrderedDict()
        """Connections that count against an address, oldest first."""
        self._unread: dict[ClientConnection, None] = {}
        """Connections with unread response bytes, oldest backlog first."""

    def opened(self, transport: asyncio.Transport, peer: str, *, is_spare: bool = False) -> ClientConnection:
        """Count a new connection; one over the limit stays open briefly, as it may be the operator's."""
        proxied = self._clients.is_proxy(peer)
        connection = ClientConnection(
            transport, _address_principal(peer), self, is_proxied=proxied, is_spare=is_spare
        )
        if is_spare:
            self._add_surplus(
                connection, [other for other in self._surplus if other.is_spare], self._max_spare
            )
        elif not proxied and not self._count_stranger(connection):
            self._add_surplus(connection, self._surplus, min(self._max_surplus, MAX_SURPLUS))
        return connection

    def _count_stranger(self, connection: ClientConnection) -> bool:
        connection.is_counted = self.connections.take(connection.principal)
        if connection.is_counted:
            self._strangers[connection] = None
        return connection.is_counted

    def _count_known(self, connection: ClientConnection) -> bool:
        """Count against a principal; if no slot is free, abort the oldest unauthenticated connection."""
        slots, principal = self.connections, connection.principal
        is_short = slots.used >= slots.total and slots.by_principal.get(principal, 0) < slots.per_principal
        if is_short and self._strangers:
            oldest = next(iter(self._strangers))
            self.closed(oldest)
            oldest.transport.abort()
        connection.is_counted = slots.take(principal)
        return connection.is_counted

    def _add_surplus(
        self, connection: ClientConnection, others: Collection[ClientConnection], limit: int
    ) -> None:
        if len(others) >= limit:
            # The oldest is aborted: a client with a credential presents it at once.
            oldest = next(iter(others))
            self.closed(oldest)
            oldest.transport.abort()
        loop = asyncio.get_running_loop()
        connection.timer = loop.call_later(SURPLUS_SECONDS, connection.transport.abort)
        self._surplus[connection] = None

    def closed(self, connection: ClientConnection) -> None:
        """Release the connection slot; idempotent."""
        if connection.is_counted:
            connection.is_counted = False
            self.connections.release(connection.principal)
            self._strangers.pop(connection, None)
        if connection.timer is not None:
            connection.timer.cancel()
            connection.timer = None
            del self._surplus[connection]

    def ended(self, connection: ClientConnection) -> None:
        """Release the connection slot and the memory that the connection holds."""
        connection.is_ended = True
        self.closed(connection)
        connection.incoming.clear()
        self.hold_unread(connection, 0)

    def hold_unread(self, connection: ClientConnection, size: int) -> None:
        """Count unread bytes; over the limit, abort the oldest backlogs of the principal with the most."""
        if not size:
            connection.unread.clear()
            self._unread.pop(connection, None)
            return
        self._unread[connection] = None
        while not connection.unread.fit(connection.principal, size):
            blocks = self.unread_blocks.by_principal
            full = blocks.get(connection.principal, 0) >= self.unread_blocks.per_principal
            largest = connection.principal if full or not blocks else max(blocks, key=blocks.__getitem__)
            oldest = next((other for other in self._unread if other.unread.principal == largest), connection)
            self.hold_unread(oldest, 0)
            self.unread_dropped += 1
            oldest.transport.abort()
            if oldest is connection:
                return

    def assign(self, connection: ClientConnection, request: "Request") -> None:
        """Count a connection against the principal of its request; refuse if its share is used up."""
        if connection.is_ended:
            return  # the request outlives its connection, and nothing would release the slot
        principal = _principal(request)
        if connection.is_spare and principal != EXEMPT:
            raise overloaded("file descriptors")
        count = self._count_known
        if not principal and connection.is_proxied:
            principal, count = self._address_of(request), self._count_stranger
        if not principal:
            if connection.timer is not None:
                raise overloaded("connections")
            return
        if connection.principal == principal and connection.is_counted:
            return
        self.closed(connection)
        connection.principal = principal
        if principal != EXEMPT and not count(connection):
            connection.principal = _NO_PRINCIPAL
            raise overloaded("connections")

    def count_malformed(self, connection: ClientConnection) -> None:
        """Count a malformed request; log a warning at most once in MALFORMED_LOG_SECONDS."""
        self.malformed += 1
        if monotonic() - self._warned >= MALFORMED_LOG_SECONDS:
            self._warned = monotonic()
            total = f"{self.malformed} since the start; further ones are counted in the metrics"
            log.warning("malformed HTTP request from %s (%s)", connection.principal, total)

    def unfinished_bytes(self) -> int:
        """Return the bytes of unfinished bodies and of input that is not processed yet."""
        return (self.blocks.used + self.waiting_blocks.used) * BLOCK_BYTES

    def begin_body(self, request: "Request") -> "UnfinishedBody":
        """Count a body that is still arriving; refuse if its principal has used up its share of them."""
        principal = _principal(request) or self._address_of(request)
        body = UnfinishedBody(self, principal)
        if principal != EXEMPT and not self.bodies.take(principal):
            raise overloaded("unfinished bodies")
        return body

    def _address_of(self, request: "Request") -> str:
        return _address_principal(self._clients.address(request))


class UnfinishedBody:
    """A request body that is still arriving, and the memory it holds."""

    __slots__ = ("_intake", "_measured", "_memory", "_principal")

    def __init__(self, intake: ConnectionLimits, principal: str) -> None:
        self._intake, self._principal, self._measured = intake, principal, 0
        self._memory = HeldMemory(intake.blocks)

    def grow(self, size: int) -> None:
        """Count the bytes received so far; refuse if memory or the principal's share is exhausted."""
        if self._principal == EXEMPT:
            return
        self._intake.memory.check()
        if size - self._measured > LARGE_BYTES:
            self._measured = size
            self._intake.memory.check_body(size)
        if not self._memory.fit(self._principal, size):
            raise overloaded("bytes of unfinished bodies")

    def end(self) -> None:
        """Release the slot and the memory."""
        if self._principal != EXEMPT:
            self._intake.bodies.release(self._principal)
            self._memory.clear()


def bounded_by_descriptors(connections: int) -> int:
    """Return the number of connections, capped by the file descriptor limit minus a reserve."""
    soft = soft_limit()
    if soft is None:
        return connections
    return min(connections, max(soft // 2, soft - RESERVED_DESCRIPTORS))


def _principal(request: "Request") -> str:
    """Return the principal of a request; empty if it carries no credential."""
    caller = request.caller
    return caller.principal if caller.key else ""


def _address_principal(peer: str) -> str:
    return f"address {client_network(peer)}"


def overloaded(what: str) -> Refused:
    message = f"this client has reached its share of {what}; close some, or try again later"
    return Refused("OVERLOADED", message, retry_after=OVERLOAD_RETRY_SECONDS)
