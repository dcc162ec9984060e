"""REST routes of API keys: listing, creation, rotation and revocation, with their authorization rules."""

from dataclasses import replace
from functools import partial

from toolcrib.admin import Admin
from toolcrib.admin.app_admin import APPS
from toolcrib.admin.key_admin import MAX_LISTED_KEYS, MAX_OVERLAP_SECONDS, read_moment, spell_key
from toolcrib.errors import Refused
from toolcrib.frontends.rest.fields import (
    count,
    flag,
    known_fields,
    limit_of,
    operation,
    query,
    required_text,
    text,
    texts,
)
from toolcrib.frontends.rest.operator_routes import ADMIN, KEYS
from toolcrib.http import HttpResponse, Request, Route, json_response
from toolcrib.interfaces import KeyRecord
from toolcrib.model import EVERY_CONTEXT, Actor, Caller, permits

KEY_FIELDS = ("name", "permissions", "contexts", "home", "actAs", "user", "expires")


class KeyRoutes:
    """Handlers of the key routes."""

    def __init__(self, console: Admin) -> None:
        self._console = console

    async def list(self, request: Request) -> HttpResponse:
        """Lists the API keys by name, without secrets; `next` is the cursor of the next page."""
        parameters = request.query("after", "limit")
        limit = count(parameters, "limit", default=MAX_LISTED_KEYS, maximum=MAX_LISTED_KEYS)
        page = await self._console.keys_after(text(parameters, "after") or "", limit)
        records = [spell_key(each) for each in page if _may_see(request, each)]
        more = {"next": page[-1].name} if len(page) == limit else {}
        return json_response({"keys": records, **more})

    async def create(self, request: Request) -> HttpResponse:
        """Creates an API key with at most the caller's privileges; it is returned only once."""
        fields = known_fields(await request.json(), *KEY_FIELDS)
        contexts, expires = texts(fields, "contexts"), fields.get("expires")
        wanted = KeyRecord(
            name=required_text(fields, "name"),
            digest="",
            permissions=frozenset(texts(fields, "permissions") or ()),
            contexts=None if contexts is None else frozenset(contexts),
            act_as=flag(fields, "actAs"),
            user=text(fields, "user"),
            expires=None if expires is None else read_moment(expires, "expires"),
        )
        lifetime = await self._lifetime(request.caller)
        if wanted.expires is None:
            wanted = replace(wanted, expires=lifetime)
        _check_within(request.caller, wanted, lifetime)
        made = await self._console.create_key(
            wanted.name,
            permissions=sorted(wanted.permissions),
            contexts=contexts,
            home=text(fields, "home") or _home(contexts),
            act_as=wanted.act_as,
            user=wanted.user,
            expires=wanted.expires,
            actor=request.actor,
        )
        return json_response(made, 201)

    async def rotate(self, request: Request) -> HttpResponse:
        """Replaces a key's secret; the old one is invalid at once, or after `overlapSeconds`."""
        overlap = await _overlap(request)
        name = request.params["name"]
        record = await self._console.key(name)
        if record is not None:
            _check_owner(request.actor, record)
            if name == request.caller.key:
                _check_newest_secret(request.caller)
            else:
                _check_within(request.caller, record, await self._lifetime(request.caller))
                _check_not_a_developers(request.caller, record.permissions)
        return json_response(await self._console.rotate_key(name, overlap=overlap, actor=request.actor))

    async def revoke(self, request: Request) -> HttpResponse:
        """Revokes an API key at once: one the caller created, or any with crib:admin."""
        name = request.params["name"]
        record = await self._console.key(name)
        if record is not None:
            _check_owner(request.actor, record)
            _check_contexts(request.caller, record.contexts)
        await self._console.revoke_key(name, actor=request.actor)
        return json_response({"name": name, "revoked": True})

    async def _lifetime(self, caller: Caller) -> float | None:
        """Return when the caller's secret expires; a key it creates must not outlive it."""
        if caller.retiring is not None:
            return caller.retiring
        own = None if caller.operator else await self._console.key(caller.key)
        return None if own is None else own.expires

    def routes(self) -> tuple[Route, ...]:
        """Return the routes of this class."""
        key = "/api/keys/{name}"
        page = [
            query("after", "keys after this name, in alphabetical order"),
            limit_of("keys", MAX_LISTED_KEYS),
        ]
        route = partial(Route, needs=KEYS)
        made, rotated = (
            operation("MadeKey", "201", body="NewKey"),
            operation("MadeKey", optional_body="Rotation"),
        )
        return (
            route("GET", "/api/keys", self.list, operation("Keys", parameters=page)),
            route("POST", "/api/keys", self.create, made, action="keys.create", fresh=True),
            route("DELETE", key, self.revoke, operation("Revoked"), action="keys.revoke"),
            route("POST", f"{key}/rotate", self.rotate, rotated, action="keys.rotate", fresh=True),
        )


def _home(contexts: tuple[str, ...] | None) -> str:
    if not contexts or "default" in contexts or EVERY_CONTEXT in contexts:
        return "default"
    return contexts[0]


async def _overlap(request: Request) -> float:
    """Return how many seconds the old secret stays valid; the body is optional."""
    if not request.has_body:
        return 0.0
    fields = known_fields(await request.json(), "overlapSeconds")
    seconds = fields.get("overlapSeconds")
    if seconds is None:
        return 0.0
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        message = f"overlapSeconds must be a number from 0 to {MAX_OVERLAP_SECONDS:.0f}"
        raise Refused("INVALID_REQUEST", message, path="overlapSeconds")
    return float(seconds)


def _denied(message: str, path: str) -> Refused:
    return Refused("SCOPE_DENIED", message, path=path)


def _may_see(request: Request, key: KeyRecord) -> bool:
    """Return whether a key is the caller's own, created by it, or within the contexts it is confined to."""
    caller = request.caller
    own = key.name == caller.key or key.created_by == Actor.of(caller, "rest").label
    return own or _reaches(caller, key.contexts)


def _reaches(caller: Caller, contexts: frozenset[str] | None) -> bool:
    """Return whether a caller may enter every context that a key may enter."""
    if not caller.narrowed:
        return True
    return contexts is not None and EVERY_CONTEXT not in contexts and all(map(caller.may_enter, contexts))


def _check_contexts(caller: Caller, contexts: frozenset[str] | None) -> None:
    if not _reaches(caller, contexts):
        raise _denied("this key has or would have contexts that yours does not", "contexts")


def _check_within(caller: Caller, key: KeyRecord, lifetime: float | None) -> None:
    """Refuse privilege escalation: a key with more privileges than the caller has, or a later expiry."""
    _check_contexts(caller, key.contexts)
    if lifetime is not None and (key.expires is None or key.expires > lifetime):
        raise _denied("this key is or would be valid for longer than yours", "expires")
    if caller.may(ADMIN) and not caller.narrowed:
        return  # it may rotate any key, and so has the privileges of all of them
    beyond = sorted(each for each in key.permissions if not caller.may(each))
    if beyond:
        message = f"this key has or would have the permissions {', '.join(beyond)}, which yours does not"
        raise _denied(message, "permissions")
    if key.act_as and not caller.act_as:
        raise _denied("this key may or would be allowed to act for others, which yours is not", "actAs")
    if key.user != caller.user and not caller.act_as:
        user = "no user" if caller.user is None else caller.user
        raise _denied(
            f"this key belongs or would belong to another user than yours, which acts for {user}", "user"
        )


def _check_owner(actor: Actor, key: KeyRecord) -> None:
    """Refuse to change a key that is neither the caller's own nor created by it, unless it is an admin."""
    caller = actor.caller
    if not caller.may(ADMIN) and key.name != caller.key and key.created_by != actor.label:
        message = (
            f"this key was created by {key.created_by or 'another key'}; a key with {KEYS} may change itself"
            f" and the keys it created, for others use a key with {ADMIN}"
        )
        raise _denied(message, "name")


def _check_not_a_developers(caller: Caller, permissions: frozenset[str]) -> None:
    """Refuse to rotate a developer's key without full admin rights: their apps belong to that key."""
    if (caller.narrowed or not caller.may(ADMIN)) and permits(permissions, APPS):
        message = (
            f"this is a developer's key, and it owns apps; rotating it needs the permission {ADMIN} "
            "and a key that is not confined to contexts"
        )
        raise _denied(message, "name")


def _check_newest_secret(caller: Caller) -> None:
    """Refuse a rotation with a secret that was already replaced: it would extend its own lifetime."""
    if caller.retiring is not None:
        message = (
            "this secret was replaced by a rotation and expires soon; rotate the key with the new secret"
        )
        raise _denied(message, "name")
