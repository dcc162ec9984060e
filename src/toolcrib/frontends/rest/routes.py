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
from toolcrib.frontends.rest.fields import COUNT, FLAG, NUMBER, TEXT, USER, gives, query, takes
from toolcrib.frontends.rest.key_routes import KeyRoutes
from toolcrib.frontends.rest.legacy import LegacyRoutes
from toolcrib.frontends.rest.openapi import CALL_HEADERS
from toolcrib.frontends.rest.operator_routes import (
    ADMIN,
    MAX_AUDIT_NUMBER,
    MOST_AUDIT_RECORDS,
    MOST_CALLS,
    SERVERS,
    STATUS,
    HealthRoutes,
    OperatorRoutes,
    ServerRoutes,
)
from toolcrib.frontends.rest.tool_routes import MOST, STYLES, AnswerRoute, ExecuteRoute, RestToolList
from toolcrib.frontends.rest.user_routes import UserEventStream, UserRoutes, user_routes
from toolcrib.gateway import Gateway, MultiRoundCalls
from toolcrib.http import HttpResponse, Request, Route
from toolcrib.identity import Identity

_CONTEXT = "the context to look from; the caller's own where it is left out"
_CALLER = "whose calls; others than one's own need crib:calls"


class RestFrontend:
    """The REST frontend. A key without roles lists and calls tools, and sees its own calls."""

    def __init__(
        self,
        gateway: Gateway,
        console: Admin,
        identity: Identity,
        *,
        conversations: MultiRoundCalls,
        body_bytes: int,
        draining: Callable[[], bool],
        short_of_memory: Callable[[], None],
        openapi: Callable[[Request], HttpResponse],
        legacy: bool,
    ) -> None:
        self._listing = RestToolList(gateway)
        self._execute = ExecuteRoute(gateway, conversations, body_bytes=body_bytes)
        self._answer = AnswerRoute(gateway, conversations, body_bytes=body_bytes)
        self._operators = OperatorRoutes(console, identity)
        self._keys = KeyRoutes(console)
        self._servers = ServerRoutes(console)
        self._apps = AppRoutes(console.apps, console.confined_app)
        self._storage = StorageRoutes(console.apps, AppStorage(console.store.app_data))
        self._users, self._outward = UserRoutes(console.users), UserEventStream(console.users)
        self._legacy = LegacyRoutes(gateway, identity, console) if legacy else None
        self._life = HealthRoutes(console, draining, short_of_memory)
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
            query("format", "how tools are spelled", {"enum": list(FORMATS), "default": "rest"}),
            query("style", "how tools are named", {"enum": list(STYLES)}),
            query(
                "q",
                "words to look for in names, descriptions, parameters and tags; the best come first",
                TEXT,
            ),
            query("limit", "the most tools to list", {**COUNT, "minimum": 1, "maximum": MOST}),
            query("text", "what was said: of too many tools, those that fit it are listed", TEXT),
        ]
        events = {"text/event-stream": {"schema": TEXT}}
        return (
            Route(
                method="GET",
                path="/api/tools",
                handler=self._listing.tools,
                summary="The tools the caller may use.",
                present=True,
                document={"parameters": parameters, **gives("Tools")},
            ),
            Route(
                method="POST",
                path="/api/tools/execute",
                handler=self._execute.execute,
                summary="Calls a tool; `Accept: text/event-stream` gives events progress, waiting, result.",
                calls=True,
                present=True,
                document={"parameters": CALL_HEADERS, **takes("Execute"), **gives("Result", more=events)},
            ),
        )

    def _answers(self) -> Route:
        return Route(
            method="POST",
            path="/api/tools/answer",
            handler=self._answer.answer,
            summary="Makes all calls of a provider's message, answers with its own; events as for one call.",
            calls=True,
            present=True,
            document={
                "parameters": CALL_HEADERS,
                **takes("Answer"),
                **gives("Answers", more={"text/event-stream": {"schema": TEXT}}),
            },
        )

    def _happened(self) -> tuple[Route, ...]:
        tool = query("tool", "of this tool alone, by its canonical name")
        caller = query("caller", _CALLER)
        limit = query("limit", "the most calls to list", {**COUNT, "minimum": 1, "maximum": MOST_CALLS})
        before = query("before", "earlier than this, in seconds since 1970", NUMBER)
        since = query("since", "from this day on", {**TEXT, "format": "date"})
        app = query("app", "of the tools of this app alone, by its package")
        user = query("user", "of what was called for this user; others than oneself need crib:calls")
        return (
            Route(
                method="GET",
                path="/api/calls",
                handler=self._operators.calls,
                summary="The last calls: one's own, or everybody's with crib:calls.",
                document={"parameters": [limit, tool, caller, before], **gives("Calls")},
            ),
            Route(
                method="GET",
                path="/api/usage",
                handler=self._operators.usage,
                summary="How much each tool was used: by oneself, or by everybody with crib:calls.",
                document={"parameters": [since, tool, app, caller, user], **gives("Usage")},
            ),
        )

    def _audited(self) -> Route:
        parameters = [
            query(
                "limit", "the most records to list", {**COUNT, "minimum": 1, "maximum": MOST_AUDIT_RECORDS}
            ),
            query(
                "before",
                "older than the record of this number",
                {**COUNT, "minimum": 1, "maximum": MAX_AUDIT_NUMBER},
            ),
            query("actor", "of this key alone, by its name"),
            query("action", "of this action alone, such as keys.create, or of its group, such as keys"),
            query("since", "not older than this, in seconds since 1970", NUMBER),
        ]
        return Route(
            method="GET",
            path="/api/audit",
            handler=self._operators.audit,
            summary="The audit records: administrative actions and failed authentications, newest first.",
            needs=ADMIN,
            whole=True,
            document={"parameters": parameters, **gives("AuditRecords")},
        )

    def _why(self) -> tuple[Route, ...]:
        explain = [
            query("name", "any name of the tool", required=True),
            query("context", _CONTEXT),
            query("user", "as this user sees it; needs a key that may act for others", USER),
        ]
        return (
            Route(
                method="GET",
                path="/api/explain",
                handler=self._operators.explain,
                summary="Why a tool may be used or not; with crib:explain also of tools that are hidden.",
                document={"parameters": explain, **gives("Explanation")},
            ),
            Route(
                method="GET",
                path="/api/status",
                handler=self._operators.status,
                summary="What runs here and what is wrong with it.",
                needs=STATUS,
                document=gives("Status"),
            ),
        )

    def _mcp_servers(self) -> tuple[Route, ...]:
        return (
            Route(
                method="GET",
                path="/mcp/status",
                handler=self._servers.status,
                summary="How every MCP server is, and where each exposed name leads.",
                needs=STATUS,
                whole=True,
                document=gives("Servers"),
            ),
            Route(
                method="POST",
                path="/mcp/test/{server_id}",
                handler=self._servers.test,
                summary="Asks an MCP server for its tools now; one that is not running is started.",
                action="servers.test",
                needs=SERVERS,
                whole=True,
                document=gives("Tested"),
            ),
            Route(
                method="DELETE",
                path="/mcp/servers/{server_id}",
                handler=self._servers.remove,
                summary="Removes an MCP server that was added at run time.",
                action="servers.remove",
                needs=SERVERS,
                whole=True,
                document=gives("Plan"),
            ),
            self._reload(),
        )

    def _reload(self) -> Route:
        dry_run = query("dry_run", "say what a reload would change and change nothing", FLAG)
        return Route(
            method="POST",
            path="/reload",
            handler=self._servers.reload,
            summary="Brings the gateway in line with its config and says what changed.",
            action="config.reload",
            needs=SERVERS,
            whole=True,
            fresh=True,
            document={"parameters": [dry_run], **gives("Plan")},
        )

    def _pins(self) -> tuple[Route, ...]:
        return (
            Route(
                method="GET",
                path="/api/pins",
                handler=self._servers.pins,
                summary="The tools whose definition is not the one that was trusted.",
                needs=SERVERS,
                whole=True,
                document=gives("Pins"),
            ),
            Route(
                method="POST",
                path="/api/pins",
                handler=self._servers.approve,
                summary="Trusts a tool's definition as it is now.",
                action="pins.approve",
                needs=SERVERS,
                whole=True,
                fresh=True,
                document={**takes("NewPin"), **gives("Approved")},
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
                document=gives("Health"),
            ),
            Route(
                method="GET",
                path="/ready",
                handler=self._life.ready,
                summary="Whether calls are welcome.",
                access="open",
                document=gives("Ready"),
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

    async def _describe(self, request: Request) -> HttpResponse:
        return self._openapi(request)
