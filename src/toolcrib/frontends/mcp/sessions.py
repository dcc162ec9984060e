"""Sessions of the handshake era: the id is a signed token, so any replica can resume a session.

The token holds what a client sends once: its owner, revision, capabilities, name and version. Open streams
and running requests exist only in this process. The store holds the last use of a session, once that is older
than an hour, and which sessions have ended.
"""

import hmac
import logging
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections import OrderedDict
from collections.abc import Callable
from hashlib import blake2b, sha256
from secrets import token_urlsafe
from time import monotonic

import anyio
import orjson

from toolcrib.errors import Refused, ToolcribError
from toolcrib.frontends.mcp.client_requests import ClientRequests, RunningRequests
from toolcrib.frontends.mcp.request import Peer, ResponseChannel
from toolcrib.interfaces import FORGOTTEN, McpSessionRow, StoredMcpSessions
from toolcrib.mcp.headers import SESSION_HEADER
from toolcrib.mcp.revisions import LEGACY_REVISIONS, RELAYS
from toolcrib.model import Caller, JsonObject
from toolcrib.slots import DEFAULT_SHARE, Slots

log = logging.getLogger(__name__)

MOST_SESSIONS = 10_000
"""Most sessions in the memory of one process."""
IDLE_SECONDS = 30 * 60.0
"""An idle session is dropped from memory after this many seconds; its token stays valid."""
LONGEST_LIFE = 7 * 24 * 3600.0
"""A session expires after this many seconds without use."""
RENEW_SECONDS = 3600.0
"""The last use of a session is stored when the stored one is older than this."""
RELEASE_SECONDS = 60.0
"""A session unused for this long is released from memory if its token holds all of its state."""
KEEP_SECONDS = 30.0
"""Interval between two syncs with the store: stores last uses, reads ends from other replicas."""
MAX_STORED = 100_000
MAX_STORED_PER_PRINCIPAL = 10_000
"""Most stored last uses, and most stored ends; beyond that the least recently used are deleted.

A session that may be one of the deleted ended ones is refused.
"""

_MOST_TOKEN = 4096
"""Longest token body, in characters; above it, options of capabilities are dropped."""
_MOST_ENDED = 4096
"""Most ends in memory, for requests that read the store just before the end; the store has them all."""
_MAC = 16
"""Bytes of the truncated HMAC-SHA256."""
_BARE: JsonObject = {}


class McpSession:
    """One client session after the handshake, with its state in this process."""

    def __init__(
        self,
        id: str,
        caller: Caller,
        revision: str,
        capabilities: JsonObject,
        client: tuple[str, str],
        *,
        at_home: bool = True,
        row: str = "",
        renewed: float = 0.0,
    ) -> None:
        self.id, self.principal = id, caller.principal
        self.row, self.renewed = row, renewed
        """The id of its row in the store, and when its last use was stored."""
        self.peer = Peer(
            caller=caller, revision=revision, capabilities=capabilities, client=client, session=self
        )
        self.level: str | None = None
        self.watched: set[str] = set()
        self.found: dict[str, None] = {}
        self.at_home = at_home
        """Whether it was opened in this process; questions of another replica are answered there."""
        self.used = 0.0
        self.stream: anyio.CancelScope | None = None
        """The cancel scope of the open GET stream, which carries messages that belong to no request."""
        self.running, self.questions = RunningRequests(), ClientRequests()

    @property
    def busy(self) -> bool:
        """Whether it has running requests, pending questions or an open stream."""
        return bool(self.running or self.questions) or self.stream is not None

    @property
    def has_state(self) -> bool:
        """Whether it has state beyond its token; ids of its questions must not be reused."""
        return bool(self.busy or self.level or self.watched or self.found or self.questions.have_been_asked)

    async def ask(self, method: str, params: JsonObject, wire: ResponseChannel) -> JsonObject:
        """Send a request to the client on the stream of one of its requests."""
        return await self.questions.ask(method, params, wire)

    def take(self, message: JsonObject) -> bool:
        """Route a response to its question; False where only another replica can have sent the question."""
        return self.questions.take(message) or self.at_home

    def act_for(self, caller: Caller) -> None:
        """Use the permissions of the current request, not of the one that opened the session."""
        self.peer = self.peer._replace(caller=caller)


class McpSessionTable:
    """Opens sessions and finds them by id; ids of other principals or contexts are unknown."""

    def __init__(
        self,
        key: bytes,
        stored: StoredMcpSessions,
        clock: Callable[[], float],
        *,
        most: int = MOST_SESSIONS,
        share: float = DEFAULT_SHARE,
        idle_seconds: float = IDLE_SECONDS,
        gone: Callable[[McpSession], None] = lambda _: None,
    ) -> None:
        self._key, self._stored, self._clock = key, stored, clock
        self._slots, self._idle, self._gone = Slots(most, share), idle_seconds, gone
        self._looked = clock()
        # Least recently used first.
        self._live: OrderedDict[str, McpSession] = OrderedDict()
        self._ended: OrderedDict[str, None] = OrderedDict()
        # By row: the state of released sessions that the token does not hold, so that their next request
        # does not depend on the store. It takes a tenth of the memory of a session.
        self._released: OrderedDict[str, tuple[float, bool]] = OrderedDict()

    @property
    def released(self) -> int:
        """The number of sessions that were released from memory and can still be used."""
        return len(self._released)

    def open(
        self, caller: Caller, revision: str, capabilities: JsonObject, client: tuple[str, str]
    ) -> McpSession:
        """Open a session for `initialize`."""
        token = _Token(
            nonce=token_urlsafe(16),
            born=int(self._clock()),
            owner=_owner(caller),
            revision=revision,
            capabilities={name: capabilities[name] for name in sorted(RELAYS) if _given(capabilities, name)},
            client=(client[0][:200], client[1][:200]),
        )
        return self._enter(token.signed(self._key), caller, token, at_home=True, renewed=token.born)

    async def find(self, id: str, caller: Caller) -> McpSession:
        """Return the session of an id; an id of another caller is refused like an unknown one."""
        session = self._live.get(id)
        if session is None:
            token = _Token.read(id, self._key)
            if token is None or token.owner != _owner(caller):
                raise _unknown()
            released = self._released.pop(token.row, None)
            # Another replica may have stored a later use of a session released long ago.
            if released is None or self._clock() - released[0] > LONGEST_LIFE:
                released = await self._last_used(token, caller.principal), False
            session = self._live.get(id)
            if session is None:  # a concurrent request may have entered it
                renewed, at_home = released
                return self._enter(id, caller, token, at_home=at_home, renewed=renewed)
        if session.peer.caller is not caller:
            if _owner(session.peer.caller) != _owner(caller):
                raise _unknown()
            session.act_for(caller)
        session.used = monotonic()
        self._live.move_to_end(id)
        return session

    async def _last_used(self, token: "_Token", principal: str) -> float:
        """Return the last use of a session as stored; raises NOT_FOUND where it has ended or expired."""
        found = await self._stored.get(token.row)
        used = token.born if found is None else max(token.born, found.used)
        ended = await self._may_have_ended(token, principal) if found is None else found.ended
        if ended or token.row in self._ended or self._clock() - used > LONGEST_LIFE:
            raise _unknown()
        return used

    async def _may_have_ended(self, token: "_Token", principal: str) -> bool:
        """Whether a session without a stored row is so old that the row of its end may have been deleted."""
        rows = [await self._stored.get(each) for each in (FORGOTTEN, f"{FORGOTTEN} {principal}")]
        return any(row is not None and token.born <= row.used for row in rows)

    async def end(self, session: McpSession) -> None:
        """End a session permanently; it stays open where the store fails."""
        row = McpSessionRow(id=session.row, principal=session.principal, used=self._clock())
        await self._stored.end(row)
        self._end(session)

    def _end(self, session: McpSession) -> None:
        session.questions.close("the client has ended its session")
        if session.stream is not None:
            session.stream.cancel()
        if self._live.get(session.id) is session:
            self._forget(session)
        # For a concurrent request that has read the store just before.
        self._ended[session.row] = None
        if len(self._ended) > _MOST_ENDED:
            self._ended.popitem(last=False)

    async def run(self, every: float = KEEP_SECONDS) -> None:
        """Sync with the store at an interval until cancelled; failures are logged and retried."""
        while True:
            await anyio.sleep(every)
            try:
                await self.keep()
            except ToolcribError as error:
                log.warning("the use of MCP sessions cannot be stored now, and is tried again: %s", error)

    async def keep(self) -> None:
        """Store last uses, drop sessions ended elsewhere, release unused ones, and prune the store."""
        now, idle = self._clock(), monotonic() - self._idle
        due = [
            session
            for session in self._live.values()
            if now - session.renewed > RENEW_SECONDS and (session.busy or session.used > idle)
        ]
        await self._stored.renew(
            [McpSessionRow(id=each.row, principal=each.principal, used=now) for each in due]
        )
        for session in due:
            session.renewed = now
        ended = frozenset(await self._stored.ended_since(self._looked - RENEW_SECONDS))
        for session in tuple(self._live.values()) if ended else ():
            if session.row in ended:
                self._end(session)
        for row in ended:
            self._released.pop(row, None)
        self._release()
        self._looked = now
        before = now - LONGEST_LIFE
        await self._stored.prune(before, most=MAX_STORED, per_principal=MAX_STORED_PER_PRINCIPAL)

    def hush(self) -> None:
        """Close all questions at shutdown: this process could not receive their responses."""
        for session in self._live.values():
            session.questions.close("the gateway is stopping, and takes no more answers")

    def _enter(
        self, id: str, caller: Caller, token: "_Token", *, at_home: bool, renewed: float
    ) -> McpSession:
        self._sweep()
        if not self._slots.take(caller.principal):
            self._make_room(caller.principal)
        session = McpSession(
            id,
            caller,
            token.revision,
            token.capabilities,
            token.client,
            at_home=at_home,
            row=token.row,
            renewed=renewed,
        )
        session.used = monotonic()
        self._live[id] = session
        return session

    def _sweep(self) -> None:
        """Drop idle sessions from memory."""
        limit = monotonic() - self._idle
        for session in tuple(self._live.values()):
            if session.used > limit:
                return
            if not session.busy:
                self._forget(session)

    def _release(self) -> None:
        """Release sessions without state of their own: most clients never return to end theirs."""
        limit = monotonic() - min(RELEASE_SECONDS, self._idle)
        for session in tuple(self._live.values()):
            if session.used > limit:
                return
            if not session.has_state:
                self._forget(session)
                self._released[session.row] = (session.renewed, session.at_home)
                if len(self._released) > self._slots.total:
                    self._released.popitem(last=False)

    def _make_room(self, principal: str) -> None:
        """Evict the least recently used idle session for a new one, or raise OVERLOADED.

        A principal at its share evicts one of its own; otherwise the principal with the most sessions loses
        one, or else any principal.
        """
        held = self._slots.by_principal
        own = held.get(principal, 0) >= self._slots.per_principal
        most = principal if own else max(held, key=held.__getitem__)
        idle = [session for session in self._live.values() if not session.busy]
        found = next((each for each in idle if each.principal == most), None if own or not idle else idle[0])
        if found is None:
            message = "too many sessions are under way; end one, or try again shortly"
            raise Refused("OVERLOADED", message, retry_after=5.0)
        self._forget(found)
        self._slots.take(principal)

    def _forget(self, session: McpSession) -> None:
        del self._live[session.id]
        self._slots.release(session.principal)
        self._gone(session)


class _Token:
    """The content of a session id, under an HMAC signature."""

    __slots__ = ("born", "capabilities", "client", "nonce", "owner", "revision")

    def __init__(
        self,
        *,
        nonce: str,
        born: int,
        owner: str,
        revision: str,
        capabilities: JsonObject,
        client: tuple[str, str],
    ) -> None:
        self.nonce, self.born, self.owner = nonce, born, owner
        self.revision, self.capabilities, self.client = revision, capabilities, client

    @property
    def row(self) -> str:
        """The id of the session's row in the store."""
        return sha256(self.nonce.encode()).hexdigest()

    def signed(self, key: bytes) -> str:
        """Serialize and sign it, as text that is valid in a header."""
        fields = [self.nonce, self.born, self.owner, self.revision, self.capabilities, self.client]
        body = urlsafe_b64encode(orjson.dumps(fields))
        if len(body) > _MOST_TOKEN:
            # Only capabilities can be that long; their names matter, their options hardly do.
            self.capabilities = dict.fromkeys(self.capabilities, _BARE)
            return self.signed(key)
        return f"{body.decode()}.{urlsafe_b64encode(_mac(body, key)).decode()}"

    @classmethod
    def read(cls, text: str, key: bytes) -> "_Token | None":
        """Verify and parse a token; None where the signature is invalid."""
        body, _, mac = text.partition(".")
        if len(text) > 2 * _MOST_TOKEN or not text.isascii():
            return None
        expected = urlsafe_b64encode(_mac(body.encode(), key))
        if not hmac.compare_digest(expected, mac.encode()):
            return None
        nonce, born, owner, revision, capabilities, client = orjson.loads(urlsafe_b64decode(body))
        if revision not in LEGACY_REVISIONS:
            return None
        return cls(
            nonce=nonce,
            born=born,
            owner=owner,
            revision=revision,
            capabilities=capabilities,
            client=(client[0], client[1]),
        )


def _mac(body: bytes, key: bytes) -> bytes:
    return hmac.digest(key, body, "sha256")[:_MAC]


def _owner(caller: Caller) -> str:
    """Return the owner of a session: a principal in a context, independent of its current permissions."""
    named = orjson.dumps((caller.id, caller.user, caller.context))
    return blake2b(named, digest_size=12).hexdigest()


def _given(capabilities: JsonObject, name: str) -> bool:
    return type(capabilities.get(name)) is dict


def _unknown() -> Refused:
    return Refused("NOT_FOUND", "there is no such session; introduce yourself again", path=SESSION_HEADER)
