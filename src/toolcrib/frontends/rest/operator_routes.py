"""REST routes of status, calls, usage, explain and audit: the caller's own data, or all for operators."""

from collections.abc import Mapping

from toolcrib.admin import Admin
from toolcrib.errors import Refused
from toolcrib.frontends.rest.fields import count, day, moment, needed, refused, text
from toolcrib.http import HttpResponse, Request, json_response
from toolcrib.identity import Identity
from toolcrib.model import Caller

ADMIN, KEYS, CALLS, EXPLAIN, STATUS = "crib:admin", "crib:keys", "crib:calls", "crib:explain", "crib:status"
"""Permissions: `crib:admin` grants every route, each of the others what its name suggests."""

MOST_CALLS = 1000
MOST_AUDIT_RECORDS = 1000
"""Maximum records on one page."""
MAX_AUDIT_NUMBER = 10**9 - 1


class OperatorRoutes:
    """Handlers of the operator routes."""

    def __init__(self, console: Admin, identity: Identity) -> None:
        self._console, self._identity = console, identity

    async def status(self, request: Request) -> HttpResponse:
        """Return the status of the gateway."""
        request.query()
        return json_response(self._console.status(request.caller))

    async def calls(self, request: Request) -> HttpResponse:
        """List the most recent calls."""
        query = request.query("limit", "tool", "caller", "before")
        limit = count(query, "limit", default=100, most=MOST_CALLS)
        about, before = _about(request.caller, query), moment(query, "before")
        rows = await self._console.calls(limit=limit, tool=text(query, "tool"), caller=about, before=before)
        return json_response({"calls": rows})

    async def usage(self, request: Request) -> HttpResponse:
        """Return the usage statistics of each tool."""
        query = request.query("since", "tool", "app", "caller", "user")
        about = _about(request.caller, _of_user(query))
        usage = await self._console.usage(
            since=day(query, "since"), tool=text(query, "tool"), app=text(query, "app"), caller=about
        )
        return json_response(usage)

    async def explain(self, request: Request) -> HttpResponse:
        """Explain why a tool is visible or not."""
        query = request.query("name", "context", "user")
        caller = request.caller
        if "user" in query:
            acting = self._identity.acting_for(request.caller, query["user"])
            caller = await self._identity.people.present(acting)
        caller = self._console.gateway.enter(caller, text(query, "context"))
        everything = request.caller.may(EXPLAIN) and not request.caller.narrowed
        return json_response(self._console.explain(needed(query, "name"), caller, everything=everything))

    async def audit(self, request: Request) -> HttpResponse:
        """List audit records."""
        query = request.query("limit", "before", "actor", "action", "since")
        limit = count(query, "limit", default=100, most=MOST_AUDIT_RECORDS)
        before = count(query, "before", default=0, most=MAX_AUDIT_NUMBER) or None
        records = await self._console.audit_records(
            limit=limit,
            before=before,
            actor=text(query, "actor"),
            action=text(query, "action"),
            since=moment(query, "since"),
        )
        return json_response({"records": records})


def _about(caller: Caller, query: Mapping[str, str]) -> str | None:
    """Return the caller id to filter by: any or none for operators, for others their own."""
    asked = text(query, "caller")
    if (caller.may(CALLS) and not caller.narrowed) or asked == caller.id:
        return asked
    if asked is not None and caller.narrowed:
        message = "the calls of others are those of all contexts, and your key is confined to some"
        raise Refused("SCOPE_DENIED", message, path="caller")
    if asked is not None:
        raise Refused("SCOPE_DENIED", f"the calls of others need the permission {CALLS}", path="caller")
    return caller.id


def _of_user(query: Mapping[str, str]) -> Mapping[str, str]:
    """Translate the parameter `user` into the caller id that calls for that user are recorded under."""
    user = text(query, "user")
    if user is None:
        return query
    if "caller" in query:
        raise refused("user", "and caller say the same in two ways; give one of them")
    return {"caller": f"user:{user}"}
