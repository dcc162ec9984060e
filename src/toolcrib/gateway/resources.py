"""Resources and prompts of all sources, and subscriptions to them; policy and steps apply."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple, Protocol, TypeVar, cast

from toolcrib.catalog import (
    PROMPTS_COMPLETE,
    PROMPTS_GET,
    PSEUDO_TOOLS,
    RESOURCES_COMPLETE,
    RESOURCES_READ,
    RESOURCES_SUBSCRIBE,
    Snapshot,
    SourceExtras,
)
from toolcrib.errors import Refused
from toolcrib.gateway.call_options import AccessDenied, CallOptions
from toolcrib.gateway.resource_index import FoundResource, PromptIndex, ResourceIndex
from toolcrib.model import Caller, JsonObject, Problem, Result, Tool
from toolcrib.policy import Policy
from toolcrib.slots import DEFAULT_SHARE, Slots

# --- Resource subscriptions, counted over all clients, so that each source gets one `subscribe` per URI ---

MAX_SUBSCRIPTIONS = 10_000
"""Most subscriptions of all clients."""
MAX_CLIENT_SUBSCRIPTIONS = 200
"""Most subscriptions of one client."""
MAX_SUBSCRIBED_URI_CHARACTERS = 2_048
"""Longest URI that can be subscribed to, in characters."""

_SUBSCRIPTION_RETRY_SECONDS = 60.0

_URI_DELIMITER = re.compile("[/?#]")
_MAX_PARENT_URIS = 64
"""Most parents of a URI that are looked up, so that a URI of nothing but slashes stays cheap."""

OnResourceUpdate = Callable[[str], None]
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
        self.slots = Slots(MAX_SUBSCRIPTIONS, share)

    def follower(self, caller: Caller, hear: OnResourceUpdate) -> "Subscriber":
        """Return a new subscriber without subscriptions."""
        return Subscriber(self, caller, hear)

    def wanted(self, source: str) -> frozenset[str]:
        """Return the URIs of a source that some client subscribes to."""
        return frozenset(self._followers.get(source, ()))

    def updated(self, source: str, uri: str) -> None:
        """Notify the subscribers of a changed resource, and those of every resource that it is a part of."""
        followed = self._followers.get(source)
        if not followed or len(uri) > 2 * MAX_SUBSCRIBED_URI_CHARACTERS:
            return
        for own in dict.fromkeys(_parent_uris(uri)):
            for follower in tuple(followed.get(own, ())):
                if self._is_open(source, follower.caller):
                    follower.tell(source, own)

    async def ask(self, caller: Caller, found: FoundResource) -> None:
        """Subscribe at the source unless it has confirmed already; raises `Refused` with its problem."""
        where = (found.holding.source, found.name)
        if where in self._agreed:
            return
        result = await self._fetch(found.holding.doors[RESOURCES_SUBSCRIBE], {"uri": found.name}, caller, {})
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
            message = f"too many of {MAX_SUBSCRIPTIONS:,} resources are followed already; leave some first, or try later"
            raise Refused("OVERLOADED", message, retry_after=_SUBSCRIPTION_RETRY_SECONDS)
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

    def __init__(self, following: ResourceSubscriptions, caller: Caller, hear: OnResourceUpdate) -> None:
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
        if len(uri) > MAX_SUBSCRIBED_URI_CHARACTERS:
            raise Refused(
                "INVALID_REQUEST",
                f"a URI of more than {MAX_SUBSCRIBED_URI_CHARACTERS:,} characters cannot be followed",
            )
        if uri not in self._followed and len(self._followed) >= MAX_CLIENT_SUBSCRIPTIONS:
            message = f"{MAX_CLIENT_SUBSCRIPTIONS} resources are followed already, which is the most; leave one first"
            raise Refused("INVALID_REQUEST", message, path="uri")


def _parent_uris(uri: str) -> Iterator[str]:
    """Yield the URI, and every prefix of it that ends at or before a `/`, `?` or `#`."""
    yield uri
    for end in islice(_URI_DELIMITER.finditer(uri), _MAX_PARENT_URIS):
        yield uri[: end.start()]
        yield uri[: end.end()]


def _nobody(_source: str) -> None:
    """Do nothing: the default callback until the runtime sets its own."""


# --- Resources and prompts. Each access runs through a hidden pseudo-tool, so policy and steps apply ---

T = TypeVar("T", ResourceIndex, PromptIndex)

RESOURCE_LINK = "resource_link"
"""The type of a content block that links to a resource."""

_MAX_CACHED_AUDIENCES = 512
"""Most audiences in the cache; it is cleared when it is full."""
_MAX_CACHED_INDEXES = 64
"""Most indexes in the cache; it is cleared when it is full."""
_MAX_QUOTED_CHARACTERS = 200
"""Longest part of a URI or name in an error message, in characters."""
_MAX_URI_CHARACTERS = 8_192
"""Longest accepted URI, in characters; a longer one is not found."""


class ResourceFetch(Protocol):
    """Sends a request to a source through the steps of its pseudo-tool."""

    async def __call__(
        self, door: Tool, params: JsonObject, caller: Caller, way: CallOptions, denied: Problem | None = None
    ) -> Result: ...


class AnnouncedLists(NamedTuple):
    """The capabilities to declare to a caller."""

    resources: bool
    tells: bool
    prompts: bool
    completes: bool


@dataclass(frozen=True, slots=True)
class _View:
    """What one audience may access, and what it may know of but is denied."""

    resources: ResourceIndex
    prompts: PromptIndex
    closed_resources: ResourceIndex
    closed_prompts: PromptIndex


class ResourceAccess:
    """Lists, reads and completes resources and prompts, as each caller may see them."""

    def __init__(
        self,
        policy: Policy,
        fetch: ResourceFetch,
        servers: Callable[[], Iterable[str]],
        *,
        share: float = DEFAULT_SHARE,
    ) -> None:
        self._policy, self._fetch, self._servers = policy, fetch, servers
        self._holdings: Mapping[str, SourceExtras] = {}
        self._views: dict[object, _View] = {}
        self._made: dict[tuple[object, ...], Any] = {}
        self.following = ResourceSubscriptions(self.resource, fetch, self._is_open, share=share)
        """The resource subscriptions of all clients."""

    def adopt(self, snapshot: Snapshot) -> None:
        """Replace the catalog; indexes stay cached where the resources and prompts are unchanged."""
        if list(self._holdings.values()) != list(snapshot.holdings.values()):
            self._holdings = snapshot.holdings
            self._made = {}
        self._views = {}

    # --- lists ---

    def resources(self, caller: Caller) -> ResourceIndex:
        """Return the index of the resources this caller may read, in source order."""
        return self._view(caller).resources

    def prompts(self, caller: Caller) -> PromptIndex:
        """Return the index of the prompts this caller may get, in source order."""
        return self._view(caller).prompts

    def announced(self, caller: Caller) -> AnnouncedLists:
        """Return the capabilities to declare; all of them while some server has never been connected."""
        view = self._view(caller)
        reading, prompting = view.resources.holdings.values(), view.prompts.holdings.values()
        yet = any(server not in self._holdings for server in self._servers())
        return AnnouncedLists(
            resources=yet or bool(reading),
            tells=yet or any(each.materials.tells for each in reading),
            prompts=yet or bool(prompting),
            completes=yet or any(each.materials.completes for each in (*reading, *prompting)),
        )

    def resource(self, uri: str, caller: Caller) -> FoundResource:
        """Resolve a URI for this caller; raises `Refused`."""
        if len(uri) > _MAX_URI_CHARACTERS:
            raise _no_resource(uri)
        view = self._view(caller)
        found = view.resources.find(uri, alone=False)
        if found is None:
            self._refuse(view.closed_resources.find(uri, alone=False), RESOURCES_READ, caller)
            found = view.resources.find(uri)
        if found is None:
            raise _no_resource(uri)
        return found

    def template(self, text: str, caller: Caller) -> FoundResource:
        """Resolve a URI template for this caller; raises `Refused`."""
        view = self._view(caller)
        found = view.resources.find_template(text)
        if found is None:
            self._refuse(view.closed_resources.find_template(text), RESOURCES_READ, caller)
            raise _no_resource(text)
        return found

    def prompt(self, name: str, caller: Caller) -> FoundResource:
        """Resolve a prompt name for this caller; raises `Refused` with similar names."""
        view = self._view(caller)
        found = view.prompts.find(name)
        if found is None:
            self._refuse(view.closed_prompts.find(name), PROMPTS_GET, caller)
            close = view.prompts.near(name)
            meant = f"; did you mean {', '.join(close)}?" if close else ""
            raise Refused(
                "NOT_FOUND", f"there is no prompt named {name[:_MAX_QUOTED_CHARACTERS]}{meant}", path="name"
            )
        return found

    # --- requests ---

    async def read(self, uri: str, caller: Caller, way: CallOptions) -> Result:
        """Read a resource; URIs in the result are rewritten to those this caller knows."""
        try:
            found = self.resource(uri, caller)
        except AccessDenied as error:
            return await self._fetch(error.tool, {"uri": uri}, caller, way, error.problem)
        result = await self._fetch(found.holding.doors[RESOURCES_READ], {"uri": found.name}, caller, way)
        return self._as_shown(result, uri, found, caller)

    async def get(self, name: str, arguments: JsonObject | None, caller: Caller, way: CallOptions) -> Result:
        """Get a prompt."""
        given: JsonObject = {} if arguments is None else {"arguments": arguments}
        try:
            found = self.prompt(name, caller)
        except AccessDenied as error:
            return await self._fetch(error.tool, {"name": name, **given}, caller, way, error.problem)
        result = await self._fetch(
            found.holding.doors[PROMPTS_GET], {"name": found.name, **given}, caller, way
        )
        return self._linked(result, found, caller)

    async def complete(self, params: JsonObject, caller: Caller, way: CallOptions) -> Result:
        """Return completions for an argument of a prompt or a variable of a URI template, from the source.

        `params["ref"]` is the MCP reference: it has a `name` (prompt) or a `uri` (template).
        """
        ref: JsonObject = params["ref"]
        of_prompt = "name" in ref
        try:
            found = self.prompt(ref["name"], caller) if of_prompt else self.template(ref["uri"], caller)
        except AccessDenied as error:
            return await self._fetch(error.tool, params, caller, way, error.problem)
        if not found.holding.materials.completes:
            return Result(data={"completion": {"values": []}})
        door = found.holding.doors[PROMPTS_COMPLETE if of_prompt else RESOURCES_COMPLETE]
        named = {**ref, "name" if of_prompt else "uri": found.name}
        return await self._fetch(door, {**params, "ref": named}, caller, way)

    def links(self, source: str, caller: Caller) -> Callable[[JsonObject], JsonObject]:
        """Return a function that rewrites the links in a result, so that this caller can follow them."""
        there = self.resources(caller)
        holding = there.holdings.get(source)
        spell = None if holding is None else there.spelling(holding, links=True)

        def link(block: JsonObject) -> JsonObject:
            uri = block.get("uri")
            said = spell(uri) if spell is not None and type(uri) is str else uri
            return block if said == uri else {**block, "uri": said}

        return link

    def _linked(self, result: Result, found: FoundResource, caller: Caller) -> Result:
        """Rewrite the links in a prompt."""
        data = _object(result.data)
        held = data.get("messages")
        messages = list(cast("list[Any]", held)) if type(held) is list else []
        link = self.links(found.holding.source, caller)
        for place, each in enumerate(messages):
            block = _object(_object(each).get("content"))
            if block.get("type") == RESOURCE_LINK:
                messages[place] = {**each, "content": link(block)}
        same = not messages or messages == held
        return result if same else result.replace(data={**data, "messages": messages}, encoded=b"")

    def _as_shown(self, result: Result, uri: str, found: FoundResource, caller: Caller) -> Result:
        """Rewrite the URIs in the contents of a resource to those this caller knows."""
        data = _object(result.data)
        held = data.get("contents")
        contents = list(cast("list[Any]", held)) if type(held) is list else []
        spell = self.resources(caller).spelling(found.holding)
        changed = False
        for place, each in enumerate(contents):
            own = _object(each).get("uri")
            if type(own) is str:
                said = uri if own == found.name else spell(own)
                if said != own:
                    contents[place], changed = {**_object(each), "uri": said}, True
        return result.replace(data={**data, "contents": contents}, encoded=b"") if changed else result

    # --- access ---

    def _is_open(self, source: str, caller: Caller) -> bool:
        return source in self._view(caller).resources.holdings

    def _refuse(self, found: FoundResource | None, door: str, caller: Caller) -> None:
        """Raise `AccessDenied` where the caller may know of the match but is denied access to it."""
        if found is None:
            return
        tool = found.holding.doors[door]
        why = self._policy.why_not(tool, caller)
        if why is not None and why.effect == "deny":
            raise AccessDenied(why.code, f"{tool.name} {why.message}", tool)

    def _view(self, caller: Caller) -> _View:
        audience = self._policy.audience(caller)
        view = self._views.get(audience)
        if view is None:
            if len(self._views) >= _MAX_CACHED_AUDIENCES:
                self._views.clear()
            view = self._views[audience] = self._looked(caller)
        return view

    def _looked(self, caller: Caller) -> _View:
        seen: dict[tuple[str, bool], list[SourceExtras]] = {}
        for holding in self._holdings.values():
            for door in (holding.doors[name] for name in PSEUDO_TOOLS if name in holding.doors):
                why = self._policy.why_not(door, caller)
                if why is None or why.effect == "deny":
                    seen.setdefault((door.local, why is None), []).append(holding)
        return _View(
            self._once(ResourceIndex, seen.get((RESOURCES_READ, True), ())),
            self._once(PromptIndex, seen.get((PROMPTS_GET, True), ())),
            self._once(ResourceIndex, seen.get((RESOURCES_READ, False), ())),
            self._once(PromptIndex, seen.get((PROMPTS_GET, False), ())),
        )

    def _once(self, kind: type[T], holdings: Sequence[SourceExtras]) -> T:
        """Return an index, shared by all callers with the same sources."""
        key = (kind, *(each.source for each in holdings))
        made: T | None = self._made.get(key)
        if made is None:
            if len(self._made) >= _MAX_CACHED_INDEXES:
                self._made.clear()
            made = self._made[key] = kind(holdings)
        return made


def _object(value: Any) -> JsonObject:
    return cast("JsonObject", value) if type(value) is dict else {}


def _no_resource(uri: str) -> Refused:
    return Refused("NOT_FOUND", f"there is no resource {uri[:_MAX_QUOTED_CHARACTERS]}", path="uri")
