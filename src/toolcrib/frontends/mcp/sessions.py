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
from typing import NamedTuple

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

MAX_SESSIONS = 10_000
"""Most sessions in the memory of one process."""
IDLE_SECONDS = 30 * 60.0
"""An idle session is dropped from memory after this many seconds; its token stays valid."""
SESSION_LIFETIME_SECONDS = 7 * 24 * 3600.0
"""A session expires after this many seconds without use."""
RENEW_SECONDS = 3600.0
"""The last use of a session is stored when the stored one is older than this."""
RELEASE_SECONDS = 60.0
"""A session unused for this long is released from memory if its token holds all of its state."""
SYNC_INTERVAL_SECONDS = 30.0
"""Interval between two syncs with the store: stores last uses, reads ends from other replicas."""
MAX_STORED_SESSIONS = 100_000
MAX_STORED_SESSIONS_PER_PRINCIPAL = 10_000
"""Most stored last uses, and most stored ends; beyond that the least recently used are deleted.

A session that may be one of the deleted ended ones is refused.
"""

_MAX_TOKEN_CHARACTERS = 4096
"""Longest token body, in characters; above it, options of capabilities are dropped."""
_MAX_ENDED_SESSIONS = 4096
"""Most ends in memory, for requests that read the store just before the end; the store has them all."""
_MAC_BYTES = 16
"""Bytes of the truncated HMAC-SHA256."""
_EMPTY_OBJECT: JsonObject = {}


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
        opened_here: bool = True,
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
        self.subscribed_uris: set[str] = set()
        self.found_tools: dict[str, None] = {}
        self.opened_here = opened_here
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
        return bool(
            self.busy or self.level or self.subscribed_uris or self.found_tools or self.questions.were_sent
        )

    async def ask(self, method: str, params: JsonObject, response: ResponseChannel) -> JsonObject:
        """Send a request to the client on the stream of one of its requests."""
        return await self.questions.ask(method, params, response)

    def take(self, message: JsonObject) -> bool:
        """Route a response to its question; False where only another replica can have sent the question."""
        return self.questions.take(message) or self.opened_here

    def act_for(self, caller: Caller) -> None:
        """Use the permissions of the current request, not of the one that opened the session."""
        self.peer = self.peer._replace(caller=caller)


class McpSessionTable:
    """Opens sessions and finds them by id; ids of other principals or contexts are unknown."""

    def __init__(
        self,
        key: bytes,
        store: StoredMcpSessions,
        clock: Callable[[], float],
        *,
        max_sessions: int = MAX_SESSIONS,
        share: float = DEFAULT_SHARE,
        idle_seconds: float = IDLE_SECONDS,
        on_forgotten: Callable[[McpSession], None] = lambda _: None,
    ) -> None:
        self._key, self._store, self._clock = key, store, clock
        self._slots, self._idle, self._on_forgotten = Slots(max_sessions, share), idle_seconds, on_forgotten
        self._last_sync = clock()
        # Least recently used first.
        self._sessions: OrderedDict[str, McpSession] = OrderedDict()
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
        token = _SessionToken(
            nonce=token_urlsafe(16),
            created=int(self._clock()),
            owner=_owner(caller),
            revision=revision,
            capabilities={
                name: capabilities[name] for name in sorted(RELAYS) if type(capabilities.get(name)) is dict
            },
            client=(client[0][:200], client[1][:200]),
        )
        if len(token.encoded()) > _MAX_TOKEN_CHARACTERS:
            # Only capabilities can be that long; their names matter, their options hardly do.
            token = token._replace(capabilities=dict.fromkeys(token.capabilities, _EMPTY_OBJECT))
        return self._add(token.signed(self._key), caller, token, opened_here=True, renewed=token.created)

    async def find(self, id: str, caller: Caller) -> McpSession:
        """Return the session of an id; an id of another caller is refused like an unknown one."""
        session = self._sessions.get(id)
        if session is None:
            token = _SessionToken.verified(id, self._key)
            if token is None or token.owner != _owner(caller):
                raise _unknown_session()
            released = self._released.pop(token.row, None)
            # Another replica may have stored a later use of a session released long ago.
            if released is None or self._clock() - released[0] > SESSION_LIFETIME_SECONDS:
                released = await self._last_used(token, caller.principal), False
            session = self._sessions.get(id)
            if session is None:  # a concurrent request may have entered it
                renewed, opened_here = released
                return self._add(id, caller, token, opened_here=opened_here, renewed=renewed)
        if session.peer.caller is not caller:
            if _owner(session.peer.caller) != _owner(caller):
                raise _unknown_session()
            session.act_for(caller)
        session.used = monotonic()
        self._sessions.move_to_end(id)
        return session

    async def _last_used(self, token: "_SessionToken", principal: str) -> float:
        """Return the last use of a session as stored; raises NOT_FOUND where it has ended or expired."""
        found = await self._store.get(token.row)
        used = token.created if found is None else max(token.created, found.used)
        ended = await self._may_have_ended(token, principal) if found is None else found.ended
        if ended or token.row in self._ended or self._clock() - used > SESSION_LIFETIME_SECONDS:
            raise _unknown_session()
        return used

    async def _may_have_ended(self, token: "_SessionToken", principal: str) -> bool:
        """Whether a session without a stored row is so old that the row of its end may have been deleted."""
        rows = [await self._store.get(each) for each in (FORGOTTEN, f"{FORGOTTEN} {principal}")]
        return any(row is not None and token.created <= row.used for row in rows)

    async def end(self, session: McpSession) -> None:
        """End a session permanently; it stays open where the store fails."""
        row = McpSessionRow(id=session.row, principal=session.principal, used=self._clock())
        await self._store.end(row)
        self._end(session)

    def _end(self, session: McpSession) -> None:
        session.questions.close("the client has ended its session")
        if session.stream is not None:
            session.stream.cancel()
        if self._sessions.get(session.id) is session:
            self._drop(session)
        # For a concurrent request that has read the store just before.
        self._ended[session.row] = None
        if len(self._ended) > _MAX_ENDED_SESSIONS:
            self._ended.popitem(last=False)

    async def run(self, every: float = SYNC_INTERVAL_SECONDS) -> None:
        """Sync with the store at an interval until cancelled; failures are logged and retried."""
        while True:
            await anyio.sleep(every)
            try:
                await self.sync()
            except ToolcribError as error:
                log.warning("the use of MCP sessions cannot be stored now, and is tried again: %s", error)

    async def sync(self) -> None:
        """Store last uses, drop sessions ended elsewhere, release unused ones, and prune the store."""
        now, idle = self._clock(), monotonic() - self._idle
        due = [
            session
            for session in self._sessions.values()
            if now - session.renewed > RENEW_SECONDS and (session.busy or session.used > idle)
        ]
        await self._store.renew(
            [McpSessionRow(id=each.row, principal=each.principal, used=now) for each in due]
        )
        for session in due:
            session.renewed = now
        ended = frozenset(await self._store.ended_since(self._last_sync - RENEW_SECONDS))
        for session in tuple(self._sessions.values()) if ended else ():
            if session.row in ended:
                self._end(session)
        for row in ended:
            self._released.pop(row, None)
        self._release()
        self._last_sync = now
        before = now - SESSION_LIFETIME_SECONDS
        await self._store.prune(
            before, most=MAX_STORED_SESSIONS, per_principal=MAX_STORED_SESSIONS_PER_PRINCIPAL
        )

    def close_questions(self) -> None:
        """Close all questions at shutdown: this process could not receive their responses."""
        for session in self._sessions.values():
            session.questions.close("the gateway is stopping, and takes no more answers")

    def _add(
        self, id: str, caller: Caller, token: "_SessionToken", *, opened_here: bool, renewed: float
    ) -> McpSession:
        limit = monotonic() - self._idle
        for session in tuple(self._sessions.values()):
            if session.used > limit:
                break
            if not session.busy:
                self._drop(session)
        if not self._slots.take(caller.principal):
            self._evict(caller.principal)
        content = (token.revision, token.capabilities, token.client)
        session = McpSession(id, caller, *content, opened_here=opened_here, row=token.row, renewed=renewed)
        session.used = monotonic()
        self._sessions[id] = session
        return session

    def _release(self) -> None:
        """Release sessions without state of their own: most clients never return to end theirs."""
        limit = monotonic() - min(RELEASE_SECONDS, self._idle)
        for session in tuple(self._sessions.values()):
            if session.used > limit:
                return
            if not session.has_state:
                self._drop(session)
                self._released[session.row] = (session.renewed, session.opened_here)
                if len(self._released) > self._slots.total:
                    self._released.popitem(last=False)

    def _evict(self, principal: str) -> None:
        """Evict the least recently used idle session for a new one, or raise OVERLOADED.

        A principal at its share evicts one of its own; otherwise the principal with the most sessions loses
        one, or else any principal.
        """
        counts = self._slots.by_principal
        at_share = counts.get(principal, 0) >= self._slots.per_principal
        evicted = principal if at_share else max(counts, key=counts.__getitem__)
        idle = [session for session in self._sessions.values() if not session.busy]
        any_idle = None if at_share or not idle else idle[0]
        found = next((each for each in idle if each.principal == evicted), any_idle)
        if found is None:
            message = "too many sessions are under way; end one, or try again shortly"
            raise Refused("OVERLOADED", message, retry_after=5.0)
        self._drop(found)
        self._slots.take(principal)

    def _drop(self, session: McpSession) -> None:
        del self._sessions[session.id]
        self._slots.release(session.principal)
        self._on_forgotten(session)


class _SessionToken(NamedTuple):
    """The content of a session id, under an HMAC signature."""

    nonce: str
    created: int
    owner: str
    revision: str
    capabilities: JsonObject
    client: tuple[str, str]

    @property
    def row(self) -> str:
        """The id of the session's row in the store."""
        return sha256(self.nonce.encode()).hexdigest()

    def encoded(self) -> bytes:
        """Serialize it as base64url."""
        return urlsafe_b64encode(orjson.dumps(tuple(self)))

    def signed(self, key: bytes) -> str:
        """Serialize and sign it, as text that is valid in a header."""
        body = self.encoded()
        return f"{body.decode()}.{urlsafe_b64encode(_mac(body, key)).decode()}"

    @classmethod
    def verified(cls, text: str, key: bytes) -> "_SessionToken | None":
        """Verify and parse a token; None where the signature is invalid."""
        body, _, mac = text.partition(".")
        if len(text) > 2 * _MAX_TOKEN_CHARACTERS or not text.isascii():
            return None
        expected = urlsafe_b64encode(_mac(body.encode(), key))
        if not hmac.compare_digest(expected, mac.encode()):
            return None
        nonce, created, owner, revision, capabilities, client = orjson.loads(urlsafe_b64decode(body))
        if revision not in LEGACY_REVISIONS:
            return None
        return cls(nonce, created, owner, revision, capabilities, (client[0], client[1]))


def _mac(body: bytes, key: bytes) -> bytes:
    return hmac.digest(key, body, "sha256")[:_MAC_BYTES]


def _owner(caller: Caller) -> str:
    """Return the owner of a session: a principal in a context, independent of its current permissions."""
    return blake2b(orjson.dumps((caller.id, caller.user, caller.context)), digest_size=12).hexdigest()


def _unknown_session() -> Refused:
    return Refused("NOT_FOUND", "there is no such session; introduce yourself again", path=SESSION_HEADER)
