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
from toolcrib.frontends.mcp.request import McpRequest, ProtocolError, SessionLink, encode_result
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

MAX_LISTENERS = 1024
"""Most listening clients of this process."""
MAX_FOLLOWED_RESOURCES = 200
"""Most resources in one subscription."""

Kind = Literal["tools", "resources", "prompts"]
Write = Callable[[bytes], Awaitable[None]]
Begin = Callable[[], Awaitable[None]]

_LIST_KINDS: tuple[Kind, ...] = ("tools", "resources", "prompts")


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
        self._digests: dict[Kind, bytes] = {kind: changes.digest(kind, caller, session) for kind in kinds}
        self._updated_uris: dict[str, None] = {}
        self._wake_event = anyio.Event()

    def acts_for(self, user: str) -> bool:
        """Whether it acts for a user; an empty user means any."""
        return self.caller.user is not None and user in ("", self.caller.user)

    def shares_results(self, caller: Caller, session: SessionLink | None) -> bool:
        """Whether it shares the search results of this caller or session."""
        if session is not None:
            return self._session is session
        return self._session is None and owner_of(self.caller) == owner_of(caller)

    def wake(self) -> None:
        """Wake up: something may have changed."""
        self._wake_event.set()

    def queue_update(self, uri: str) -> None:
        """Queue a changed resource; duplicates coalesce into one notification."""
        self._updated_uris[uri] = None
        self._wake_event.set()

    async def next_notifications(self) -> list[tuple[str, JsonObject]]:
        """Wait for a change; return the methods and parameters of the notifications to send."""
        while True:
            await self._wake_event.wait()
            self._wake_event = anyio.Event()
            self.caller = await self._changes.present(self.caller)
            digests: dict[Kind, bytes] = {
                kind: self._changes.digest(kind, self.caller, self._session) for kind in self._digests
            }
            changed = [LIST_CHANGED[kind] for kind in digests if digests[kind] != self._digests[kind]]
            updated_uris, self._digests, self._updated_uris = self._updated_uris, digests, {}
            if changed or updated_uris:
                lists: list[tuple[str, JsonObject]] = [(method, {}) for method in changed]
                return [*lists, *((RESOURCE_UPDATED, {"uri": uri}) for uri in updated_uris)]


class ChangeNotifications:
    """Subscribes to catalog and resource changes, and notifies the listening clients."""

    def __init__(
        self, gateway: Gateway, resource_methods: ResourceMethods, search_results: SearchResults
    ) -> None:
        self._gateway, self._resource_methods, self._search_results = (
            gateway,
            resource_methods,
            search_results,
        )
        self._listeners: set[ChangeListener] = set()
        self._slots = Slots(MAX_LISTENERS, gateway.share)
        self._sessions: dict[SessionLink, ChangeListener] = {}
        self.present = gateway.present
        gateway.listen(self._wake_all)
        gateway.listen_for_users(self._wake_user)
        gateway.listen_for_callers(self._wake_caller)
        resource_methods.listen(self._queue_update)

    def digest(self, kind: Kind, caller: Caller, session: SessionLink | None = None) -> bytes:
        """Return a digest of one list of a caller."""
        if kind != "tools":
            return self._resource_methods.digest(caller, kind)
        if self._search_results.applies_to(caller):
            return _digest(self._search_results.listed(caller, session))
        return self._gateway.view(caller, "mcp-digest", _digest)

    async def notify_found(self, request: McpRequest) -> None:
        """Notify clients of new search results; a session without a listener, on this request's stream."""
        caller, session = request.peer.caller, request.peer.session
        for listener in self._listeners:
            if listener.shares_results(caller, session):
                listener.wake()
        if session is not None and session not in self._sessions and request.response.streams:
            await request.response.send(encode_notification(LIST_CHANGED["tools"], b"{}"))

    async def send_changes(
        self, session: SessionLink, caller: Caller, write: Write, begin: Begin | None = None
    ) -> None:
        """Send change notifications to a session until cancelled; calls `begin` once it has a slot."""
        with self._listening(caller, _LIST_KINDS, session) as listener:
            self._sessions[session] = listener
            try:
                if begin is not None:
                    await begin()
                while True:
                    for method, params in await listener.next_notifications():
                        await write(encode_notification(method, orjson.dumps(params)))
            finally:
                if self._sessions.get(session) is listener:
                    del self._sessions[session]

    async def listen(self, request: McpRequest) -> bytes:
        """Serve `subscriptions/listen`: a stream of notifications that lasts until the client disconnects."""
        wanted: Any = request.params.get("notifications")
        if type(wanted) is not dict:
            raise ProtocolError(INVALID_PARAMS, "notifications must be an object that says what to hear of")
        wanted = cast("JsonObject", wanted)
        caller, send = request.peer.caller, request.response.send
        offered = {"tools", *self._resource_methods.capabilities(caller)}
        kinds: dict[str, Kind] = {
            name: kind
            for kind in _LIST_KINDS
            if kind in offered and wanted.get(name := LIST_SUBSCRIPTIONS[kind]) is True
        }
        tag = {SUBSCRIPTION_KEY: request.id}
        with self._listening(caller, tuple(kinds.values())) as listener:
            subscriber = self._resource_methods.subscriber(caller, listener.queue_update)
            try:
                accepted: dict[str, Any] = dict.fromkeys(kinds, True)
                if RESOURCE_SUBSCRIPTIONS in wanted:
                    accepted[RESOURCE_SUBSCRIPTIONS] = await _subscribed_uris(subscriber, wanted)
                params: JsonObject = {"notifications": accepted, "_meta": tag}
                await send(encode_notification(ACKNOWLEDGED, orjson.dumps(params)))
                while True:
                    for method, params in await listener.next_notifications():
                        await send(encode_notification(method, orjson.dumps({**params, "_meta": tag})))
            finally:
                subscriber.close()

    @contextmanager
    def _listening(
        self, caller: Caller, kinds: Sequence[Kind], session: SessionLink | None = None
    ) -> Generator[ChangeListener]:
        principal = caller.principal
        if not self._slots.take(principal):
            message = "too many clients are listening; ask for the lists now and then instead"
            raise Refused("OVERLOADED", message, retry_after=60.0)
        try:
            listener = ChangeListener(self, caller, kinds, session)
            self._listeners.add(listener)
            try:
                yield listener
            finally:
                self._listeners.discard(listener)
        finally:
            self._slots.release(principal)

    def _wake_all(self) -> None:
        for listener in self._listeners:
            listener.wake()

    def _wake_caller(self, caller: str) -> None:
        for listener in self._listeners:
            if listener.caller.id == caller:
                listener.wake()

    def _wake_user(self, user: str) -> None:
        for listener in self._listeners:
            if listener.acts_for(user):
                listener.wake()

    def _queue_update(self, session: SessionLink, uri: str) -> None:
        listener = self._sessions.get(session)
        if listener is not None:
            listener.queue_update(uri)


def end_of_stream(request: McpRequest) -> bytes:
    """Encode the result of a subscription that the gateway ends."""
    return encode_result(request, {"_meta": {SUBSCRIPTION_KEY: request.id}})


async def _subscribed_uris(subscriber: Subscriber, wanted: JsonObject) -> list[str]:
    """Subscribe to the resources that a client names; return the URIs that were accepted."""
    uris: Any = wanted[RESOURCE_SUBSCRIPTIONS]
    if type(uris) is not list or len(cast("list[Any]", uris)) > MAX_FOLLOWED_RESOURCES:
        limit = f"resourceSubscriptions must be a list of at most {MAX_FOLLOWED_RESOURCES} addresses"
        raise ProtocolError(INVALID_PARAMS, limit)
    subscribed: list[str] = []
    for uri in cast("list[Any]", uris):
        if type(uri) is str:
            with suppress(Refused):
                await subscriber.add(uri)
                subscribed.append(uri)
    return subscribed


def _digest(tools: Sequence[Tool]) -> bytes:
    """Return a digest of a tool list."""
    digest = blake2b(digest_size=16)
    for tool in tools:
        digest.update(f"{tool.exposed}\0{tool.fingerprint}\0".encode())
    return digest.digest()
