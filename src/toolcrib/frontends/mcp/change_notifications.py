"""Tells clients what has changed, and only then: on a session's stream, or on one they asked for.

One who listens costs a place in a set. A change of the catalog wakes everyone; each looks whether its own
lists are still the same, which is found out once for all who see the same.
"""

from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from hashlib import blake2b
from typing import Any, Literal, cast

import anyio

from toolcrib.errors import Refused
from toolcrib.frontends.mcp.jsonrpc import told
from toolcrib.frontends.mcp.request import McpRequest, ProtocolError, SessionLink, finished
from toolcrib.frontends.mcp.resource_methods import ResourceMethods, Subscriber
from toolcrib.frontends.mcp.revisions import INVALID_PARAMS, SUBSCRIPTION_KEY
from toolcrib.frontends.mcp.search_mode import SearchResults, owner_of
from toolcrib.gateway import Gateway
from toolcrib.model import Caller, JsonObject, Tool
from toolcrib.slots import Slots

MOST_LISTENERS = 1024
MOST_FOLLOWED = 200
"""How many resources one subscription may name."""

Kind = Literal["tools", "resources", "prompts"]
Write = Callable[[bytes], Awaitable[None]]
Begin = Callable[[], Awaitable[None]]

_KINDS: dict[str, Kind] = {
    "toolsListChanged": "tools",
    "resourcesListChanged": "resources",
    "promptsListChanged": "prompts",
}
_TOOLS_CHANGED = "notifications/tools/list_changed"
_ALL: tuple[Kind, ...] = ("tools", "resources", "prompts")


class ChangeListener:
    """One client's ear, from now on: knows what it was told last, and wakes when there may be more."""

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
        """Whether it acts for a user; for one without a name any may be meant."""
        return self.caller.user is not None and user in ("", self.caller.user)

    def shares(self, caller: Caller, session: SessionLink | None) -> bool:
        """Whether what is found there is shown here."""
        if session is not None:
            return self._session is session
        return self._session is None and owner_of(self.caller) == owner_of(caller)

    def ring(self) -> None:
        """Wake up: something may have changed."""
        self._bell.set()

    def updated(self, uri: str) -> None:
        """Take note that a resource has changed; however often, it is told once."""
        self._updated[uri] = None
        self._bell.set()

    async def news(self) -> list[tuple[str, JsonObject]]:
        """Wait for a change; return what to tell: methods of notifications, and their parameters."""
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
                changed.append((f"notifications/{kind}/list_changed", {}))
        return changed

    def _resources(self) -> list[tuple[str, JsonObject]]:
        updated, self._updated = self._updated, {}
        return [("notifications/resources/updated", {"uri": uri}) for uri in updated]


class ChangeNotifications:
    """Hears of every new catalog and every updated resource, and passes it on to those who listen."""

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
        """Return what tells one list of a caller from another."""
        if kind != "tools":
            return self._materials.mark(caller, kind)
        if self._finds.on(caller):
            return _mark(self._finds.shown(caller, session))
        return self._gateway.prepared(caller, "mcp-mark", _mark)

    async def found(self, asked: McpRequest) -> None:
        """Tell whom it concerns that a search has found something; a session that does not listen, here."""
        caller, session = asked.peer.caller, asked.peer.session
        for listener in self._listeners:
            if listener.shares(caller, session):
                listener.ring()
        if session is not None and session not in self._sessions and asked.wire.streams:
            await asked.wire.send(told(_TOOLS_CHANGED, {}))

    async def tell(
        self, session: SessionLink, caller: Caller, write: Write, begin: Begin | None = None
    ) -> None:
        """Tell a session of the handshake era what changes, until cancelled; `begin` once there is room."""
        with self._listening(caller, _ALL, session) as listener:
            self._sessions[session] = listener
            try:
                if begin is not None:
                    await begin()
                while True:
                    for method, params in await listener.news():
                        await write(told(method, params))
            finally:
                if self._sessions.get(session) is listener:
                    del self._sessions[session]

    async def listen(self, asked: McpRequest) -> bytes:
        """Serve `subscriptions/listen`: the answer is a stream that lasts until the client leaves."""
        wanted, caller, send = _wanted(asked.params), asked.peer.caller, asked.wire.send
        offered = {"tools", *self._materials.capabilities(caller)}
        kinds: dict[str, Kind] = {
            name: kind for name, kind in _KINDS.items() if kind in offered and wanted.get(name) is True
        }
        tag = {SUBSCRIPTION_KEY: asked.id}
        with self._listening(caller, tuple(kinds.values())) as listener:
            follower = self._materials.follower(caller, listener.updated)
            try:
                honoured: dict[str, Any] = dict.fromkeys(kinds, True)
                if "resourceSubscriptions" in wanted:
                    honoured["resourceSubscriptions"] = await _followed(follower, wanted)
                said = {"notifications": honoured, "_meta": tag}
                await send(told("notifications/subscriptions/acknowledged", said))
                while True:
                    for method, params in await listener.news():
                        await send(told(method, {**params, "_meta": tag}))
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
    """Spell the result of a subscription that we end."""
    return finished(asked, {"_meta": {SUBSCRIPTION_KEY: asked.id}})


def _wanted(params: JsonObject) -> JsonObject:
    wanted = params.get("notifications")
    if type(wanted) is not dict:
        raise ProtocolError(INVALID_PARAMS, "notifications must be an object that says what to hear of")
    return cast("JsonObject", wanted)


async def _followed(follower: Subscriber, wanted: JsonObject) -> list[str]:
    """Follow the resources a client names; return those of which it will hear."""
    given: Any = wanted["resourceSubscriptions"]
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
    """Tell one list from another."""
    digest = blake2b(digest_size=16)
    for tool in tools:
        digest.update(f"{tool.exposed}\0{tool.fingerprint}\0".encode())
    return digest.digest()
