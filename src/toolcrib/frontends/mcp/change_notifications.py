"""Change notifications for lists and resources, on the GET stream of a session or on a subscription.

A listener is only an entry in a set. A change of the catalog wakes all listeners; each compares the digests
of its lists, which are computed once per audience.
"""

from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from hashlib import blake2b
from typing import Any, Literal, cast

import anyio
import orjson

from toolcrib.errors import Refused
from toolcrib.frontends.mcp.request import McpRequest, ProtocolError, SessionLink, finished
from toolcrib.frontends.mcp.resource_methods import ResourceMethods, Subscriber
from toolcrib.frontends.mcp.tool_list import SearchResults, owner_of
from toolcrib.gateway import Gateway
from toolcrib.mcp.jsonrpc import INVALID_PARAMS, encode_notification
from toolcrib.mcp.meta import SUBSCRIPTION_KEY
from toolcrib.mcp.methods import (
    ACKNOWLEDGED,
    LIST_CHANGED,
    LIST_SUBSCRIPTIONS,
    RESOURCE_SUBSCRIPTIONS,
    RESOURCE_UPDATED,
)
from toolcrib.model import Caller, JsonObject, Tool
from toolcrib.slots import Slots

MOST_LISTENERS = 1024
"""Most listening clients of this process."""
MOST_FOLLOWED = 200
"""Most resources in one subscription."""

Kind = Literal["tools", "resources", "prompts"]
Write = Callable[[bytes], Awaitable[None]]
Begin = Callable[[], Awaitable[None]]

_ALL: tuple[Kind, ...] = ("tools", "resources", "prompts")


class ChangeListener:
    """One listening client: remembers the digests of its lists, and wakes when they may have changed."""

    def __init__(
        self,
        changes: "ChangeNotifications",
        caller: Caller,
        kinds: Sequence[Kind],
        session: SessionLink | None = None,
    ) -> None:
        self._changes, self.caller, self._session = changes, caller, session
        self._marks: dict[Kind, bytes] = {kind: changes.mark(kind, caller, session) for kind in kinds}
        self._updated: dict[str, None] = {}
        self._bell = anyio.Event()

    def concerns(self, user: str) -> bool:
        """Whether it acts for a user; an empty user means any."""
        return self.caller.user is not None and user in ("", self.caller.user)

    def shares(self, caller: Caller, session: SessionLink | None) -> bool:
        """Whether it shares the search results of this caller or session."""
        if session is not None:
            return self._session is session
        return self._session is None and owner_of(self.caller) == owner_of(caller)

    def ring(self) -> None:
        """Wake up: something may have changed."""
        self._bell.set()

    def updated(self, uri: str) -> None:
        """Queue a changed resource; duplicates coalesce into one notification."""
        self._updated[uri] = None
        self._bell.set()

    async def news(self) -> list[tuple[str, JsonObject]]:
        """Wait for a change; return the methods and parameters of the notifications to send."""
        while True:
            await self._bell.wait()
            self._bell = anyio.Event()
            self.caller = await self._changes.present(self.caller)
            found = [*self._lists(), *self._resources()]
            if found:
                return found

    def _lists(self) -> list[tuple[str, JsonObject]]:
        changed: list[tuple[str, JsonObject]] = []
        for kind, before in self._marks.items():
            now = self._changes.mark(kind, self.caller, self._session)
            if now != before:
                self._marks[kind] = now
                changed.append((LIST_CHANGED[kind], {}))
        return changed

    def _resources(self) -> list[tuple[str, JsonObject]]:
        updated, self._updated = self._updated, {}
        return [(RESOURCE_UPDATED, {"uri": uri}) for uri in updated]


class ChangeNotifications:
    """Subscribes to catalog and resource changes, and notifies the listening clients."""

    def __init__(self, gateway: Gateway, materials: ResourceMethods, finds: SearchResults) -> None:
        self._gateway, self._materials, self._finds = gateway, materials, finds
        self._listeners: set[ChangeListener] = set()
        self._slots = Slots(MOST_LISTENERS, gateway.share)
        self._sessions: dict[SessionLink, ChangeListener] = {}
        self.present = gateway.present
        gateway.listen(self._hear)
        gateway.listen_for_users(self._hear_of)
        gateway.listen_for_callers(self._hear_from)
        materials.listen(self._resource)

    def mark(self, kind: Kind, caller: Caller, session: SessionLink | None = None) -> bytes:
        """Return a digest of one list of a caller."""
        if kind != "tools":
            return self._materials.mark(caller, kind)
        if self._finds.on(caller):
            return _mark(self._finds.shown(caller, session))
        return self._gateway.view(caller, "mcp-mark", _mark)

    async def found(self, asked: McpRequest) -> None:
        """Notify clients of new search results; a session without a listener, on this request's stream."""
        caller, session = asked.peer.caller, asked.peer.session
        for listener in self._listeners:
            if listener.shares(caller, session):
                listener.ring()
        if session is not None and session not in self._sessions and asked.wire.streams:
            await asked.wire.send(encode_notification(LIST_CHANGED["tools"], b"{}"))

    async def tell(
        self, session: SessionLink, caller: Caller, write: Write, begin: Begin | None = None
    ) -> None:
        """Send change notifications to a session until cancelled; calls `begin` once it has a slot."""
        with self._listening(caller, _ALL, session) as listener:
            self._sessions[session] = listener
            try:
                if begin is not None:
                    await begin()
                while True:
                    for method, params in await listener.news():
                        await write(encode_notification(method, orjson.dumps(params)))
            finally:
                if self._sessions.get(session) is listener:
                    del self._sessions[session]

    async def listen(self, asked: McpRequest) -> bytes:
        """Serve `subscriptions/listen`: a stream of notifications that lasts until the client disconnects."""
        wanted, caller, send = _wanted(asked.params), asked.peer.caller, asked.wire.send
        offered = {"tools", *self._materials.capabilities(caller)}
        kinds: dict[str, Kind] = {
            name: kind
            for kind in _ALL
            if kind in offered and wanted.get(name := LIST_SUBSCRIPTIONS[kind]) is True
        }
        tag = {SUBSCRIPTION_KEY: asked.id}
        with self._listening(caller, tuple(kinds.values())) as listener:
            follower = self._materials.follower(caller, listener.updated)
            try:
                honoured: dict[str, Any] = dict.fromkeys(kinds, True)
                if RESOURCE_SUBSCRIPTIONS in wanted:
                    honoured[RESOURCE_SUBSCRIPTIONS] = await _followed(follower, wanted)
                said = {"notifications": honoured, "_meta": tag}
                await send(encode_notification(ACKNOWLEDGED, orjson.dumps(said)))
                while True:
                    for method, params in await listener.news():
                        await send(encode_notification(method, orjson.dumps({**params, "_meta": tag})))
            finally:
                follower.close()

    @contextmanager
    def _listening(
        self, caller: Caller, kinds: Sequence[Kind], session: SessionLink | None = None
    ) -> Generator[ChangeListener]:
        principal = caller.principal
        if not self._slots.take(principal):
            message = "too many clients are listening; ask for the lists now and then instead"
            raise Refused("OVERLOADED", message, retry_after=60.0)
        listener: ChangeListener | None = None
        try:
            listener = ChangeListener(self, caller, kinds, session)
            self._listeners.add(listener)
            yield listener
        finally:
            self._slots.release(principal)
            if listener is not None:
                self._listeners.discard(listener)

    def _hear(self) -> None:
        for listener in self._listeners:
            listener.ring()

    def _hear_from(self, caller: str) -> None:
        for listener in self._listeners:
            if listener.caller.id == caller:
                listener.ring()

    def _hear_of(self, user: str) -> None:
        for listener in self._listeners:
            if listener.concerns(user):
                listener.ring()

    def _resource(self, session: SessionLink, uri: str) -> None:
        listener = self._sessions.get(session)
        if listener is not None:
            listener.updated(uri)


def end_of_stream(asked: McpRequest) -> bytes:
    """Encode the result of a subscription that the gateway ends."""
    return finished(asked, {"_meta": {SUBSCRIPTION_KEY: asked.id}})


def _wanted(params: JsonObject) -> JsonObject:
    wanted = params.get("notifications")
    if type(wanted) is not dict:
        raise ProtocolError(INVALID_PARAMS, "notifications must be an object that says what to hear of")
    return cast("JsonObject", wanted)


async def _followed(follower: Subscriber, wanted: JsonObject) -> list[str]:
    """Subscribe to the resources that a client names; return the URIs that were accepted."""
    given: Any = wanted[RESOURCE_SUBSCRIPTIONS]
    uris = cast("list[Any]", given) if type(given) is list else None
    if uris is None or len(uris) > MOST_FOLLOWED:
        limit = f"resourceSubscriptions must be a list of at most {MOST_FOLLOWED} addresses"
        raise ProtocolError(INVALID_PARAMS, limit)
    followed: list[str] = []
    for uri in uris:
        if type(uri) is str:
            with suppress(Refused):
                await follower.add(uri)
                followed.append(uri)
    return followed


def _mark(tools: Sequence[Tool]) -> bytes:
    """Return a digest of a tool list."""
    digest = blake2b(digest_size=16)
    for tool in tools:
        digest.update(f"{tool.exposed}\0{tool.fingerprint}\0".encode())
    return digest.digest()
