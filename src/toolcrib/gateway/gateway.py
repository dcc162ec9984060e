"""Resolves a tool by name, checks the policy, runs the tool's chain of steps, and completes the result."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import compress
from secrets import token_bytes
from time import perf_counter
from typing import Any, TypeVar, Unpack, cast

from toolcrib.catalog import Snapshot
from toolcrib.cooperative import map_cooperatively
from toolcrib.errors import Refused
from toolcrib.gateway.author_actions import CallableTools
from toolcrib.gateway.call_options import AccessDenied, CallOptions, ProcessSlots, overloaded
from toolcrib.gateway.catalog_state import MAX_CACHED_VIEWS, CatalogState
from toolcrib.gateway.completion import Completion
from toolcrib.gateway.multi_round_calls import ClientRequest, MultiRoundCalls, StateSigner
from toolcrib.gateway.next_actions import Learned, NextActions, nothing_learned, suggesting
from toolcrib.gateway.related_tools import RelatedTools
from toolcrib.gateway.repairs import Repairs, RequestedCall
from toolcrib.gateway.resources import ResourceAccess
from toolcrib.gateway.suspended_calls import EMPTY_OBJECT, SendLog, SuspensionLimits
from toolcrib.hints.hint_text import shows_hints
from toolcrib.interfaces import Handler, Recorder
from toolcrib.model import Call, Caller, HintSetting, JsonObject, Origin, Problem, Report, Result, Tool
from toolcrib.model.hints import NextAction
from toolcrib.names import similar_names, split
from toolcrib.policy import Context, Policy
from toolcrib.search import Corpus, Index
from toolcrib.slots import Hold

T = TypeVar("T")
_AUDIENCE_TTL_SECONDS = 60.0
"""Cache TTL of what a caller sees, in seconds; a tool may reach its removal date within it."""
_IdCallback = Callable[[str], None]
UNKNOWN_ORIGIN = Origin()
DEFAULT_HINT_SETTING = Context().hints
_CALL_DEFAULTS: dict[str, Any] = {
    "deadline": None,
    "answers": {},
    "state": "",
    "idempotency_key": "",
    "activated": False,
    "report": None,
    "channel": None,
    "meta": {},
}
"""Default values of the optional fields of a call."""


class Gateway:
    """The only interface that frontends use: `tools`, `call`, and `resource_access` for everything else.

    `call_with_questions` is `call` for clients that retry with answers; it can suspend a call until then.
    """

    def __init__(
        self,
        policy: Policy,
        compose: Callable[[Tool], Handler],
        completion: Completion,
        recorder: Recorder,
        *,
        new_id: Callable[[], str],
        contexts: Callable[[], Mapping[str, Context]],
        servers: Callable[[], Iterable[str]] = tuple,
        present: Callable[[Caller], Awaitable[Caller]] | None = None,
        denied: Callable[[Call, Problem], Awaitable[None]] | None = None,
        slots: ProcessSlots | None = None,
        state_signer: StateSigner | None = None,
        suspension_limits: SuspensionLimits | None = None,
        learned: Learned = nothing_learned,
        id: str = "",
    ) -> None:
        self.id = id
        """Identifies this gateway, with all its replicas, among others; empty where none is configured."""
        self._policy, self._compose, self._completion, self._recorder = policy, compose, completion, recorder
        self._new_id, self._contexts, self._present, self._on_denied = new_id, contexts, present, denied
        self._state, self._corpus, self._repairs = CatalogState(), Corpus(), Repairs()
        self._next_actions = NextActions(policy.visible, learned)
        self._slots = slots or ProcessSlots()
        self.share = self._slots.share
        """The largest share of any common limit that one principal may hold."""
        self.resource_access = ResourceAccess(policy, self._fetch, servers, share=self.share)
        """Resources and prompts. `servers` are the sources that may have some, connected or not."""
        self.session_ended: Callable[[str], None] = lambda _: None
        """Callback for every client session that has ended; gets the owner that its channels have named."""
        self._listeners = list[Callable[[], None]]()
        self._user_listeners, self._caller_listeners = list[_IdCallback](), list[_IdCallback]()
        self.state_signer = state_signer or StateSigner(partial(token_bytes, 32))
        """Signs the state that clients return with their answers."""
        self.suspension_limits = suspension_limits or SuspensionLimits()
        self._multi_round_calls = MultiRoundCalls(self, self.suspension_limits)

    async def close(self) -> None:
        """Cancel every suspended call, and wait a bounded time until they have ended."""
        self._next_actions.close()
        await self._multi_round_calls.close()

    def adopt(self, snapshot: Snapshot) -> None:
        """Replace the catalog: chains of unchanged tools stay cached, others are composed on first call."""
        chains: dict[str, tuple[str, Handler]] = {}
        for name, composed in self._state.chains.items():
            now = snapshot.tools.get(name) or snapshot.pseudo_tools.get(name)
            if now is not None and composed[0] == _definition(now):
                chains[name] = composed
        self._state, self._corpus = CatalogState(snapshot, chains), self._corpus.renewed(snapshot.tools)
        self._next_actions.adopt(snapshot.tools)
        self.resource_access.adopt(snapshot)
        self._completion.forget()
        for callback in self._listeners:
            callback()

    def listen(self, callback: Callable[[], None]) -> None:
        """Register a callback for every change of the catalog."""
        self._listeners.append(callback)

    def listen_for_users(self, callback: Callable[[str], None]) -> None:
        """Register a callback for changed users; an empty id means that any user may have changed."""
        self._user_listeners.append(callback)

    def user_changed(self, user: str) -> None:
        """Notify the listeners that something about a user has changed."""
        for callback in self._user_listeners:
            callback(user)

    def listen_for_callers(self, callback: Callable[[str], None]) -> None:
        """Register a callback for the id of every caller with a changed tool list."""
        self._caller_listeners.append(callback)

    def caller_changed(self, caller: str) -> None:
        """Notify the listeners that the tool list of a caller has changed."""
        for callback in self._caller_listeners:
            callback(caller)

    async def present(self, caller: Caller) -> Caller:
        """Return a long-lived caller, refreshed with the current data of its user."""
        return caller if self._present is None or caller.user is None else await self._present(caller)

    @property
    def version(self) -> int:
        """The version number of the current catalog snapshot."""
        return self._state.snapshot.version

    def enter(self, caller: Caller, context: str | None) -> Caller:
        """Return the caller in the requested context; NOT_FOUND where it is unknown or out of scope."""
        if context is None or context == caller.context:
            return caller
        if context not in self._contexts() or not caller.may_enter(context):
            raise Refused("NOT_FOUND", f"there is no context named {context}", path="context")
        return replace(caller, context=context)

    def context(self, caller: Caller) -> Context | None:
        """Return the context that a caller is in; None where that context no longer exists."""
        return self._contexts().get(caller.context)

    def style(self, caller: Caller) -> str | None:
        """Return the naming style of the caller's context; None leaves it to the frontend."""
        context = self.context(caller)
        return None if context is None else context.style

    def hint_setting(self, caller: Caller) -> HintSetting:
        """Return which hints the models of the caller's context see."""
        context = self.context(caller)
        return DEFAULT_HINT_SETTING if context is None else context.hints

    def used(self) -> dict[str, int]:
        """Return the number of recent calls of each tool that had any, by canonical name."""
        return self._completion.used()

    def tools(self, caller: Caller) -> tuple[Tool, ...]:
        """Return the tools this caller may use, in catalog order."""
        return self._listed(self._state, self._policy.audience(caller), caller)

    def search(self, caller: Caller, query: str) -> tuple[Tool, ...]:
        """Return the caller's tools that match words of the query, best first; all for an empty query."""
        return self._index(caller).find(query) if query.strip() else self.tools(caller)

    def rank(self, caller: Caller, query: str, limit: int | None = None) -> dict[str, float]:
        """Return the relevance of the caller's tools for a query or a whole conversation, best first."""
        return self._index(caller).rank(query, limit)

    def fit(self, caller: Caller, text: str, most: int) -> dict[str, float]:
        """Return the scores of the `most` tools that fit a text best, and of all that tie with the last."""
        return self._index(caller).fit(text, most)

    async def read(self) -> None:
        """Index the words of all tools before the first search; thousands of tools take a while."""
        await self._corpus.read(self._state.snapshot.tools)

    def _index(self, caller: Caller) -> Index:
        return self.view(caller, "search", partial(Index, corpus=self._corpus))

    def named(self, tool: Tool, style: str, caller: Caller) -> str:
        """Return a tool's name in a style; a flat name that does not resolve back becomes the safe one."""
        if style == "qualified":
            return tool.name
        if style == "safe":
            return tool.exposed
        try:
            return tool.local if self.tool(tool.local, caller).name == tool.name else tool.exposed
        except Refused:
            return tool.exposed

    async def tools_cooperatively(self, caller: Caller) -> tuple[Tool, ...]:
        """Return the same as `tools`; on a cache miss, yields to the event loop in between."""
        state, audience = self._state, self._policy.audience(caller)
        found = state.views.get((audience, ""))
        if found is None:
            offered = tuple(state.snapshot.offered(caller.apps))
            verdicts = await map_cooperatively(offered, lambda tool: self._policy.visible(tool, caller))
            found = tuple(compress(offered, verdicts))
            # Race: if the audience changed in between, the verdicts belong to two audiences.
            if self._policy.audience(caller) != audience:
                return self.tools(caller)
            state.cache((audience, ""), found)
        return found

    def cached_view(self, caller: Caller, view_key: str) -> Any:
        """Return a view of the caller's list from the cache; None on a miss."""
        return self._state.views.get((self._policy.audience(caller), view_key))

    def view(self, caller: Caller, view_key: str, render: Callable[[Sequence[Tool]], T]) -> T:
        """Return `render` of the caller's list; runs once per catalog version and audience."""
        state, audience = self._state, self._policy.audience(caller)
        found = state.views.get((audience, view_key))
        if found is None:
            found = state.cache((audience, view_key), render(self._listed(state, audience, caller)))
        return cast("T", found)

    async def view_cooperatively(
        self, caller: Caller, view_key: str, render: Callable[[Sequence[Tool]], Awaitable[T]]
    ) -> T:
        """Return the same as `view`, with a `render` that yields to the event loop."""
        state, audience = self._state, self._policy.audience(caller)
        found = state.views.get((audience, view_key))
        if found is None:
            found = state.cache((audience, view_key), await render(self._listed(state, audience, caller)))
        return cast("T", found)

    def _listed(self, state: CatalogState, audience: object, caller: Caller) -> tuple[Tool, ...]:
        found: tuple[Tool, ...] | None = state.views.get((audience, ""))
        if found is None:
            offered = state.snapshot.offered(caller.apps)
            found = tuple([tool for tool in offered if self._policy.visible(tool, caller)])
            state.cache((audience, ""), found)
        return found

    def tool(self, name: str, caller: Caller) -> Tool:
        """Resolve a name to a tool of this caller; raises `Refused` with similar names."""
        snapshot = self._state.snapshot
        found = snapshot.claimants(name)
        if len(found) == 1 and self._policy.why_not(found[0], caller) is None:
            return found[0]
        if not found and ":" in name:
            split(name)
        owner = self._policy.owner(found, caller)
        if owner is not None and owner.name in snapshot.tools:
            reason = self._policy.why_not(owner, caller)
            if reason is None:
                return owner
            if reason.effect == "deny":
                raise AccessDenied(reason.code, f"{owner.name} {reason.message}", owner)
        raise self._unknown(name, caller)

    async def call(
        self, name: str, arguments: JsonObject | None, caller: Caller, **options: Unpack[CallOptions]
    ) -> Result:
        """Run one call. Never raises except on cancellation; every outcome is a completed result."""
        started = perf_counter()
        origin = options.get("origin", UNKNOWN_ORIGIN)
        if not (origin.trace_id and origin.correlation_id):
            origin = self.identified(origin)
        try:
            tool, denied = self.tool(name, caller), None
        except AccessDenied as error:
            tool, denied = error.tool, error.problem
        except Refused as error:
            sent = RequestedCall(name, arguments or {}, options.get("idempotency_key", ""))
            return self._not_found(sent, error.problem, caller, origin)
        fields: dict[str, Any] = {
            **_CALL_DEFAULTS,
            **options,
            "id": self._new_id(),
            "tool": tool,
            "arguments": arguments if arguments is not None else {},
            "caller": caller,
            "origin": origin,
        }
        call = Call.of(fields)
        # `_run` inlined: this is the hot path of every call.
        slots, principal = self._slots, caller.principal
        chain = None if denied is not None else self._chain(tool)
        if chain is None or not slots.take(principal):
            result = await self._denied(call, denied or overloaded())
        elif call.channel is not None:
            result = await Hold(slots, principal).run(call, call.channel, chain)
        else:
            try:
                result = await chain(call)
            finally:
                slots.release(principal)
        return self._complete(result, call, started)

    async def call_with_questions(
        self,
        name: str,
        arguments: JsonObject | None,
        caller: Caller,
        *,
        origin: Origin = UNKNOWN_ORIGIN,
        deadline: float | None = None,
        capabilities: JsonObject = EMPTY_OBJECT,
        answers: JsonObject | None = None,
        state: str = "",
        idempotency_key: str = "",
        report: Report | None = None,
        meta: JsonObject | None = None,
        level: str | None = None,
        log: SendLog | None = None,
    ) -> Result:
        """Run one call, or resume a suspended one. Never raises except on cancellation.

        `capabilities` are the caller's MCP client capabilities (elicitation, sampling, roots). Where the
        result has an `ask`, the caller repeats the same call with its state and with the answers by their
        names.
        """
        result: Result | None = None
        if not (capabilities or state or answers or log):
            # Fast path: a caller without capabilities and log stream needs no channel.
            options = CallOptions(origin=origin, deadline=deadline, report=report, meta=meta or EMPTY_OBJECT)
            options["idempotency_key"] = idempotency_key
            result = await self.call(name, arguments, caller, **options)
            if result.ask is None:
                return result
        call = (name, arguments or EMPTY_OBJECT, caller, origin, deadline)
        request = ClientRequest(*call, answers or EMPTY_OBJECT, report, meta, level, log, idempotency_key)
        return await self._multi_round_calls.run(request, capabilities, state, result)

    async def _fetch(
        self,
        pseudo_tool: Tool,
        params: JsonObject,
        caller: Caller,
        options: CallOptions,
        denied: Problem | None = None,
    ) -> Result:
        """Run a request for a resource or prompt through the steps of its pseudo-tool."""
        started = perf_counter()
        origin = self.identified(options.get("origin", UNKNOWN_ORIGIN))
        identified_options: CallOptions = {**options, "origin": origin}
        call = Call(
            id=self._new_id(), tool=pseudo_tool, arguments=params, caller=caller, **identified_options
        )
        result = await self._denied(call, denied) if denied is not None else await self._run(call)
        return self._completion.complete(result, pseudo_tool, origin, perf_counter() - started)

    async def _run(self, call: Call) -> Result:
        """Run a call through the steps of its tool, counted against the process slots."""
        chain, slots, principal = self._chain(call.tool), self._slots, call.caller.principal
        if not slots.take(principal):
            return await self._denied(call, overloaded())
        if call.channel is not None:
            return await Hold(slots, principal).run(call, call.channel, chain)
        try:
            return await chain(call)
        finally:
            slots.release(principal)

    def refusal(self, problem: Problem, origin: Origin = UNKNOWN_ORIGIN) -> Result:
        """Return a completed result for a request that never reached a tool."""
        return self._refused(problem, origin, self._repairs.repair_of(None, problem, _find_nothing))

    def _not_found(self, sent: RequestedCall, problem: Problem, caller: Caller, origin: Origin) -> Result:
        """Return the result of a call whose name is no tool of this caller."""
        find = partial(self._usable_tool, caller)
        return self._refused(problem, origin, self._repairs.repair_of_name(sent, problem, find))

    def _refused(self, problem: Problem, origin: Origin, repair: NextAction | None) -> Result:
        self._recorder.refused(problem.code)
        result = Result(problem=problem)
        return self._completion.complete(result, None, self.identified(origin), 0.0, repair=repair)

    def completed(self, result: Result, tool: Tool, origin: Origin, seconds: float) -> Result:
        """Return a completed result for one that did not come out of a chain."""
        return self._completion.complete(result, tool, origin, seconds)

    def _complete(self, result: Result, call: Call, started: float) -> Result:
        ended = perf_counter()
        origin, failed = call.origin, result.problem is not None
        seconds = ended - started
        if (origin.face == "mcp" or origin.provider) and not shows_hints(
            self.hint_setting(call.caller), failed=failed
        ):
            # A model calls, and its context hides the hints: they are not even generated.
            return self._completion.complete(result, call.tool, origin, seconds, None)
        related, repair = self._related_tools(call.caller, ended), None
        if result.problem is not None and result.hints is None:
            find = partial(self._usable_tool, call.caller)
            repair = self._repairs.repair_of(call, result.problem, find)
        completed = self._completion.complete(result, call.tool, origin, seconds, related, repair=repair)
        actions = self._next_actions.after(call, result)
        return suggesting(completed, actions) if actions else completed

    def _usable_tool(self, caller: Caller, name: str) -> Tool | None:
        try:
            return self.tool(name, caller)
        except Refused:
            return None

    def _related_tools(self, caller: Caller, now: float) -> RelatedTools:
        state = self._state
        entry = state.related.get(id(caller))
        if entry is not None and entry[0] is caller and now < entry[1]:
            return entry[2]
        if len(state.related) >= MAX_CACHED_VIEWS:
            state.related.clear()
        audience = self._policy.audience(caller)
        related = state.related_by_audience.get(audience)
        if related is None:
            if len(state.related_by_audience) >= MAX_CACHED_VIEWS:
                state.related_by_audience.clear()
            visible = partial(self._policy.visible, caller=caller)
            callable_tools = CallableTools(state.snapshot, visible, state.accepts)
            related = RelatedTools(state.snapshot.tools, visible, callable_tools)
            state.related_by_audience[audience] = related
        state.related[id(caller)] = (caller, now + _AUDIENCE_TTL_SECONDS, related)
        return related

    def identified(self, origin: Origin) -> Origin:
        """Return the origin with a trace id and a correlation id, generated where it has none."""
        trace = origin.trace_id or self._new_id()
        return origin.replace(trace_id=trace, correlation_id=origin.correlation_id or self._new_id())

    async def _denied(self, call: Call, problem: Problem) -> Result:
        """Record a denied call like any other: denials are what an operator looks for."""
        result = Result(problem=problem)
        self._recorder.record(call, result, 0.0)
        if self._on_denied is not None:
            await self._on_denied(call, problem)
        return result

    def _chain(self, tool: Tool) -> Handler:
        composed = self._state.chains.get(tool.name)
        if composed is not None:
            return composed[1]
        chain = self._compose(tool)
        self._state.chains[tool.name] = (_definition(tool), chain)
        return chain

    def _unknown(self, name: str, caller: Caller) -> Refused:
        names = [tool.name for tool in self.tools(caller)]
        close = similar_names(name, names)
        suggestion = f"; did you mean {', '.join(close)}?" if close else ""
        return Refused(
            "TOOL_NOT_FOUND",
            f"there is no tool named {name[:200]}{suggestion}",
            details={"near": list(close)},
        )


def _find_nothing(_name: str) -> None:
    pass


def _definition(tool: Tool) -> str:
    """Return the cache key of a chain: the fingerprint of the whole definition, and the exposed name."""
    return f"{tool.fingerprint} {tool.exposed}"
