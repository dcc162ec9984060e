"""Who wants to hear of which resource: counted over all clients, so that a source is asked for each once."""

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
MOST_EACH = 200
"""How many resources one client may follow."""
LONGEST = 2_048
"""The longest URI that can be followed."""

_RETRY_SECONDS = 60.0

_ENDS = re.compile("[/?#]")
_MOST_ENDS = 64
"""How deep a part is looked for: a URI of nothing but slashes must not be dear to look at."""

Hear = Callable[[str], None]
"""Told which resource has changed, by the URI it was asked for. Must not wait."""


class _Fetch(Protocol):
    async def __call__(self, door: Tool, params: JsonObject, caller: Caller, way: CallOptions) -> Result: ...


class ResourceSubscriptions:
    """All who follow anything."""

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
        """Told of a source that need not tell all that it did."""
        self._followers: dict[str, dict[str, set[Subscriber]]] = {}
        """By source, then by the URI it knows."""
        self._agreed: set[tuple[str, str]] = set()
        """What sources have said they will tell; after a restart whoever runs them asks again."""
        self.slots = Slots(MOST, share)

    def follower(self, caller: Caller, hear: Hear) -> "Subscriber":
        """Return a client's own; it follows nothing yet."""
        return Subscriber(self, caller, hear)

    def wanted(self, source: str) -> frozenset[str]:
        """Return what a source has to tell of."""
        return frozenset(self._followers.get(source, ()))

    def updated(self, source: str, uri: str) -> None:
        """Pass on that a resource has changed; a part of one that is followed changes that one too."""
        followed = self._followers.get(source)
        if not followed or len(uri) > 2 * LONGEST:
            return
        for own in dict.fromkeys(_wholes(uri)):
            for follower in tuple(followed.get(own, ())):
                if self._is_open(source, follower.caller):
                    follower.tell(source, own)

    async def ask(self, caller: Caller, found: FoundResource) -> None:
        """Have the source of a resource agree to tell of it; raise what it says otherwise."""
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
        """Count one in."""
        followers = self._followers.get(found.holding.source, {}).get(found.name, ())
        if follower in followers:
            return
        if not self.slots.take(follower.caller.principal):
            message = f"too many of {MOST:,} resources are followed already; leave some first, or try later"
            raise Refused("OVERLOADED", message, retry_after=_RETRY_SECONDS)
        self._followers.setdefault(found.holding.source, {}).setdefault(found.name, set()).add(follower)

    def leave(self, follower: "Subscriber", source: str, uri: str) -> None:
        """Count one out; what nobody follows any more need not be told."""
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
    """What one client follows, by the URIs it spells."""

    def __init__(self, following: ResourceSubscriptions, caller: Caller, hear: Hear) -> None:
        self.caller = caller
        self._following, self._hear = following, hear
        self._followed: dict[str, tuple[str, str]] = {}

    async def add(self, uri: str) -> None:
        """Follow a resource; returns when its source has agreed to tell, raises what it says otherwise."""
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
        """Follow a resource no more."""
        where = self._followed.pop(uri, None)
        if where is not None and where not in self._followed.values():
            self._following.leave(self, *where)

    def close(self) -> None:
        """Follow nothing any more."""
        for uri in tuple(self._followed):
            self.drop(uri)

    def tell(self, source: str, own: str) -> None:
        """Say that a resource has changed, under every URI it was asked for by."""
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
    """Every URI that names this, or what this is a part of."""
    yield uri
    for end in islice(_ENDS.finditer(uri), _MOST_ENDS):
        yield uri[: end.start()]
        yield uri[: end.end()]


def _nobody(_source: str) -> None:
    """Before anything runs there is nobody to tell."""
