"""Routes for operators: health, metrics, servers, reload and usage."""

import logging
from collections.abc import Callable, Mapping

from toolcrib.admin import Admin
from toolcrib.errors import Refused, ToolcribError, Unavailable
from toolcrib.frontends.rest.fields import (
    choice,
    count,
    day,
    known_fields,
    moment,
    refused,
    required_text,
    text,
)
from toolcrib.http import HttpResponse, Request, json_response
from toolcrib.http.response import SAFE_HEADERS
from toolcrib.identity import Identity
from toolcrib.model import Caller

# --- Liveness, readiness and metrics ---

log = logging.getLogger(__name__)

_PROMETHEUS = (b"content-type", b"text/plain; version=0.0.4; charset=utf-8")


class HealthRoutes:
    """Handlers for orchestrators and Prometheus. Unauthenticated routes do not reveal what runs here."""

    def __init__(
        self, console: Admin, draining: Callable[[], bool], short_of_memory: Callable[[], None]
    ) -> None:
        self._console, self._draining, self._short_of_memory = console, draining, short_of_memory

    async def health(self, request: Request) -> HttpResponse:
        """Liveness check."""
        del request
        return json_response({"status": "ok"})

    async def ready(self, request: Request) -> HttpResponse:
        """Readiness check: whether the gateway accepts calls."""
        del request
        if self._draining():
            raise Refused("OVERLOADED", "the gateway is stopping; send calls elsewhere", retry_after=5.0)
        self._short_of_memory()
        try:
            await self._console.ready()
        except ToolcribError:
            raise
        except Exception as error:  # boundary: each database driver has exceptions of its own
            log.warning("the gateway is not ready", exc_info=error)
            raise Unavailable("SOURCE_DOWN", "the database does not respond", retry_after=5.0) from error
        return json_response({"ready": True})

    async def metrics(self, request: Request) -> HttpResponse:
        """Prometheus metrics; without a key on this machine only."""
        del request
        return HttpResponse(200, self._console.metrics(), (_PROMETHEUS, *SAFE_HEADERS))


# --- REST routes of MCP servers: status, test, removal, config reload, approval of changed definitions ---

SERVERS = "crib:servers"
"""Permission for every route that could start a process or that decides which definitions are trusted."""

PIN_FIELDS = ("name", "seal")


class ServerRoutes:
    """Handlers of the MCP server routes."""

    def __init__(self, console: Admin) -> None:
        self._servers = console.servers

    async def status(self, request: Request) -> HttpResponse:
        """Returns the status of every MCP server, and the tool behind each exposed name."""
        request.query()
        return json_response(self._servers.status())

    async def test(self, request: Request) -> HttpResponse:
        """Fetches the tools of an MCP server now; it is started if necessary."""
        request.query()
        return json_response(await self._servers.test(request.params["server_id"], actor=request.actor))

    async def remove(self, request: Request) -> HttpResponse:
        """Removes an MCP server that was added at run time."""
        request.query()
        return json_response(await self._servers.remove(request.params["server_id"], actor=request.actor))

    async def reload(self, request: Request) -> HttpResponse:
        """Reloads the config and returns what changed."""
        dry = choice(request.query("dry_run"), "dry_run", ("true", "false"), "false")
        return json_response(await self._servers.reload(dry_run=dry == "true", actor=request.actor))

    async def pins(self, request: Request) -> HttpResponse:
        """Lists the tools whose definition differs from the trusted one."""
        request.query()
        return json_response({"pins": self._servers.pins()})

    async def approve(self, request: Request) -> HttpResponse:
        """Trusts the current definition of a tool."""
        request.query()
        fields = known_fields(await request.json(), *PIN_FIELDS)
        name, seal = required_text(fields, "name"), text(fields, "seal")
        return json_response(await self._servers.approve(name, seal, actor=request.actor))


# --- REST routes of status, calls, usage, explain and audit: the caller's own data, or all for operators ---

ADMIN, KEYS, CALLS, EXPLAIN, STATUS = "crib:admin", "crib:keys", "crib:calls", "crib:explain", "crib:status"
"""Permissions: `crib:admin` grants every route, each of the others what its name suggests."""

MAX_LISTED_CALLS = 1000
MAX_LISTED_RECORDS = 1000
"""Maximum records on one page."""
MAX_AUDIT_NUMBER = 10**9 - 1


class OperatorRoutes:
    """Handlers of the operator routes."""

    def __init__(self, console: Admin, identity: Identity) -> None:
        self._console, self._identity = console, identity

    async def status(self, request: Request) -> HttpResponse:
        """Returns the status of the gateway and its sources."""
        request.query()
        return json_response(self._console.status(request.caller))

    async def calls(self, request: Request) -> HttpResponse:
        """Lists the latest calls: the caller's own, or all with crib:calls."""
        query = request.query("limit", "tool", "caller", "before")
        limit = count(query, "limit", default=100, maximum=MAX_LISTED_CALLS)
        about, before = _caller_filter(request.caller, query), moment(query, "before")
        rows = await self._console.calls(limit=limit, tool=text(query, "tool"), caller=about, before=before)
        return json_response({"calls": rows})

    async def usage(self, request: Request) -> HttpResponse:
        """Returns usage per tool: the caller's own, or all with crib:calls."""
        query = request.query("since", "tool", "app", "caller", "user")
        about = _caller_filter(request.caller, _with_user_filter(query))
        usage = await self._console.usage(
            since=day(query, "since"), tool=text(query, "tool"), app=text(query, "app"), caller=about
        )
        return json_response(usage)

    async def explain(self, request: Request) -> HttpResponse:
        """Explains why a tool may be used or not; with crib:explain also hidden tools."""
        query = request.query("name", "context", "user")
        caller = request.caller
        if "user" in query:
            acting = self._identity.acting_for(request.caller, query["user"])
            caller = await self._identity.people.present(acting)
        caller = self._console.gateway.enter(caller, text(query, "context"))
        everything = request.caller.may(EXPLAIN) and not request.caller.narrowed
        return json_response(
            self._console.explain(required_text(query, "name"), caller, everything=everything)
        )

    async def audit(self, request: Request) -> HttpResponse:
        """Lists audit records: administrative actions and failed authentications, newest first."""
        query = request.query("limit", "before", "actor", "action", "since")
        limit = count(query, "limit", default=100, maximum=MAX_LISTED_RECORDS)
        before = count(query, "before", default=0, maximum=MAX_AUDIT_NUMBER) or None
        records = await self._console.audit_records(
            limit=limit,
            before=before,
            actor=text(query, "actor"),
            action=text(query, "action"),
            since=moment(query, "since"),
        )
        return json_response({"records": records})


def _caller_filter(caller: Caller, query: Mapping[str, str]) -> str | None:
    """Return the caller id to filter by: any or none for operators, for others their own."""
    caller_id = text(query, "caller")
    if (caller.may(CALLS) and not caller.narrowed) or caller_id == caller.id:
        return caller_id
    if caller_id is not None and caller.narrowed:
        message = "calls of others span all contexts, and your key is confined to some"
        raise Refused("SCOPE_DENIED", message, path="caller")
    if caller_id is not None:
        raise Refused("SCOPE_DENIED", f"the calls of others need the permission {CALLS}", path="caller")
    return caller.id


def _with_user_filter(query: Mapping[str, str]) -> Mapping[str, str]:
    """Translate the parameter `user` into the caller id that calls for that user are recorded under."""
    user = text(query, "user")
    if user is None:
        return query
    if "caller" in query:
        raise refused("user", "and caller are alternatives; give one of them")
    return {"caller": f"user:{user}"}
