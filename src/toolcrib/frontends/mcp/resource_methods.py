"""MCP methods for resources, prompts and completion: paged lists, contents and subscriptions."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, Literal

import orjson

from toolcrib.errors import Refused, problem
from toolcrib.formats.mcp import meta
from toolcrib.frontends.mcp.request import (
    CLIENT_ERROR_KINDS,
    McpRequest,
    Pages,
    ProtocolError,
    Respond,
    SessionLink,
    cursor_of,
    encode_pages,
    encode_result,
)
from toolcrib.frontends.mcp.tool_calls import check_problem, input_required
from toolcrib.gateway import Gateway, ModelHints, PromptIndex, ResourceIndex, Run, Subscriber
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
from toolcrib.model import Caller, JsonObject, Problem, Result

Fetch = Callable[[McpRequest, Run], Awaitable[Result]]
"""Runs a request, once per round of questions; signs the state of an `ask` that it returns."""
OnSessionUpdate = Callable[[SessionLink, str], None]

_GATEWAY_FIELDS = frozenset({"resultType", "ttlMs", "cacheScope", "_meta"})
"""Result fields that the gateway sets itself; `_meta` is filtered and passed on separately."""
_HIDDEN_CODES = frozenset(
    {PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, HEADER_MISMATCH, UNSUPPORTED_VERSION}
)
"""JSON-RPC errors of a server about the gateway's own request; they do not concern the client's."""


class ResourceMethods:
    """Handles all methods that are not about tools."""

    legacy_only = frozenset({methods.SUBSCRIBE, methods.UNSUBSCRIBE})
    """Modern clients name the resources in `subscriptions/listen` instead."""

    def __init__(self, gateway: Gateway, fetch: Fetch) -> None:
        self._gateway, self._resource_access = gateway, gateway.resource_access
        self._fetch, self._hints = fetch, ModelHints(gateway)
        self._subscribers: dict[SessionLink, Subscriber] = {}
        self._listeners: list[OnSessionUpdate] = []

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
        index = self._resource_access.capabilities(caller)
        found: dict[str, Any] = {}
        if index.resources:
            found["resources"] = {"listChanged": True, **({"subscribe": True} if index.tells else {})}
        if index.prompts:
            found["prompts"] = {"listChanged": True}
        if index.completes:
            found["completions"] = {}
        return found

    # --- subscriptions ---

    def digest(self, caller: Caller, kind: Literal["resources", "prompts"]) -> bytes:
        """Return a digest of one list of a caller."""
        if kind == "resources":
            return self._resource_access.resources(caller).digest
        return self._resource_access.prompts(caller).digest(self._style(caller))

    def subscriber(self, caller: Caller, on_update: Callable[[str], None]) -> Subscriber:
        """Return a new subscriber for one client; the callback gets the URIs that the client used."""
        return self._resource_access.subscriptions.subscriber(caller, on_update)

    def listen(self, callback: OnSessionUpdate) -> None:
        """Register a callback for changed resources that a session has subscribed to."""
        self._listeners.append(callback)

    def drop_session(self, session: SessionLink) -> None:
        """Drop the subscriptions of an ended session."""
        subscriber = self._subscribers.pop(session, None)
        if subscriber is not None:
            subscriber.close()

    async def _subscribe(self, request: McpRequest) -> bytes:
        uri, session = _text_parameter(request, "uri"), request.peer.session
        if session is None:
            raise ProtocolError(INVALID_REQUEST, "only a client with a session can subscribe")
        subscriber = self._subscribers.get(session)
        if subscriber is None:
            subscriber = self._subscribers[session] = self.subscriber(
                request.peer.caller, partial(self._notify, session)
            )
        try:
            await subscriber.add(uri)
        except Refused as error:
            raise self._not_found_error(request, uri, error) from None
        session.subscribed_uris.add(uri)
        return encode_result(request, {})

    async def _unsubscribe(self, request: McpRequest) -> bytes:
        uri, session = _text_parameter(request, "uri"), request.peer.session
        if session is not None and session in self._subscribers:
            self._subscribers[session].drop(uri)
            session.subscribed_uris.discard(uri)
        return encode_result(request, {})

    def _notify(self, session: SessionLink, uri: str) -> None:
        for callback in self._listeners:
            callback(session, uri)

    # --- lists ---

    async def _resources(self, request: McpRequest) -> bytes:
        index = self._resource_access.resources(request.peer.caller)
        return _page(request, index, "resources", index.listed)

    async def _templates(self, request: McpRequest) -> bytes:
        index = self._resource_access.resources(request.peer.caller)
        return _page(request, index, "resourceTemplates", index.listed_templates)

    async def _prompts(self, request: McpRequest) -> bytes:
        caller = request.peer.caller
        index, style = self._resource_access.prompts(caller), self._style(caller)
        return _page(request, index, "prompts", partial(index.listed, style), style)

    def _style(self, caller: Caller) -> str:
        return self._gateway.style(caller) or "safe"

    # --- contents ---

    async def _read(self, request: McpRequest) -> bytes:
        uri, caller = _text_parameter(request, "uri"), request.peer.caller
        try:
            result = await self._fetch(request, partial(self._resource_access.read, uri, caller))
        except Refused as error:
            raise self._not_found_error(request, uri, error) from None
        try:
            return self._encoded(request, result, resource_contents)
        except ProtocolError as error:
            raise _with_uri(request, uri, error) from None

    async def _get(self, request: McpRequest) -> bytes:
        name, arguments = _text_parameter(request, "name"), request.params.get("arguments")
        if arguments is not None and not is_texts(arguments):
            raise ProtocolError(INVALID_PARAMS, "arguments must be an object of texts")
        run = partial(self._resource_access.get, name, arguments, request.peer.caller)
        return self._encoded(request, await self._fetch(request, run), prompt_messages)

    async def _complete(self, request: McpRequest) -> bytes:
        params = {key: request.params[key] for key in ("ref", "argument", "context") if key in request.params}
        _check_completion(params)
        result = await self._resource_access.complete(params, request.peer.caller, {"origin": request.origin})
        return self._encoded(request, result, completion_values)

    def _encoded(
        self, request: McpRequest, result: Result, read: Callable[[JsonObject, str], JsonObject | None]
    ) -> bytes:
        """Encode a result; content that the protocol does not define must not reach a client."""
        cause = result.problem
        if cause is None and result.ask is not None:
            return input_required(request, result)
        if cause is None:
            source_result = as_object(result.data)
            fields = read(source_result, request.peer.revision)
            if fields is not None:
                return _encoded_content(request, source_result, fields)
            message = f"the server's answer to {request.method} is not what the protocol allows"
            cause = problem("CONTRACT_VIOLATION", message)
            result = self._gateway.refusal(cause, request.origin)
        raise _protocol_error(self._hints.without_hidden(result, request.peer.caller), cause)

    def _not_found_error(self, request: McpRequest, uri: str, error: Refused) -> Exception:
        """Return the error for an unknown resource; its code depends on the era."""
        cause = error.problem
        if cause.code != "NOT_FOUND":
            return error
        refusal = self._gateway.refusal(cause, request.origin)
        own_meta = meta(self._hints.without_hidden(refusal, request.peer.caller))
        return ProtocolError(_not_found_code(request), cause.message, {"uri": uri, **own_meta})


def _page(
    request: McpRequest,
    index: ResourceIndex | PromptIndex,
    key: str,
    entries: Callable[[], Sequence[JsonObject]],
    style: str = "",
) -> bytes:
    """Return the page of a cursor; pages are rendered once for all callers that see the same list."""
    cursor, revision = cursor_of(request), request.peer.revision
    list_key = f"{key} {revision} {style}"
    pages: Pages | None = index.rendered.get(list_key)
    if pages is None:
        encoded = [
            orjson.dumps({name: each[name] for name in each if FIELDS_SINCE.get(name, "") <= revision})
            for each in entries()
        ]
        pages = index.rendered[list_key] = encode_pages(key, encoded, revision)
    page = pages.get(cursor)
    if page is None:
        raise ProtocolError(INVALID_PARAMS, "there is no such cursor; ask for the first page again")
    return page


def _encoded_content(request: McpRequest, source_result: JsonObject, fields: JsonObject) -> bytes:
    """Encode a result: the validated part, and extra fields of the server that belong to its result."""
    source_meta = as_object(source_result.get("_meta"))
    passed = {key: source_meta[key] for key in source_meta if not key.startswith(PROTOCOL_PREFIX)}
    omitted = _GATEWAY_FIELDS.union(fields)
    extra = {key: value for key, value in source_result.items() if key not in omitted}
    answer = {**fields, **extra, **({"_meta": passed} if passed else {})}
    # TTL 0: a resource may change at any time; clients that want to cache it can subscribe.
    return encode_result(request, answer, ttl_ms=0 if request.method == methods.READ_RESOURCE else None)


def _protocol_error(result: Result, cause: Problem) -> ProtocolError:
    """Return a problem as a JSON-RPC error: these methods have no `isError` result."""
    try:
        check_problem(result, cause)
    except ProtocolError as error:
        if error.code in _HIDDEN_CODES:
            error.code = INTERNAL_ERROR
        return error
    code = INVALID_PARAMS if cause.kind in CLIENT_ERROR_KINDS else INTERNAL_ERROR
    return ProtocolError(code, cause.message, meta(result))


def _with_uri(request: McpRequest, uri: str, error: ProtocolError) -> ProtocolError:
    """Return the error with the URI in its data; a not-found error gets the code of the client's era."""
    data = as_object(error.data)
    not_found = error.code == RESOURCE_NOT_FOUND or (error.code == INVALID_PARAMS and "uri" in data)
    code = _not_found_code(request) if not_found else error.code
    if code not in (INVALID_PARAMS, RESOURCE_NOT_FOUND):
        return error
    return ProtocolError(code, str(error), {**data, "uri": uri})


def _not_found_code(request: McpRequest) -> int:
    return INVALID_PARAMS if request.peer.modern else RESOURCE_NOT_FOUND


def _text_parameter(request: McpRequest, key: str) -> str:
    value = request.params.get(key)
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
