"""The table of the REST routes: who may ask what, and how it is described.

Roles are permissions of ours, which a key holds like any other:

* none             list, call, explain what one sees, see one's own calls and usage
* `crib:calls`     the calls and usage of everybody
* `crib:explain`   explain also tools that are hidden
* `crib:status`    what runs, MCP servers included
* `crib:servers`   test, remove and reload MCP servers, approve changed definitions
* `crib:keys`      list, make, rotate and revoke keys that may do no more than one's own
* `crib:admin`     everything, signing readers of the web page in included
"""

from collections.abc import Callable
from typing import Any

from toolcrib.asgi import Answer, Request, Route
from toolcrib.console import Console
from toolcrib.faces.rest.execute import Execute
from toolcrib.faces.rest.life import Life
from toolcrib.faces.rest.listing import MOST, STYLES, Listing
from toolcrib.faces.rest.operators import KEYS, MOST_CALLS, STATUS, Operators
from toolcrib.faces.rest.servers import SERVERS, ServerRoutes
from toolcrib.faces.rest.shapes import COUNT, FLAG, NUMBER, TEXT, Schema, ref
from toolcrib.formats import FORMATS
from toolcrib.gateway import Conversations, Gateway
from toolcrib.identity import Identity

_CONTEXT = "the context to look from; the caller's own where it is left out"
_CALLER = "whose calls; others than one's own need crib:calls"
_HEADERS = {
    "X-User-Id": "the user the call is made for; needs a key that may act for others",
    "X-Agent-Id": "the agent that calls",
    "X-Agent-Version": "its version",
    "X-Session-Id": "the session the call belongs to",
    "X-Correlation-Id": "ties calls together; any id becomes a UUID",
    "traceparent": "the W3C trace the call is part of",
    "Idempotency-Key": "the same as idempotencyKey in the body",
    "X-Timeout-Ms": "how long the caller waits, up to 300000",
}


def _query(name: str, description: str, schema: Schema = TEXT, *, required: bool = False) -> Schema:
    return {"name": name, "in": "query", "required": required, "description": description, "schema": schema}


def _header(name: str, description: str) -> Schema:
    return {"name": name, "in": "header", "description": description, "schema": TEXT}


def _out(shape: str, status: str = "200", more: Schema | None = None) -> dict[str, Any]:
    content = {"application/json": {"schema": ref(shape)}, **(more or {})}
    return {"responses": {status: {"description": "done", "content": content}}}


def _in(shape: str) -> dict[str, Any]:
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": ref(shape)}}}}


class Rest:
    """The REST face. A plain key lists, calls, and sees its own calls; the rest is for operators."""

    def __init__(
        self,
        gateway: Gateway,
        console: Console,
        identity: Identity,
        *,
        conversations: Conversations,
        body_bytes: int,
        draining: Callable[[], bool],
        openapi: Callable[[Request], Answer],
    ) -> None:
        self._listing = Listing(gateway)
        self._execute = Execute(gateway, conversations, body_bytes=body_bytes)
        self._operators = Operators(console, identity)
        self._servers = ServerRoutes(console)
        self._life = Life(console, draining)
        self._openapi = openapi

    def routes(self) -> tuple[Route, ...]:
        """Return every route of this face."""
        operators = (*self._keys(), *self._mcp_servers(), *self._pins())
        return (*self._tools(), *self._happened(), *self._why(), *operators, *self._alive())

    def _tools(self) -> tuple[Route, ...]:
        parameters = [
            _query("context", _CONTEXT),
            _query("format", "how tools are spelled", {"enum": list(FORMATS), "default": "rest"}),
            _query("style", "how tools are named", {"enum": list(STYLES)}),
            _query("q", "words the tool's name, description, category or tags must hold, all of them"),
            _query("limit", "the most tools to list", {**COUNT, "minimum": 1, "maximum": MOST}),
        ]
        events = {"text/event-stream": {"schema": TEXT}}
        headers = [_header(name, said) for name, said in _HEADERS.items()]
        return (
            Route(
                method="GET",
                path="/api/tools",
                handler=self._listing.tools,
                summary="The tools the caller may use.",
                document={"parameters": parameters, **_out("Tools")},
            ),
            Route(
                method="POST",
                path="/api/tools/execute",
                handler=self._execute.execute,
                summary="Calls a tool; `Accept: text/event-stream` gives events progress, waiting, result.",
                calls=True,
                document={"parameters": headers, **_in("Execute"), **_out("Result", more=events)},
            ),
        )

    def _happened(self) -> tuple[Route, ...]:
        tool = _query("tool", "of this tool alone, by its canonical name")
        caller = _query("caller", _CALLER)
        limit = _query("limit", "the most calls to list", {**COUNT, "minimum": 1, "maximum": MOST_CALLS})
        before = _query("before", "earlier than this, in seconds since 1970", NUMBER)
        since = _query("since", "from this day on", {**TEXT, "format": "date"})
        return (
            Route(
                method="GET",
                path="/api/calls",
                handler=self._operators.calls,
                summary="The last calls: one's own, or everybody's with crib:calls.",
                document={"parameters": [limit, tool, caller, before], **_out("Calls")},
            ),
            Route(
                method="GET",
                path="/api/usage",
                handler=self._operators.usage,
                summary="How much each tool was used: by oneself, or by everybody with crib:calls.",
                document={"parameters": [since, tool, caller], **_out("Usage")},
            ),
        )

    def _why(self) -> tuple[Route, ...]:
        explain = [
            _query("name", "any name of the tool", required=True),
            _query("context", _CONTEXT),
            _query("user", "as this user sees it; needs a key that may act for others"),
        ]
        return (
            Route(
                method="GET",
                path="/api/explain",
                handler=self._operators.explain,
                summary="Why a tool may be used or not; with crib:explain also of tools that are hidden.",
                document={"parameters": explain, **_out("Explanation")},
            ),
            Route(
                method="GET",
                path="/api/status",
                handler=self._operators.status,
                summary="What runs here and what is wrong with it.",
                needs=STATUS,
                document=_out("Status"),
            ),
        )

    def _keys(self) -> tuple[Route, ...]:
        return (
            Route(
                method="GET",
                path="/api/keys",
                handler=self._operators.keys,
                summary="The API keys, without the keys themselves.",
                needs=KEYS,
                document=_out("Keys"),
            ),
            Route(
                method="POST",
                path="/api/keys",
                handler=self._operators.create_key,
                summary="Makes an API key that may do no more than its maker; it is shown this once.",
                needs=KEYS,
                document={**_in("NewKey"), **_out("MadeKey", "201")},
            ),
            Route(
                method="DELETE",
                path="/api/keys/{name}",
                handler=self._operators.revoke_key,
                summary="Ends an API key at once.",
                needs=KEYS,
                document=_out("Revoked"),
            ),
            Route(
                method="POST",
                path="/api/keys/{name}/rotate",
                handler=self._operators.rotate_key,
                summary="Puts another key in place of one, which ends at once.",
                needs=KEYS,
                document=_out("MadeKey"),
            ),
        )

    def _mcp_servers(self) -> tuple[Route, ...]:
        dry_run = _query("dry_run", "say what a reload would change and change nothing", FLAG)
        return (
            Route(
                method="GET",
                path="/mcp/status",
                handler=self._servers.status,
                summary="How every MCP server is, and where each exposed name leads.",
                needs=STATUS,
                document=_out("Servers"),
            ),
            Route(
                method="POST",
                path="/mcp/test/{server_id}",
                handler=self._servers.test,
                summary="Asks an MCP server for its tools now; one that is not running is started.",
                needs=SERVERS,
                document=_out("Tested"),
            ),
            Route(
                method="DELETE",
                path="/mcp/servers/{server_id}",
                handler=self._servers.remove,
                summary="Removes an MCP server that was added at run time.",
                needs=SERVERS,
                document=_out("Plan"),
            ),
            Route(
                method="POST",
                path="/reload",
                handler=self._servers.reload,
                summary="Brings the gateway in line with its config and says what changed.",
                needs=SERVERS,
                document={"parameters": [dry_run], **_out("Plan")},
            ),
        )

    def _pins(self) -> tuple[Route, ...]:
        return (
            Route(
                method="GET",
                path="/api/pins",
                handler=self._servers.pins,
                summary="The tools whose definition is not the one that was trusted.",
                needs=SERVERS,
                document=_out("Pins"),
            ),
            Route(
                method="POST",
                path="/api/pins",
                handler=self._servers.approve,
                summary="Trusts a tool's definition as it is now.",
                needs=SERVERS,
                document={**_in("NewPin"), **_out("Approved")},
            ),
        )

    def _alive(self) -> tuple[Route, ...]:
        plain = {"responses": {"200": {"description": "done", "content": {"text/plain": {"schema": TEXT}}}}}
        return (
            Route(
                method="GET",
                path="/health",
                handler=self._life.health,
                summary="Whether the process answers.",
                access="open",
                document=_out("Health"),
            ),
            Route(
                method="GET",
                path="/ready",
                handler=self._life.ready,
                summary="Whether calls are welcome.",
                access="open",
                document=_out("Ready"),
            ),
            Route(
                method="GET",
                path="/metrics",
                handler=self._life.metrics,
                summary="Metrics for Prometheus; open on this machine, elsewhere for keys.",
                access="loopback",
                document=plain,
            ),
            Route(
                method="GET",
                path="/openapi.json",
                handler=self._describe,
                summary="This description; open on this machine, elsewhere for keys.",
                access="loopback",
            ),
        )

    async def _describe(self, request: Request) -> Answer:
        return self._openapi(request)
