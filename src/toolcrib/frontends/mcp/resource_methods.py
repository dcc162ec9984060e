"""MCP methods for resources, prompts and completion: paged lists, contents and subscriptions."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, Literal

import orjson

from toolcrib.errors import Refused, problem
from toolcrib.formats.mcp import meta
from toolcrib.frontends.mcp.request import (
    McpRequest,
    Pages,
    ProtocolError,
    Respond,
    SessionLink,
    cursor_of,
    finished,
    paged,
)
from toolcrib.frontends.mcp.tool_calls import check, input_required
from toolcrib.gateway import Gateway, PromptIndex, ResourceIndex, Run, Subscriber
from toolcrib.mcp import methods
from toolcrib.mcp.content import as_object, completion_values, is_texts, prompt_messages, resource_contents
from toolcrib.mcp.jsonrpc import (
    HEADER_MISMATCH,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    RESOURCE_NOT_FOUND,
    UNSUPPORTED_VERSION,
)
from toolcrib.mcp.meta import PROTOCOL_PREFIX
from toolcrib.mcp.revisions import FIELDS_SINCE
from toolcrib.model import Caller, JsonObject, Kind, Problem, Result

Carry = Callable[[McpRequest, Run], Awaitable[Result]]
"""Runs a request, once per round of questions; signs the state of an `ask` that it returns."""
Hear = Callable[[SessionLink, str], None]

_OWNED = frozenset({"resultType", "ttlMs", "cacheScope", "_meta"})
"""Result fields that the gateway sets itself; `_meta` is filtered and passed on separately."""
_BETWEEN_US = frozenset(
    {PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, HEADER_MISMATCH, UNSUPPORTED_VERSION}
)
"""JSON-RPC errors of a server about the gateway's own request; they do not concern the client's."""
_OUR_FAULT = frozenset({Kind.INVALID, Kind.NOT_FOUND, Kind.DENIED})


class ResourceMethods:
    """Handles all methods that are not about tools."""

    legacy_only = frozenset({methods.SUBSCRIBE, methods.UNSUBSCRIBE})
    """Modern clients name the resources in `subscriptions/listen` instead."""

    def __init__(self, gateway: Gateway, carry: Carry) -> None:
        self._gateway, self._library = gateway, gateway.resource_access
        self._carry = carry
        self._followers: dict[SessionLink, Subscriber] = {}
        self._listeners: list[Hear] = []

    def methods(self) -> Mapping[str, Respond]:
        """Return the handler of each method."""
        return {
            methods.LIST_RESOURCES: self._resources,
            methods.LIST_TEMPLATES: self._templates,
            methods.READ_RESOURCE: self._read,
            methods.SUBSCRIBE: self._subscribe,
            methods.UNSUBSCRIBE: self._unsubscribe,
            methods.LIST_PROMPTS: self._prompts,
            methods.GET_PROMPT: self._get,
            methods.COMPLETE: self._complete,
        }

    def capabilities(self, caller: Caller) -> dict[str, Any]:
        """Return the capabilities to declare to this caller, for what exists now or may exist soon."""
        there = self._library.capabilities(caller)
        found: dict[str, Any] = {}
        if there.resources:
            found["resources"] = {"listChanged": True, **({"subscribe": True} if there.tells else {})}
        if there.prompts:
            found["prompts"] = {"listChanged": True}
        if there.completes:
            found["completions"] = {}
        return found

    # --- subscriptions ---

    def mark(self, caller: Caller, kind: Literal["resources", "prompts"]) -> bytes:
        """Return a digest of one list of a caller."""
        if kind == "resources":
            return self._library.resources(caller).digest
        return self._library.prompts(caller).digest(self._style(caller))

    def follower(self, caller: Caller, hear: Callable[[str], None]) -> Subscriber:
        """Return a new subscriber for one client; the callback gets the URIs that the client used."""
        return self._library.subscriptions.subscriber(caller, hear)

    def listen(self, hear: Hear) -> None:
        """Register a callback for changed resources that a session has subscribed to."""
        self._listeners.append(hear)

    def ended(self, session: SessionLink) -> None:
        """Drop the subscriptions of an ended session."""
        follower = self._followers.pop(session, None)
        if follower is not None:
            follower.close()

    async def _subscribe(self, asked: McpRequest) -> bytes:
        uri, session = _text(asked, "uri"), asked.peer.session
        if session is None:
            raise ProtocolError(INVALID_REQUEST, "only a client with a session can subscribe")
        follower = self._followers.get(session)
        if follower is None:
            follower = self._followers[session] = self.follower(
                asked.peer.caller, partial(self._updated, session)
            )
        try:
            await follower.add(uri)
        except Refused as refused:
            raise self._missing(asked, uri, refused) from None
        session.watched.add(uri)
        return finished(asked, {})

    async def _unsubscribe(self, asked: McpRequest) -> bytes:
        uri, session = _text(asked, "uri"), asked.peer.session
        if session is not None and session in self._followers:
            self._followers[session].drop(uri)
            session.watched.discard(uri)
        return finished(asked, {})

    def _updated(self, session: SessionLink, uri: str) -> None:
        for hear in self._listeners:
            hear(session, uri)

    # --- lists ---

    async def _resources(self, asked: McpRequest) -> bytes:
        there = self._library.resources(asked.peer.caller)
        return _page(asked, there, "resources", there.listed)

    async def _templates(self, asked: McpRequest) -> bytes:
        there = self._library.resources(asked.peer.caller)
        return _page(asked, there, "resourceTemplates", there.listed_templates)

    async def _prompts(self, asked: McpRequest) -> bytes:
        caller = asked.peer.caller
        there, style = self._library.prompts(caller), self._style(caller)
        return _page(asked, there, "prompts", partial(there.listed, style), style)

    def _style(self, caller: Caller) -> str:
        return self._gateway.style(caller) or "safe"

    # --- contents ---

    async def _read(self, asked: McpRequest) -> bytes:
        uri, caller = _text(asked, "uri"), asked.peer.caller
        try:
            outcome = await self._carry(asked, partial(self._library.read, uri, caller))
        except Refused as refused:
            raise self._missing(asked, uri, refused) from None
        try:
            return self._spelled(asked, outcome, resource_contents)
        except ProtocolError as error:
            raise _about(asked, uri, error) from None

    async def _get(self, asked: McpRequest) -> bytes:
        name, arguments = _text(asked, "name"), asked.params.get("arguments")
        if arguments is not None and not is_texts(arguments):
            raise ProtocolError(INVALID_PARAMS, "arguments must be an object of texts")
        run = partial(self._library.get, name, arguments, asked.peer.caller)
        return self._spelled(asked, await self._carry(asked, run), prompt_messages)

    async def _complete(self, asked: McpRequest) -> bytes:
        params = {key: asked.params[key] for key in ("ref", "argument", "context") if key in asked.params}
        _check_completion(params)
        outcome = await self._library.complete(params, asked.peer.caller, {"origin": asked.origin})
        return self._spelled(asked, outcome, completion_values)

    def _spelled(
        self, asked: McpRequest, outcome: Result, read: Callable[[JsonObject, str], JsonObject | None]
    ) -> bytes:
        """Encode a result; content that the protocol does not define must not reach a client."""
        fault = outcome.problem
        if fault is None and outcome.ask is not None:
            return input_required(asked, outcome)
        if fault is None:
            said = as_object(outcome.data)
            found = read(said, asked.peer.revision)
            if found is not None:
                return _finished(asked, said, found)
            strange = f"the server's answer to {asked.method} is not what the protocol allows"
            fault = problem("CONTRACT_VIOLATION", strange)
            outcome = self._gateway.refusal(fault, asked.origin)
        raise _fault(outcome, fault)

    def _missing(self, asked: McpRequest, uri: str, refused: Refused) -> Exception:
        """Return the error for an unknown resource; its code depends on the era."""
        fault = refused.problem
        if fault.code != "NOT_FOUND":
            return refused
        beside = meta(self._gateway.refusal(fault, asked.origin))
        return ProtocolError(_not_found(asked), fault.message, {"uri": uri, **beside})


def _page(
    asked: McpRequest,
    there: ResourceIndex | PromptIndex,
    key: str,
    entries: Callable[[], Sequence[JsonObject]],
    style: str = "",
) -> bytes:
    """Return the page of a cursor; pages are rendered once for all callers that see the same list."""
    cursor, revision = cursor_of(asked), asked.peer.revision
    spelling = f"{key} {revision} {style}"
    pages: Pages | None = there.rendered.get(spelling)
    if pages is None:
        pages = there.rendered[spelling] = paged(key, _spelled(entries(), revision), revision)
    found = pages.get(cursor)
    if found is None:
        raise ProtocolError(INVALID_PARAMS, "there is no such cursor; ask for the first page again")
    return found


def _spelled(entries: Sequence[JsonObject], revision: str) -> list[bytes]:
    return [
        orjson.dumps({name: value for name, value in each.items() if FIELDS_SINCE.get(name, "") <= revision})
        for each in entries
    ]


def _finished(asked: McpRequest, said: JsonObject, found: JsonObject) -> bytes:
    """Encode a result: the validated part, and extra fields of the server that belong to its result."""
    beside = as_object(said.get("_meta"))
    passed = {key: value for key, value in beside.items() if not key.startswith(PROTOCOL_PREFIX)}
    more = {key: value for key, value in said.items() if key not in _OWNED and key not in found}
    answer = {**found, **more, **({"_meta": passed} if passed else {})}
    # TTL 0: a resource may change at any time; clients that want to cache it can subscribe.
    return finished(asked, answer, ttl_ms=0 if asked.method == methods.READ_RESOURCE else None)


def _fault(outcome: Result, fault: Problem) -> ProtocolError:
    """Return a problem as a JSON-RPC error: these methods have no `isError` result."""
    try:
        check(outcome, fault)
    except ProtocolError as error:
        return (
            error if error.code not in _BETWEEN_US else ProtocolError(INTERNAL_ERROR, str(error), error.data)
        )
    code = INVALID_PARAMS if fault.kind in _OUR_FAULT else INTERNAL_ERROR
    return ProtocolError(code, fault.message, meta(outcome))


def _about(asked: McpRequest, uri: str, error: ProtocolError) -> ProtocolError:
    """Return the error with the URI in its data; a not-found error gets the code of the client's era."""
    data = as_object(error.data)
    absent = error.code == RESOURCE_NOT_FOUND or (error.code == INVALID_PARAMS and "uri" in data)
    code = _not_found(asked) if absent else error.code
    if code not in (INVALID_PARAMS, RESOURCE_NOT_FOUND):
        return error
    return ProtocolError(code, str(error), {**data, "uri": uri})


def _not_found(asked: McpRequest) -> int:
    return INVALID_PARAMS if asked.peer.modern else RESOURCE_NOT_FOUND


def _text(asked: McpRequest, key: str) -> str:
    value = asked.params.get(key)
    if type(value) is not str or not value:
        raise ProtocolError(INVALID_PARAMS, f"{key} must be a text, and not empty")
    return value


def _check_completion(params: JsonObject) -> None:
    """Refuse a completion request with an invalid `ref`, `argument` or `context`."""
    ref, argument, context = (as_object(params.get(key)) for key in ("ref", "argument", "context"))
    key = {"ref/prompt": "name", "ref/resource": "uri"}.get(str(ref.get("type")))
    if key is None or not is_texts({key: ref.get(key)}) or not ref[key]:
        raise ProtocolError(
            INVALID_PARAMS, "ref must be a ref/prompt with a name or a ref/resource with a uri"
        )
    if not is_texts({key: argument.get(key) for key in ("name", "value")}):
        raise ProtocolError(INVALID_PARAMS, "argument must have a name and a value, both texts")
    if not is_texts(context.get("arguments", {})):
        raise ProtocolError(INVALID_PARAMS, "the arguments in context must be an object of texts")
