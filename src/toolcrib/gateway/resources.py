"""The side door: resources and prompts of all sources, as each caller may see them, read and completed."""

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
"""The kind of a block that says where something can be read."""

_MOST_VIEWS = 512
_MOST_MADE = 64
_LONGEST = 200
_LONGEST_URI = 8_192
"""A URI longer than this is no resource's."""


class ResourceFetch(Protocol):
    """Asks a source for something, by the steps of the door it is behind."""

    async def __call__(
        self, door: Tool, params: JsonObject, caller: Caller, way: CallOptions, denied: Problem | None = None
    ) -> Result: ...


class AnnouncedLists(NamedTuple):
    """What a caller is told that it can ask for."""

    resources: bool
    tells: bool
    prompts: bool
    completes: bool


@dataclass(frozen=True, slots=True)
class _View:
    """What one audience sees, and what it may not have and may know of."""

    resources: ResourceIndex
    prompts: PromptIndex
    closed_resources: ResourceIndex
    closed_prompts: PromptIndex


class ResourceAccess:
    """Everything that is no tool. It is behind doors, and those pass the policy and the steps as tools do."""

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
        """Who wants to hear of which resource."""

    def adopt(self, snapshot: Snapshot) -> None:
        """Take over a new catalog; what was made of the same materials stays."""
        if list(self._holdings.values()) != list(snapshot.holdings.values()):
            self._holdings = snapshot.holdings
            self._made = {}
        self._views = {}

    # --- what there is ---

    def resources(self, caller: Caller) -> ResourceIndex:
        """Return the resources this caller may read, in the order of the sources."""
        return self._view(caller).resources

    def prompts(self, caller: Caller) -> PromptIndex:
        """Return the prompts this caller may get, in the order of the sources."""
        return self._view(caller).prompts

    def announced(self, caller: Caller) -> AnnouncedLists:
        """Say what to announce; a server that was never up may yet have everything."""
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
        """Return where a URI leads this caller, or refuse."""
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
        """Return whose template this is, or refuse."""
        view = self._view(caller)
        found = view.resources.find_template(text)
        if found is None:
            self._refuse(view.closed_resources.find_template(text), READ, caller)
            raise _no_resource(text)
        return found

    def prompt(self, name: str, caller: Caller) -> FoundResource:
        """Return the prompt this caller means by a name, or refuse and say what comes near."""
        view = self._view(caller)
        found = view.prompts.find(name)
        if found is None:
            self._refuse(view.closed_prompts.find(name), GET, caller)
            close = view.prompts.near(name)
            meant = f"; did you mean {', '.join(close)}?" if close else ""
            raise Refused("NOT_FOUND", f"there is no prompt named {name[:_LONGEST]}{meant}", path="name")
        return found

    # --- what is asked for ---

    async def read(self, uri: str, caller: Caller, way: CallOptions) -> Result:
        """Read a resource; what comes back goes by the URIs this caller knows."""
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
        """Say how an argument of a prompt, or a blank in a template, may go on, as the source suggests.

        What it belongs to is `params["ref"]`, as the protocol spells it: with a `name`, or with a `uri`.
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
        """Return what spells the links in one answer of a source so that they lead this caller back to it."""
        there = self.resources(caller)
        holding = there.holdings.get(source)
        spell = None if holding is None else there.spelling(holding, links=True)

        def link(block: JsonObject) -> JsonObject:
            uri = block.get("uri")
            said = spell(uri) if spell is not None and type(uri) is str else uri
            return block if said == uri else {**block, "uri": said}

        return link

    def _linked(self, result: Result, found: FoundResource, caller: Caller) -> Result:
        """Spell the links in a prompt."""
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
        """Spell the URIs in what was read as this caller knows them."""
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

    # --- who may ---

    def _is_open(self, source: str, caller: Caller) -> bool:
        return source in self._view(caller).resources.holdings

    def _refuse(self, found: FoundResource | None, door: str, caller: Caller) -> None:
        """Say what is missing where something is there that this caller may know of, and not have."""
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
        """Callers who may see the same share what is made of it."""
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
