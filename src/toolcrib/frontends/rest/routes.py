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

from toolcrib.admin import Admin
from toolcrib.admin.app_admin import AppStorage
from toolcrib.formats import FORMATS
from toolcrib.frontends.rest.app_routes import AppRoutes, StorageRoutes
from toolcrib.frontends.rest.fields import COUNT, FLAG, NUMBER, TEXT, USER, accepts, query, returns
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
        self._users, self._outward = UserRoutes(console.users), UserEventStream(console.users)
        self._legacy = LegacyRoutes(gateway, identity, console) if legacy else None
        self._health = HealthRoutes(console, draining, short_of_memory)
        self._openapi = openapi

    def end(self, key: str | None = None) -> None:
        """End event streams: those of a revoked key, or, without one, all."""
        self._outward.end(key)

    def routes(self) -> tuple[Route, ...]:
        """Return every route of this frontend."""
        operators = (*self._keys.routes(), *self._mcp_servers(), *self._pins())
        apps = (*self._apps.routes(), *user_routes(self._users, self._outward), *self._storage.routes())
        old = () if self._legacy is None else self._legacy.routes()
        tools = (*self._tools(), self._answers())
        return (
            *tools,
            *self._happened(),
            self._audited(),
            *self._why(),
            *operators,
            *apps,
            *old,
            *self._alive(),
        )

    def _tools(self) -> tuple[Route, ...]:
        parameters = [
            query("context", _CONTEXT),
            query("format", "format of the tool declarations", {"enum": list(FORMATS), "default": "rest"}),
            query("style", "naming style", {"enum": list(STYLES)}),
            query("q", "search in names, descriptions, parameters and tags; best matches first", TEXT),
            query("limit", "maximum number of tools", {**COUNT, "minimum": 1, "maximum": MAX_LISTED_TOOLS}),
            query(
                "text",
                "the user's words: if there are too many tools, the most relevant ones are listed",
                TEXT,
            ),
        ]
        events = {"text/event-stream": {"schema": TEXT}}
        return (
            Route(
                method="GET",
                path="/api/tools",
                handler=self._listing.tools,
                summary="Lists the tools the caller may use.",
                present=True,
                document={"parameters": parameters, **returns("Tools")},
            ),
            Route(
                method="POST",
                path="/api/tools/execute",
                handler=self._execute.execute,
                summary="Calls a tool; `Accept: text/event-stream` streams events progress, waiting, result.",
                calls=True,
                present=True,
                document={"parameters": CALL_HEADERS, **accepts("Execute"), **returns("Result", more=events)},
            ),
        )

    def _answers(self) -> Route:
        return Route(
            method="POST",
            path="/api/tools/answer",
            handler=self._answer.answer,
            summary="Runs all calls of a provider message, returns the reply messages; events as for a call.",
            calls=True,
            present=True,
            document={
                "parameters": CALL_HEADERS,
                **accepts("Answer"),
                **returns("Answers", more={"text/event-stream": {"schema": TEXT}}),
            },
        )

    def _happened(self) -> tuple[Route, ...]:
        tool = query("tool", "only this tool, by its canonical name")
        caller = query("caller", _CALLER)
        limit = query(
            "limit", "maximum number of calls", {**COUNT, "minimum": 1, "maximum": MAX_LISTED_CALLS}
        )
        before = query("before", "before this time, in seconds since 1970", NUMBER)
        since = query("since", "since this day", {**TEXT, "format": "date"})
        app = query("app", "only tools of this app, by its package")
        user = query("user", "only calls for this user; other users than oneself need crib:calls")
        return (
            Route(
                method="GET",
                path="/api/calls",
                handler=self._operators.calls,
                summary="Lists the latest calls: the caller's own, or all with crib:calls.",
                document={"parameters": [limit, tool, caller, before], **returns("Calls")},
            ),
            Route(
                method="GET",
                path="/api/usage",
                handler=self._operators.usage,
                summary="Returns usage per tool: the caller's own, or all with crib:calls.",
                document={"parameters": [since, tool, app, caller, user], **returns("Usage")},
            ),
        )

    def _audited(self) -> Route:
        parameters = [
            query(
                "limit", "maximum number of records", {**COUNT, "minimum": 1, "maximum": MAX_LISTED_RECORDS}
            ),
            query(
                "before",
                "records before this number",
                {**COUNT, "minimum": 1, "maximum": MAX_AUDIT_NUMBER},
            ),
            query("actor", "only records of this key, by its name"),
            query("action", "only this action, such as keys.create, or group of actions, such as keys"),
            query("since", "since this time, in seconds since 1970", NUMBER),
        ]
        return Route(
            method="GET",
            path="/api/audit",
            handler=self._operators.audit,
            summary="Lists audit records: administrative actions and failed authentications, newest first.",
            needs=ADMIN,
            whole=True,
            document={"parameters": parameters, **returns("AuditRecords")},
        )

    def _why(self) -> tuple[Route, ...]:
        explain = [
            query("name", "any name of the tool", required=True),
            query("context", _CONTEXT),
            query("user", "explain it for this user; needs a key that may act for others", USER),
        ]
        return (
            Route(
                method="GET",
                path="/api/explain",
                handler=self._operators.explain,
                summary="Explains why a tool may be used or not; with crib:explain also hidden tools.",
                document={"parameters": explain, **returns("Explanation")},
            ),
            Route(
                method="GET",
                path="/api/status",
                handler=self._operators.status,
                summary="Returns the status of the gateway and its sources.",
                needs=STATUS,
                document=returns("Status"),
            ),
        )

    def _mcp_servers(self) -> tuple[Route, ...]:
        return (
            Route(
                method="GET",
                path="/mcp/status",
                handler=self._servers.status,
                summary="Returns the status of every MCP server, and the tool behind each exposed name.",
                needs=STATUS,
                whole=True,
                document=returns("Servers"),
            ),
            Route(
                method="POST",
                path="/mcp/test/{server_id}",
                handler=self._servers.test,
                summary="Fetches the tools of an MCP server now; it is started if necessary.",
                action="servers.test",
                needs=SERVERS,
                whole=True,
                document=returns("Tested"),
            ),
            Route(
                method="DELETE",
                path="/mcp/servers/{server_id}",
                handler=self._servers.remove,
                summary="Removes an MCP server that was added at run time.",
                action="servers.remove",
                needs=SERVERS,
                whole=True,
                document=returns("Plan"),
            ),
            self._reload(),
        )

    def _reload(self) -> Route:
        dry_run = query("dry_run", "only return what a reload would change", FLAG)
        return Route(
            method="POST",
            path="/reload",
            handler=self._servers.reload,
            summary="Reloads the config and returns what changed.",
            action="config.reload",
            needs=SERVERS,
            whole=True,
            fresh=True,
            document={"parameters": [dry_run], **returns("Plan")},
        )

    def _pins(self) -> tuple[Route, ...]:
        return (
            Route(
                method="GET",
                path="/api/pins",
                handler=self._servers.pins,
                summary="Lists the tools whose definition differs from the trusted one.",
                needs=SERVERS,
                whole=True,
                document=returns("Pins"),
            ),
            Route(
                method="POST",
                path="/api/pins",
                handler=self._servers.approve,
                summary="Trusts the current definition of a tool.",
                action="pins.approve",
                needs=SERVERS,
                whole=True,
                fresh=True,
                document={**accepts("NewPin"), **returns("Approved")},
            ),
        )

    def _alive(self) -> tuple[Route, ...]:
        plain = {"responses": {"200": {"description": "done", "content": {"text/plain": {"schema": TEXT}}}}}
        return (
            Route(
                method="GET",
                path="/health",
                handler=self._health.health,
                summary="Liveness check.",
                access="open",
                document=returns("Health"),
            ),
            Route(
                method="GET",
                path="/ready",
                handler=self._health.ready,
                summary="Readiness check: whether the gateway accepts calls.",
                access="open",
                document=returns("Ready"),
            ),
            Route(
                method="GET",
                path="/metrics",
                handler=self._health.metrics,
                summary="Prometheus metrics; without a key on this machine only.",
                access="loopback",
                document=plain,
            ),
            Route(
                method="GET",
                path="/openapi.json",
                handler=self._describe,
                summary="This OpenAPI description; without a key on this machine only.",
                access="loopback",
            ),
        )

    async def _describe(self, request: Request) -> HttpResponse:
        return self._openapi(request)
