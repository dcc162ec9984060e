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
"""Limit for all clients together."""
MAX_CLIENT_SUBSCRIPTIONS = 200
MAX_SUBSCRIBED_URI_CHARACTERS = 2_048

_SUBSCRIPTION_RETRY_SECONDS = 60.0

_URI_DELIMITER = re.compile("[/?#]")
_MAX_PARENT_URIS = 64
"""Limit of the parents of a URI that are looked up, so that a URI of only slashes stays cheap."""

OnResourceUpdate = Callable[[str], None]
"""Callback for a changed resource; gets the URI the client subscribed with. Must not block."""


class ResourceFetch(Protocol):
    """Sends a request to a source through the steps of its pseudo-tool."""

    async def __call__(
        self,
        pseudo_tool: Tool,
        params: JsonObject,
        caller: Caller,
        options: CallOptions,
        denied: Problem | None = None,
    ) -> Result: ...


class ResourceSubscriptions:
    """The subscriptions of all clients."""

    def __init__(
        self,
        find: Callable[[str, Caller], FoundResource],
        fetch: ResourceFetch,
        is_open: Callable[[str, Caller], bool],
        *,
        share: float = DEFAULT_SHARE,
    ) -> None:
        self.find, self._fetch, self._is_open = find, fetch, is_open
        self.on_unused: Callable[[str], None] = lambda _source: None
        """Callback for a source with a subscription that no client needs any more."""
        self._subscribers: dict[str, dict[str, set[Subscriber]]] = {}
        """Subscribers by source, then by the source's own URI."""
        self._confirmed: set[tuple[str, str]] = set()
        """Confirmed subscriptions (source, URI); after a restart the supervisor subscribes again."""
        self.slots = Slots(MAX_SUBSCRIPTIONS, share)

    def subscriber(self, caller: Caller, on_update: OnResourceUpdate) -> "Subscriber":
        """Return a new subscriber without subscriptions."""
        return Subscriber(self, caller, on_update)

    def wanted(self, source: str) -> frozenset[str]:
        """Return the URIs of a source that some client subscribes to."""
        return frozenset(self._subscribers.get(source, ()))

    def updated(self, source: str, uri: str) -> None:
        """Notify the subscribers of a changed resource, and those of every resource that it is a part of."""
        subscribed_uris = self._subscribers.get(source)
        if not subscribed_uris or len(uri) > 2 * MAX_SUBSCRIBED_URI_CHARACTERS:
            return
        for source_uri in dict.fromkeys(_parent_uris(uri)):
            for subscriber in tuple(subscribed_uris.get(source_uri, ())):
                if self._is_open(source, subscriber.caller):
                    subscriber.tell(source, source_uri)

    async def ensure_confirmed(self, caller: Caller, found: FoundResource) -> None:
        """Subscribe at the source unless it has confirmed already; raises `Refused` with its problem."""
        subscription = (found.holding.source, found.name)
        if subscription in self._confirmed:
            return
        pseudo_tool = found.holding.pseudo_tools[RESOURCES_SUBSCRIBE]
        result = await self._fetch(pseudo_tool, {"uri": found.name}, caller, {})
        if result.problem is not None:
            problem = result.problem
            raise Refused(problem.code, problem.message, retry_after=problem.retry_after)
        if found.name in self._subscribers.get(found.holding.source, ()):
            self._confirmed.add(subscription)

    def add_subscriber(self, subscriber: "Subscriber", found: FoundResource) -> None:
        """Add a subscriber; raises OVERLOADED where no slot is free."""
        subscribers = self._subscribers.get(found.holding.source, {}).get(found.name, ())
        if subscriber in subscribers:
            return
        if not self.slots.take(subscriber.caller.principal):
            message = f"{MAX_SUBSCRIPTIONS:,} subscriptions are the limit; unsubscribe first, or try later"
            raise Refused("OVERLOADED", message, retry_after=_SUBSCRIPTION_RETRY_SECONDS)
        self._subscribers.setdefault(found.holding.source, {}).setdefault(found.name, set()).add(subscriber)

    def remove_subscriber(self, subscriber: "Subscriber", source: str, uri: str) -> None:
        """Remove a subscriber; the last one of a URI also ends the subscription at the source."""
        subscribers = self._subscribers.get(source, {}).get(uri, set())
        if subscriber not in subscribers:
            return
        self.slots.release(subscriber.caller.principal)
        subscribers.discard(subscriber)
        if not subscribers:
            del self._subscribers[source][uri]
            self._confirmed.discard((source, uri))
            self.on_unused(source)


class Subscriber:
    """The subscriptions of one client, by the URIs it used."""

    def __init__(
        self, subscriptions: ResourceSubscriptions, caller: Caller, on_update: OnResourceUpdate
    ) -> None:
        self.caller = caller
        self._subscriptions, self._on_update = subscriptions, on_update
        self._subscribed: dict[str, tuple[str, str]] = {}

    async def add(self, uri: str) -> None:
        """Subscribe to a resource; returns once the source has confirmed, raises `Refused` otherwise."""
        found = self._subscriptions.find(uri, self.caller)
        self._check(uri, found)
        self._subscriptions.add_subscriber(self, found)
        self._subscribed[uri] = (found.holding.source, found.name)
        confirmed = False
        try:
            await self._subscriptions.ensure_confirmed(self.caller, found)
            confirmed = True
        finally:
            if not confirmed:
                self.drop(uri)

    def drop(self, uri: str) -> None:
        """Unsubscribe from a resource."""
        subscription = self._subscribed.pop(uri, None)
        if subscription is not None and subscription not in self._subscribed.values():
            self._subscriptions.remove_subscriber(self, *subscription)

    def close(self) -> None:
        """Unsubscribe from everything."""
        for uri in tuple(self._subscribed):
            self.drop(uri)

    def tell(self, source: str, source_uri: str) -> None:
        """Notify the client of a changed resource, under every URI it subscribed with."""
        for subscribed_uri, subscription in tuple(self._subscribed.items()):
            if subscription == (source, source_uri):
                self._on_update(subscribed_uri)

    def _check(self, uri: str, found: FoundResource) -> None:
        if not found.holding.materials.tells:
            message = f"{found.holding.source} does not notify clients of changed resources"
            raise Refused("INVALID_REQUEST", message, path="uri")
        if len(uri) > MAX_SUBSCRIBED_URI_CHARACTERS:
            limit = f"{MAX_SUBSCRIBED_URI_CHARACTERS:,} characters"
            raise Refused("INVALID_REQUEST", f"a URI of more than {limit} cannot be subscribed to")
        if uri not in self._subscribed and len(self._subscribed) >= MAX_CLIENT_SUBSCRIPTIONS:
            limit = f"the maximum of {MAX_CLIENT_SUBSCRIPTIONS} subscriptions"
            raise Refused("INVALID_REQUEST", f"this client has {limit}; unsubscribe first", path="uri")


def _parent_uris(uri: str) -> Iterator[str]:
    """Yield the URI, and every prefix of it that ends at or before a `/`, `?` or `#`."""
    yield uri
    for end in islice(_URI_DELIMITER.finditer(uri), _MAX_PARENT_URIS):
        yield uri[: end.start()]
        yield uri[: end.end()]


# --- Resources and prompts. Each access runs through a hidden pseudo-tool, so policy and steps apply ---

T = TypeVar("T", ResourceIndex, PromptIndex)

RESOURCE_LINK = "resource_link"
"""The type of a content block that links to a resource."""

_MAX_CACHED_AUDIENCES = 512
"""The cache is cleared when it has this many audiences."""
_MAX_CACHED_INDEXES = 64
"""The cache is cleared when it has this many indexes."""
_MAX_QUOTED_CHARACTERS = 200
"""Maximum length of a URI or name in an error message."""
_MAX_URI_CHARACTERS = 8_192
"""A longer URI is not found."""


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
    denied_resources: ResourceIndex
    denied_prompts: PromptIndex


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
        self._indexes: dict[tuple[object, ...], Any] = {}
        self.subscriptions = ResourceSubscriptions(self.resource, fetch, self._is_open, share=share)
        """The resource subscriptions of all clients."""

    def adopt(self, snapshot: Snapshot) -> None:
        """Replace the catalog; indexes stay cached where the resources and prompts are unchanged."""
        if list(self._holdings.values()) != list(snapshot.holdings.values()):
            self._holdings = snapshot.holdings
            self._indexes = {}
        self._views = {}

    # --- lists ---

    def resources(self, caller: Caller) -> ResourceIndex:
        """Return the index of the resources this caller may read, in source order."""
        return self._view(caller).resources

    def prompts(self, caller: Caller) -> PromptIndex:
        """Return the index of the prompts this caller may get, in source order."""
        return self._view(caller).prompts

    def capabilities(self, caller: Caller) -> AnnouncedLists:
        """Return the capabilities to declare; all of them while some server has never been connected."""
        view = self._view(caller)
        reading, prompting = view.resources.holdings.values(), view.prompts.holdings.values()
        unconnected = any(server not in self._holdings for server in self._servers())
        return AnnouncedLists(
            resources=unconnected or bool(reading),
            tells=unconnected or any(each.materials.tells for each in reading),
            prompts=unconnected or bool(prompting),
            completes=unconnected or any(each.materials.completes for each in (*reading, *prompting)),
        )

    def resource(self, uri: str, caller: Caller) -> FoundResource:
        """Resolve a URI for this caller; raises `Refused`."""
        if len(uri) > _MAX_URI_CHARACTERS:
            raise _no_resource(uri)
        view = self._view(caller)
        found = view.resources.find(uri, guess=False)
        if found is None:
            self._refuse(view.denied_resources.find(uri, guess=False), RESOURCES_READ, caller)
            found = view.resources.find(uri)
        if found is None:
            raise _no_resource(uri)
        return found

    def template(self, text: str, caller: Caller) -> FoundResource:
        """Resolve a URI template for this caller; raises `Refused`."""
        view = self._view(caller)
        found = view.resources.find_template(text)
        if found is None:
            self._refuse(view.denied_resources.find_template(text), RESOURCES_READ, caller)
            raise _no_resource(text)
        return found

    def prompt(self, name: str, caller: Caller) -> FoundResource:
        """Resolve a prompt name for this caller; raises `Refused` with similar names."""
        view = self._view(caller)
        found = view.prompts.find(name)
        if found is None:
            self._refuse(view.denied_prompts.find(name), PROMPTS_GET, caller)
            close = view.prompts.near(name)
            suggestion = f"; did you mean {', '.join(close)}?" if close else ""
            message = f"there is no prompt named {name[:_MAX_QUOTED_CHARACTERS]}{suggestion}"
            raise Refused("NOT_FOUND", message, path="name")
        return found

    # --- requests ---

    async def read(self, uri: str, caller: Caller, options: CallOptions) -> Result:
        """Read a resource; URIs in the result are rewritten to those this caller knows."""
        try:
            found = self.resource(uri, caller)
        except AccessDenied as error:
            return await self._fetch(error.tool, {"uri": uri}, caller, options, error.problem)
        pseudo_tool = found.holding.pseudo_tools[RESOURCES_READ]
        result = await self._fetch(pseudo_tool, {"uri": found.name}, caller, options)
        return self._as_shown(result, uri, found, caller)

    async def get(
        self, name: str, arguments: JsonObject | None, caller: Caller, options: CallOptions
    ) -> Result:
        """Get a prompt."""
        fields: JsonObject = {} if arguments is None else {"arguments": arguments}
        try:
            found = self.prompt(name, caller)
        except AccessDenied as error:
            return await self._fetch(error.tool, {"name": name, **fields}, caller, options, error.problem)
        pseudo_tool = found.holding.pseudo_tools[PROMPTS_GET]
        result = await self._fetch(pseudo_tool, {"name": found.name, **fields}, caller, options)
        return self._linked(result, found, caller)

    async def complete(self, params: JsonObject, caller: Caller, options: CallOptions) -> Result:
        """Return completions for an argument of a prompt or a variable of a URI template, from the source.

        `params["ref"]` is the MCP reference: it has a `name` (prompt) or a `uri` (template).
        """
        ref: JsonObject = params["ref"]
        of_prompt = "name" in ref
        try:
            found = self.prompt(ref["name"], caller) if of_prompt else self.template(ref["uri"], caller)
        except AccessDenied as error:
            return await self._fetch(error.tool, params, caller, options, error.problem)
        if not found.holding.materials.completes:
            return Result(data={"completion": {"values": []}})
        pseudo_tool = found.holding.pseudo_tools[PROMPTS_COMPLETE if of_prompt else RESOURCES_COMPLETE]
        named = {**ref, "name" if of_prompt else "uri": found.name}
        return await self._fetch(pseudo_tool, {**params, "ref": named}, caller, options)

    def links(self, source: str, caller: Caller) -> Callable[[JsonObject], JsonObject]:
        """Return a function that rewrites the links in a result, so that this caller can follow them."""
        index = self.resources(caller)
        holding = index.holdings.get(source)
        rewrite = None if holding is None else index.spelling(holding, links=True)

        def link(block: JsonObject) -> JsonObject:
            uri = block.get("uri")
            rewritten = rewrite(uri) if rewrite is not None and type(uri) is str else uri
            return block if rewritten == uri else {**block, "uri": rewritten}

        return link

    def _linked(self, result: Result, found: FoundResource, caller: Caller) -> Result:
        """Rewrite the links in a prompt."""
        data = _object(result.data)
        original = data.get("messages")
        messages = list(cast("list[Any]", original)) if type(original) is list else []
        link = self.links(found.holding.source, caller)
        for position, each in enumerate(messages):
            block = _object(_object(each).get("content"))
            if block.get("type") == RESOURCE_LINK:
                messages[position] = {**each, "content": link(block)}
        unchanged = not messages or messages == original
        return result if unchanged else result.replace(data={**data, "messages": messages}, encoded=b"")

    def _as_shown(self, result: Result, uri: str, found: FoundResource, caller: Caller) -> Result:
        """Rewrite the URIs in the contents of a resource to those this caller knows."""
        data = _object(result.data)
        original = data.get("contents")
        contents = list(cast("list[Any]", original)) if type(original) is list else []
        rewrite = self.resources(caller).spelling(found.holding)
        changed = False
        for position, each in enumerate(contents):
            source_uri = _object(each).get("uri")
            if type(source_uri) is str:
                rewritten = uri if source_uri == found.name else rewrite(source_uri)
                if rewritten != source_uri:
                    contents[position], changed = {**_object(each), "uri": rewritten}, True
        return result.replace(data={**data, "contents": contents}, encoded=b"") if changed else result

    # --- access ---

    def _is_open(self, source: str, caller: Caller) -> bool:
        return source in self._view(caller).resources.holdings

    def _refuse(self, found: FoundResource | None, pseudo_tool: str, caller: Caller) -> None:
        """Raise `AccessDenied` where the caller may know of the match but is denied access to it."""
        if found is None:
            return
        tool = found.holding.pseudo_tools[pseudo_tool]
        reason = self._policy.why_not(tool, caller)
        if reason is not None and reason.effect == "deny":
            raise AccessDenied(reason.code, f"{tool.name} {reason.message}", tool)

    def _view(self, caller: Caller) -> _View:
        audience = self._policy.audience(caller)
        view = self._views.get(audience)
        if view is None:
            if len(self._views) >= _MAX_CACHED_AUDIENCES:
                self._views.clear()
            view = self._views[audience] = self._computed_view(caller)
        return view

    def _computed_view(self, caller: Caller) -> _View:
        seen: dict[tuple[str, bool], list[SourceExtras]] = {}
        for holding in self._holdings.values():
            for pseudo_tool in (
                holding.pseudo_tools[name] for name in PSEUDO_TOOLS if name in holding.pseudo_tools
            ):
                reason = self._policy.why_not(pseudo_tool, caller)
                if reason is None or reason.effect == "deny":
                    seen.setdefault((pseudo_tool.local, reason is None), []).append(holding)
        return _View(
            self._shared_index(ResourceIndex, seen.get((RESOURCES_READ, True), ())),
            self._shared_index(PromptIndex, seen.get((PROMPTS_GET, True), ())),
            self._shared_index(ResourceIndex, seen.get((RESOURCES_READ, False), ())),
            self._shared_index(PromptIndex, seen.get((PROMPTS_GET, False), ())),
        )

    def _shared_index(self, kind: type[T], holdings: Sequence[SourceExtras]) -> T:
        """Return an index, shared by all callers with the same sources."""
        key = (kind, *(each.source for each in holdings))
        made: T | None = self._indexes.get(key)
        if made is None:
            if len(self._indexes) >= _MAX_CACHED_INDEXES:
                self._indexes.clear()
            made = self._indexes[key] = kind(holdings)
        return made


def _object(value: Any) -> JsonObject:
    return cast("JsonObject", value) if type(value) is dict else {}


def _no_resource(uri: str) -> Refused:
    return Refused("NOT_FOUND", f"there is no resource {uri[:_MAX_QUOTED_CHARACTERS]}", path="uri")
