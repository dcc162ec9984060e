"""Resources and prompts. Each access runs through a hidden pseudo-tool, so policy and steps apply."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeVar, cast

from toolcrib.catalog import BESIDE, GET, GET_COMPLETE, READ, READ_COMPLETE, Snapshot, SourceExtras
from toolcrib.errors import Refused
from toolcrib.gateway.call_options import AccessDenied, CallOptions
from toolcrib.gateway.prompt_index import PromptIndex
from toolcrib.gateway.resource_index import FoundResource, ResourceIndex
from toolcrib.gateway.subscriptions import ResourceSubscriptions
from toolcrib.model import Caller, JsonObject, Problem, Result, Tool
from toolcrib.policy import Policy
from toolcrib.slots import DEFAULT_SHARE

T = TypeVar("T", ResourceIndex, PromptIndex)

LINK = "resource_link"
"""The type of a content block that links to a resource."""

_MOST_VIEWS = 512
"""Most audiences in the cache; it is cleared when it is full."""
_MOST_MADE = 64
"""Most indexes in the cache; it is cleared when it is full."""
_LONGEST = 200
"""Longest part of a URI or name in an error message, in characters."""
_LONGEST_URI = 8_192
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
        if len(uri) > _LONGEST_URI:
            raise _no_resource(uri)
        view = self._view(caller)
        found = view.resources.find(uri, alone=False)
        if found is None:
            self._refuse(view.closed_resources.find(uri, alone=False), READ, caller)
            found = view.resources.find(uri)
        if found is None:
            raise _no_resource(uri)
        return found

    def template(self, text: str, caller: Caller) -> FoundResource:
        """Resolve a URI template for this caller; raises `Refused`."""
        view = self._view(caller)
        found = view.resources.find_template(text)
        if found is None:
            self._refuse(view.closed_resources.find_template(text), READ, caller)
            raise _no_resource(text)
        return found

    def prompt(self, name: str, caller: Caller) -> FoundResource:
        """Resolve a prompt name for this caller; raises `Refused` with similar names."""
        view = self._view(caller)
        found = view.prompts.find(name)
        if found is None:
            self._refuse(view.closed_prompts.find(name), GET, caller)
            close = view.prompts.near(name)
            meant = f"; did you mean {', '.join(close)}?" if close else ""
            raise Refused("NOT_FOUND", f"there is no prompt named {name[:_LONGEST]}{meant}", path="name")
        return found

    # --- requests ---

    async def read(self, uri: str, caller: Caller, way: CallOptions) -> Result:
        """Read a resource; URIs in the result are rewritten to those this caller knows."""
        try:
            found = self.resource(uri, caller)
        except AccessDenied as error:
            return await self._fetch(error.tool, {"uri": uri}, caller, way, error.problem)
        result = await self._fetch(found.holding.doors[READ], {"uri": found.name}, caller, way)
        return self._as_shown(result, uri, found, caller)

    async def get(self, name: str, arguments: JsonObject | None, caller: Caller, way: CallOptions) -> Result:
        """Get a prompt."""
        given: JsonObject = {} if arguments is None else {"arguments": arguments}
        try:
            found = self.prompt(name, caller)
        except AccessDenied as error:
            return await self._fetch(error.tool, {"name": name, **given}, caller, way, error.problem)
        result = await self._fetch(found.holding.doors[GET], {"name": found.name, **given}, caller, way)
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
        door = found.holding.doors[GET_COMPLETE if of_prompt else READ_COMPLETE]
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
            if block.get("type") == LINK:
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
            if len(self._views) >= _MOST_VIEWS:
                self._views.clear()
            view = self._views[audience] = self._looked(caller)
        return view

    def _looked(self, caller: Caller) -> _View:
        seen: dict[tuple[str, bool], list[SourceExtras]] = {}
        for holding in self._holdings.values():
            for door in (holding.doors[name] for name in BESIDE if name in holding.doors):
                why = self._policy.why_not(door, caller)
                if why is None or why.effect == "deny":
                    seen.setdefault((door.local, why is None), []).append(holding)
        return _View(
            self._once(ResourceIndex, seen.get((READ, True), ())),
            self._once(PromptIndex, seen.get((GET, True), ())),
            self._once(ResourceIndex, seen.get((READ, False), ())),
            self._once(PromptIndex, seen.get((GET, False), ())),
        )

    def _once(self, kind: type[T], holdings: Sequence[SourceExtras]) -> T:
        """Return an index, shared by all callers with the same sources."""
        key = (kind, *(each.source for each in holdings))
        made: T | None = self._made.get(key)
        if made is None:
            if len(self._made) >= _MOST_MADE:
                self._made.clear()
            made = self._made[key] = kind(holdings)
        return made


def _object(value: Any) -> JsonObject:
    return cast("JsonObject", value) if type(value) is dict else {}


def _no_resource(uri: str) -> Refused:
    return Refused("NOT_FOUND", f"there is no resource {uri[:_LONGEST]}", path="uri")
