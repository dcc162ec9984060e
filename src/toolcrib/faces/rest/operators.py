"""What happened, how much, why, and who holds keys: one's own for every caller, all of it for operators."""

from collections.abc import Mapping, Sequence
from typing import Any

from toolcrib.asgi import Answer, Request, json_answer
from toolcrib.console import Console
from toolcrib.console.apps import APPS
from toolcrib.errors import Refused
from toolcrib.faces.rest.fields import count, day, flag, moment, needed, only, refused, text, texts
from toolcrib.identity import Identity
from toolcrib.model import Caller, permits

ADMIN, KEYS, CALLS, EXPLAIN, STATUS = "crib:admin", "crib:keys", "crib:calls", "crib:explain", "crib:status"
"""Roles are permissions: `crib:admin` opens every route, each of the others what its name says."""

MOST_CALLS = 1000
KEY_FIELDS = ("name", "permissions", "contexts", "home", "actAs", "user")


class Operators:
    """Answers for the console's door."""

    def __init__(self, console: Console, identity: Identity) -> None:
        self._console, self._identity = console, identity

    async def status(self, request: Request) -> Answer:
        """Say what runs."""
        request.query()
        return json_answer(self._console.status())

    async def calls(self, request: Request) -> Answer:
        """List the last calls."""
        query = request.query("limit", "tool", "caller", "before")
        limit = count(query, "limit", default=100, most=MOST_CALLS)
        about, before = _about(request.caller, query), moment(query, "before")
        rows = await self._console.calls(limit=limit, tool=text(query, "tool"), caller=about, before=before)
        return json_answer({"calls": rows})

    async def usage(self, request: Request) -> Answer:
        """Count calls per tool."""
        query = request.query("since", "tool", "app", "caller", "user")
        about = _about(request.caller, _of_user(query))
        usage = await self._console.usage(
            since=day(query, "since"), tool=text(query, "tool"), app=text(query, "app"), caller=about
        )
        return json_answer(usage)

    async def explain(self, request: Request) -> Answer:
        """Say why a tool is or is not there."""
        query = request.query("name", "context", "user")
        caller = request.caller
        if "user" in query:
            acting = self._identity.acting_for(request.caller, query["user"])
            caller = await self._identity.people.present(acting)
        caller = self._console.gateway.enter(caller, text(query, "context"))
        everything = request.caller.may(EXPLAIN)
        return json_answer(self._console.explain(needed(query, "name"), caller, everything=everything))

    async def keys(self, request: Request) -> Answer:
        """List the keys, without the keys themselves."""
        request.query()
        return json_answer({"keys": await self._console.keys()})

    async def create_key(self, request: Request) -> Answer:
        """Make a key within the maker's own reach."""
        fields = only(await request.json(), *KEY_FIELDS)
        permissions, contexts = texts(fields, "permissions") or (), texts(fields, "contexts")
        home, act_as = text(fields, "home") or _home(contexts), flag(fields, "actAs")
        user = text(fields, "user")
        _within(request.caller, permissions, contexts, act_as=act_as, user=user)
        made = await self._console.create_key(
            needed(fields, "name"),
            permissions=permissions,
            contexts=contexts,
            home=home,
            act_as=act_as,
            user=user,
        )
        return json_answer(made, 201)

    async def rotate_key(self, request: Request) -> Answer:
        """Put another key in place of one."""
        name = await self._reachable(request, anew=True)
        return json_answer(await self._console.rotate_key(name))

    async def revoke_key(self, request: Request) -> Answer:
        """End a key."""
        name = await self._reachable(request)
        await self._console.revoke_key(name)
        return json_answer({"name": name, "revoked": True})

    async def _reachable(self, request: Request, *, anew: bool = False) -> str:
        """Return the name of the key a request is about; one that may do more than the caller is refused."""
        name, caller = request.params["name"], request.caller
        for key in await self._console.keys():
            if key["name"] == name:
                reach = (key["permissions"], key["contexts"])
                _within(caller, *reach, act_as=key["actAs"], user=key["user"])
                if anew and name != caller.key:
                    _not_a_developers(caller, key["permissions"])
        return name


def _home(contexts: tuple[str, ...] | None) -> str:
    return contexts[0] if contexts and "default" not in contexts else "default"


def _about(caller: Caller, query: Mapping[str, str]) -> str | None:
    """Return whose calls are asked for: all or anyone's for operators, for others their own."""
    asked = text(query, "caller")
    if caller.may(CALLS) or asked == caller.id:
        return asked
    if asked is not None:
        raise Refused("SCOPE_DENIED", f"the calls of others need the permission {CALLS}", path="caller")
    return caller.id


def _of_user(query: Mapping[str, str]) -> Mapping[str, str]:
    """Read a user as the caller that the calls made for them are counted under."""
    user = text(query, "user")
    if user is None:
        return query
    if "caller" in query:
        raise refused("user", "and caller say the same in two ways; give one of them")
    return {"caller": f"user:{user}"}


def _not_a_developers(caller: Caller, permissions: Sequence[str]) -> None:
    """Refuse to hand out the key of a developer: their apps belong to whoever has it."""
    if not caller.may(ADMIN) and permits(frozenset(permissions), APPS):
        message = f"this is a developer's key, and their apps go with it; it takes the permission {ADMIN}"
        raise Refused("SCOPE_DENIED", message, path="name")


def _within(caller: Caller, permissions: Any, contexts: Any, *, act_as: bool, user: str | None) -> None:
    """Refuse to hand out more than the caller has."""
    if caller.may(ADMIN):
        return
    beyond = [each for each in permissions if not caller.may(each)]
    if beyond:
        message = f"this key holds or would hold {', '.join(beyond)}, which yours does not"
        raise Refused("SCOPE_DENIED", message, path="permissions")
    reach = None if caller.contexts is None else {caller.context, *caller.contexts}
    if reach is not None and (contexts is None or not {*contexts} <= reach):
        message = "this key reaches or would reach contexts that yours does not"
        raise Refused("SCOPE_DENIED", message, path="contexts")
    if act_as and not caller.act_as:
        message = "this key may or would act for others, which yours may not"
        raise Refused("SCOPE_DENIED", message, path="actAs")
    if user not in (None, caller.user) and not caller.act_as:
        message = "this key is or would be a user's own, and yours may not act for them"
        raise Refused("SCOPE_DENIED", message, path="user")
