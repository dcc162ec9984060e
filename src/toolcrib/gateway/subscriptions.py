"""Resource subscriptions, counted over all clients, so that each source gets one `subscribe` per URI."""

import re
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Protocol

from toolcrib.catalog import FOLLOW
from toolcrib.errors import Refused
from toolcrib.gateway.call_options import CallOptions
from toolcrib.gateway.resource_index import FoundResource
from toolcrib.model import Caller, JsonObject, Result, Tool
from toolcrib.slots import DEFAULT_SHARE, Slots

MOST = 10_000
"""Most subscriptions of all clients."""
MOST_EACH = 200
"""Most subscriptions of one client."""
LONGEST = 2_048
"""Longest URI that can be subscribed to, in characters."""

_RETRY_SECONDS = 60.0

_ENDS = re.compile("[/?#]")
_MOST_ENDS = 64
"""Most parents of a URI that are looked up, so that a URI of nothing but slashes stays cheap."""

Hear = Callable[[str], None]
"""Callback for a changed resource; gets the URI the client subscribed with. Must not block."""


class _Fetch(Protocol):
    async def __call__(self, door: Tool, params: JsonObject, caller: Caller, way: CallOptions) -> Result: ...


class ResourceSubscriptions:
    """The subscriptions of all clients."""

    def __init__(
        self,
        find: Callable[[str, Caller], FoundResource],
        fetch: _Fetch,
        is_open: Callable[[str, Caller], bool],
        *,
        share: float = DEFAULT_SHARE,
    ) -> None:
        self.find, self._fetch, self._is_open = find, fetch, is_open
        self.spare: Callable[[str], None] = _nobody
        """Callback for a source that has subscriptions no client needs any more."""
        self._followers: dict[str, dict[str, set[Subscriber]]] = {}
        """Subscribers by source, then by the source's own URI."""
        self._agreed: set[tuple[str, str]] = set()
        """Confirmed subscriptions (source, URI); after a restart the supervisor subscribes again."""
        self.slots = Slots(MOST, share)

    def follower(self, caller: Caller, hear: Hear) -> "Subscriber":
        """Return a new subscriber without subscriptions."""
        return Subscriber(self, caller, hear)

    def wanted(self, source: str) -> frozenset[str]:
        """Return the URIs of a source that some client subscribes to."""
        return frozenset(self._followers.get(source, ()))

    def updated(self, source: str, uri: str) -> None:
        """Notify the subscribers of a changed resource, and those of every resource that it is a part of."""
        followed = self._followers.get(source)
        if not followed or len(uri) > 2 * LONGEST:
            return
        for own in dict.fromkeys(_wholes(uri)):
            for follower in tuple(followed.get(own, ())):
                if self._is_open(source, follower.caller):
                    follower.tell(source, own)

    async def ask(self, caller: Caller, found: FoundResource) -> None:
        """Subscribe at the source unless it has confirmed already; raises `Refused` with its problem."""
        where = (found.holding.source, found.name)
        if where in self._agreed:
            return
        result = await self._fetch(found.holding.doors[FOLLOW], {"uri": found.name}, caller, {})
        if result.problem is not None:
            said = result.problem
            raise Refused(said.code, said.message, retry_after=said.retry_after)
        if found.name in self._followers.get(found.holding.source, ()):
            self._agreed.add(where)

    def enter(self, follower: "Subscriber", found: FoundResource) -> None:
        """Add a subscriber; raises OVERLOADED where no slot is free."""
        followers = self._followers.get(found.holding.source, {}).get(found.name, ())
        if follower in followers:
            return
        if not self.slots.take(follower.caller.principal):
            message = f"too many of {MOST:,} resources are followed already; leave some first, or try later"
            raise Refused("OVERLOADED", message, retry_after=_RETRY_SECONDS)
        self._followers.setdefault(found.holding.source, {}).setdefault(found.name, set()).add(follower)

    def leave(self, follower: "Subscriber", source: str, uri: str) -> None:
        """Remove a subscriber; the last one of a URI also ends the subscription at the source."""
        followers = self._followers.get(source, {}).get(uri, set())
        if follower not in followers:
            return
        self.slots.release(follower.caller.principal)
        followers.discard(follower)
        if not followers:
            del self._followers[source][uri]
            self._agreed.discard((source, uri))
            self.spare(source)


class Subscriber:
    """The subscriptions of one client, by the URIs it used."""

    def __init__(self, following: ResourceSubscriptions, caller: Caller, hear: Hear) -> None:
        self.caller = caller
        self._following, self._hear = following, hear
        self._followed: dict[str, tuple[str, str]] = {}

    async def add(self, uri: str) -> None:
        """Subscribe to a resource; returns once the source has confirmed, raises `Refused` otherwise."""
        found = self._following.find(uri, self.caller)
        self._check(uri, found)
        self._following.enter(self, found)
        self._followed[uri] = (found.holding.source, found.name)
        agreed = False
        try:
            await self._following.ask(self.caller, found)
            agreed = True
        finally:
            if not agreed:
                self.drop(uri)

    def drop(self, uri: str) -> None:
        """Unsubscribe from a resource."""
        where = self._followed.pop(uri, None)
        if where is not None and where not in self._followed.values():
            self._following.leave(self, *where)

    def close(self) -> None:
        """Unsubscribe from everything."""
        for uri in tuple(self._followed):
            self.drop(uri)

    def tell(self, source: str, own: str) -> None:
        """Notify the client of a changed resource, under every URI it subscribed with."""
        for spelled, where in tuple(self._followed.items()):
            if where == (source, own):
                self._hear(spelled)

    def _check(self, uri: str, found: FoundResource) -> None:
        if not found.holding.materials.tells:
            message = f"{found.holding.source} does not tell when its resources change"
            raise Refused("INVALID_REQUEST", message, path="uri")
        if len(uri) > LONGEST:
            raise Refused("INVALID_REQUEST", f"a URI of more than {LONGEST:,} characters cannot be followed")
        if uri not in self._followed and len(self._followed) >= MOST_EACH:
            message = f"{MOST_EACH} resources are followed already, which is the most; leave one first"
            raise Refused("INVALID_REQUEST", message, path="uri")


def _wholes(uri: str) -> Iterator[str]:
    """Yield the URI, and every prefix of it that ends at or before a `/`, `?` or `#`."""
    yield uri
    for end in islice(_ENDS.finditer(uri), _MOST_ENDS):
        yield uri[: end.start()]
        yield uri[: end.end()]


def _nobody(_source: str) -> None:
    """Do nothing: the default callback until the runtime sets its own."""
