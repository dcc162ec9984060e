"""The REST route table: path, handler, required permission and OpenAPI description.

Roles are permissions of the gateway, which a key holds like any other:

* none             list, call and explain the tools it sees; its own calls and usage
* `crib:calls`     the calls and usage of all callers
* `crib:explain`   explain hidden tools, too
* `crib:status`    the status, MCP servers included
* `crib:servers`   test, remove and reload MCP servers, approve changed definitions
* `crib:keys`      list keys, create keys with at most its own privileges, rotate and revoke those
* `crib:apps`      register apps, and change its own
* `crib:users`     the data of all users; a user's own key may access that user's data without it
* `crib:admin`     everything, also creating sign-in links for the web page
"""

from collections.abc import Callable
from functools import partial

from toolcrib.admin import Admin
from toolcrib.admin.app_admin import AppStorage
from toolcrib.formats import FORMATS
from toolcrib.frontends.rest.app_routes import AppRoutes, StorageRoutes
from toolcrib.frontends.rest.fields import (
    EVENT_STREAM,
    FLAG,
    NUMBER,
    TEXT,
    USER,
    count_to,
    header,
    limit_of,
    operation,
    query,
)
from toolcrib.frontends.rest.key_routes import KeyRoutes
from toolcrib.frontends.rest.legacy import LegacyRoutes
from toolcrib.frontends.rest.openapi import CALL_HEADERS
from toolcrib.frontends.rest.operator_routes import (
    ADMIN,
    MAX_AUDIT_NUMBER,
    MAX_LISTED_CALLS,
    MAX_LISTED_RECORDS,
    SERVERS,
    STATUS,
    HealthRoutes,
    OperatorRoutes,
    ServerRoutes,
)
from toolcrib.frontends.rest.tool_routes import (
    MAX_LISTED_TOOLS,
    STYLES,
    AnswerRoute,
    ExecuteRoute,
    RestToolList,
)
from toolcrib.frontends.rest.user_routes import UserEventStream, UserRoutes, user_routes
from toolcrib.gateway import Gateway
from toolcrib.http import HttpResponse, Request, Route
from toolcrib.identity import Identity

_CONTEXT = "the context to use; by default the caller's own"
_PREFER = header("Prefer", "`return=minimal` is an alternative to `detail: brief` in the body")
_CALLER = "calls of this caller; other callers than oneself need crib:calls"


class RestFrontend:
    """The REST frontend. A key without roles lists and calls tools, and sees its own calls."""

    def __init__(
        self,
        gateway: Gateway,
        console: Admin,
        identity: Identity,
        *,
        body_bytes: int,
        draining: Callable[[], bool],
        short_of_memory: Callable[[], None],
        openapi: Callable[[Request], HttpResponse],
        legacy: bool,
    ) -> None:
        self._listing = RestToolList(gateway)
        self._execute = ExecuteRoute(gateway, body_bytes=body_bytes)
        self._answer = AnswerRoute(gateway, body_bytes=body_bytes)
        self._operators = OperatorRoutes(console, identity)
        self._keys = KeyRoutes(console)
        self._servers = ServerRoutes(console)
        self._apps = AppRoutes(console.apps, console.confined_app)
        self._storage = StorageRoutes(console.apps, AppStorage(console.store.app_data))
        self._users, self._event_streams = UserRoutes(console.users), UserEventStream(console.users)
        self._legacy = LegacyRoutes(gateway, identity, console) if legacy else None
        self._health = HealthRoutes(console, draining, short_of_memory)
        self._openapi = openapi

    def end(self, key: str | None = None) -> None:
        """End event streams: those of a revoked key, or, without one, all."""
        self._event_streams.end(key)

    def routes(self) -> tuple[Route, ...]:
        """Return every route of this frontend."""
        return (
            *self._tools(),
            *self._usage(),
            *self._keys.routes(),
            *self._mcp_servers(),
            *self._apps.routes(),
            *user_routes(self._users, self._event_streams),
            *self._storage.routes(),
            *(() if self._legacy is None else self._legacy.routes()),
            *self._public(),
        )

    def _tools(self) -> tuple[Route, ...]:
        listing = [
            query("context", _CONTEXT),
            query("format", "format of the tool declarations", {"enum": list(FORMATS), "default": "rest"}),
            query("style", "naming style", {"enum": list(STYLES)}),
            query("q", "search in names, descriptions, parameters and tags; best matches first", TEXT),
            limit_of("tools", MAX_LISTED_TOOLS),
            query(
                "text",
                "the user's words: if there are too many tools, the most relevant ones are listed",
                TEXT,
            ),
        ]
        tools = operation("Tools", parameters=listing)
        result = operation(
            "ExecuteResult", body="Execute", parameters=[*CALL_HEADERS, _PREFER], more=EVENT_STREAM
        )
        answers = operation("Answers", body="Answer", parameters=CALL_HEADERS, more=EVENT_STREAM)
        call = partial(Route, calls=True, present=True)
        return (
            Route("GET", "/api/tools", self._listing.tools, tools, present=True),
            call("POST", "/api/tools/execute", self._execute.execute, result),
            call("POST", "/api/tools/answer", self._answer.answer, answers),
        )

    def _usage(self) -> tuple[Route, ...]:
        tool = query("tool", "only this tool, by its canonical name")
        caller = query("caller", _CALLER)
        before = query("before", "before this time, in seconds since 1970", NUMBER)
        since = query("since", "since this day", {**TEXT, "format": "date"})
        app = query("app", "only tools of this app, by its package")
        user = query("user", "only calls for this user; other users than oneself need crib:calls")
        audit = [
            limit_of("records", MAX_LISTED_RECORDS),
            query("before", "records before this number", count_to(MAX_AUDIT_NUMBER)),
            query("actor", "only records of this key, by its name"),
            query("action", "only this action, such as keys.create, or group of actions, such as keys"),
            query("since", "since this time, in seconds since 1970", NUMBER),
        ]
        explain = [
            query("name", "any name of the tool", required=True),
            query("context", _CONTEXT),
            query("user", "explain it for this user; needs a key that may act for others", USER),
        ]
        calls = operation("Calls", parameters=[limit_of("calls", MAX_LISTED_CALLS), tool, caller, before])
        usage = operation("Usage", parameters=[since, tool, app, caller, user])
        records = operation("AuditRecords", parameters=audit)
        explanation = operation("Explanation", parameters=explain)
        return (
            Route("GET", "/api/calls", self._operators.calls, calls),
            Route("GET", "/api/usage", self._operators.usage, usage),
            Route("GET", "/api/audit", self._operators.audit, records, needs=ADMIN, whole=True),
            Route("GET", "/api/explain", self._operators.explain, explanation),
            Route("GET", "/api/status", self._operators.status, operation("Status"), needs=STATUS),
        )

    def _mcp_servers(self) -> tuple[Route, ...]:
        servers = self._servers
        dry_run = query("dry_run", "only return what a reload would change", FLAG)
        reload, approved = operation("Plan", parameters=[dry_run]), operation("Approved", body="NewPin")
        tested, plan, server = operation("Tested"), operation("Plan"), "/mcp/servers/{server_id}"
        change = partial(Route, needs=SERVERS, whole=True)
        return (
            Route("GET", "/mcp/status", servers.status, operation("Servers"), needs=STATUS, whole=True),
            change("POST", "/mcp/test/{server_id}", servers.test, tested, action="servers.test"),
            change("DELETE", server, servers.remove, plan, action="servers.remove"),
            change("POST", "/reload", servers.reload, reload, action="config.reload", fresh=True),
            change("GET", "/api/pins", servers.pins, operation("Pins")),
            change("POST", "/api/pins", servers.approve, approved, action="pins.approve", fresh=True),
        )

    def _public(self) -> tuple[Route, ...]:
        text = {"responses": {"200": {"description": "done", "content": {"text/plain": {"schema": TEXT}}}}}
        return (
            Route("GET", "/health", self._health.health, operation("Health"), access="open"),
            Route("GET", "/ready", self._health.ready, operation("Ready"), access="open"),
            Route("GET", "/metrics", self._health.metrics, text, access="loopback"),
            Route("GET", "/openapi.json", self._describe, access="loopback"),
        )

    async def _describe(self, request: Request) -> HttpResponse:
        """This OpenAPI description; without a key on this machine only."""
        return self._openapi(request)
