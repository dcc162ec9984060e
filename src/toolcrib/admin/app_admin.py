"""The developers' door: which apps there are, what they offer, and the keys they show."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from hmac import compare_digest
from secrets import token_urlsafe
from time import time
from typing import Any, cast

import anyio

from toolcrib.apps.definition import DefinitionFault, app_faults, requirements, stored, tool_faults, warnings
from toolcrib.apps.signature import digest, signing
from toolcrib.egress import AddressRules
from toolcrib.errors import Refused
from toolcrib.interfaces import AppRecord, ChangeSignal, RateDemand, Shared, Store
from toolcrib.model import Actor, AddressGiver, Caller, Json, JsonObject
from toolcrib.observe import Audit
from toolcrib.sessions import UserSessions

ADMIN, APPS = "crib:admin", "crib:apps"
"""`crib:apps` makes a developer, who has apps of their own; those of others are the admin's."""

MOST_APPS = 50
MOST_TOOLS = 2_000
"""What one developer may have, so that all of them find room in one catalog; the admin may have more."""
CHANGES = 100, 600.0
"""So many changes a developer makes in so many seconds."""

_PREFIX = "tcapp_"
"""What the log knows such a key by. Learning each would let developers crowd other secrets out."""


@dataclass(frozen=True, kw_only=True)
class AppAdmin:
    """Everything that is done about apps. Faces decide who is a developer, and this whose an app is."""

    store: Store
    shared: Shared
    refresh: Callable[[], Awaitable[None]]
    """Reads the apps again, and offers their tools."""
    find: Callable[[str], AppRecord | None]
    """Finds an app among those that are served."""
    sessions: UserSessions
    rules: AddressRules
    """Where apps may be, by who gives their address."""
    taken: Callable[[str], bool]
    """Whether another source has this id."""
    served: Callable[[], Sequence[AppRecord]]
    """All apps that are served."""
    room: Callable[[], int]
    """How many more tools the catalog takes."""
    audit: Audit
    _turn: anyio.Lock = field(default_factory=anyio.Lock, init=False, repr=False)

    def page(self, *, after: str = "", limit: int = 100) -> Sequence[AppRecord]:
        """Return apps by package, from the first after `after` on."""
        # Of those that are served: to read them all from the store takes long, and anybody may ask.
        found = sorted((app for app in self.served() if app.package > after), key=_package)
        return found[:limit]

    async def get(self, package: str) -> AppRecord:
        """Return an app; refuse where there is none."""
        app = await self.store.apps.get(package)
        if app is None:
            raise no_app(package)
        return app

    async def put(self, package: str, body: Json, actor: Actor) -> tuple[AppRecord, str | None]:
        """Store an app; a new one comes with its API key, which is shown this once."""
        async with self.audit.action(actor, "apps.update", package) as action:
            _refuse(f"{package[:200]} is not stored", (*_undotted(package), *app_faults(package, body)))
            await self._wait_their_turn(actor.caller)
            said = _said(cast("JsonObject", body))
            async with self._turn:
                before = await self.store.apps.get(package)
                action.before = None if before is None else _recorded(before)
                if before is not None:
                    _check_owner(before, actor.caller)
                url, giver = said["public_url"], self._giver(said["public_url"], actor.caller, before)
                _refuse(f"{package} is not stored", self._address_faults(url, giver))
                said["url_giver"] = giver
                if before is None:
                    app, key = await self._add(package, said, actor.caller)
                    action.applied()
                    action.after = _recorded(app)
                    await self._changed(package)
                    return app, key
                app = await self._change(replace(before, **said))
                action.applied()
                action.after = _recorded(app)
            await self._changed(package, ended=app.public_url != before.public_url)
            return app, None

    async def rotate(self, package: str, actor: Actor) -> str:
        """Put another API key in place of an app's; the old one ends at once, and so do its sockets."""
        async with self.audit.action(actor, "apps.rotate_key", package) as action:
            await self._wait_their_turn(actor.caller)
            key = _PREFIX + token_urlsafe(32)
            async with self._turn:
                app = await self.owned(package, actor.caller)
                await self._change(replace(app, digest=digest(key), signing=signing(key)))
                action.applied()
            await self._changed(package, ended=True)
            return key

    async def drop(self, package: str, actor: Actor) -> None:
        """Remove an app, for everybody who has installed it."""
        async with self.audit.action(actor, "apps.remove", package) as action:
            await self._wait_their_turn(actor.caller)
            async with self._turn:
                action.before = _recorded(await self.owned(package, actor.caller))
                if not await self.store.apps.drop(package):
                    raise no_app(package)
                action.applied()
            await self._changed(package, ended=True)
            # Whoever had it must not find it installed should somebody store another one under this name.
            self.shared.publish(ChangeSignal("users"))

    async def define(self, package: str, tools: Json, actor: Actor) -> JsonObject:
        """Replace an app's tools whole, or, where any has a fault, none of them."""
        async with self.audit.action(actor, "apps.define_tools", package) as action:
            await self._wait_their_turn(actor.caller)
            async with self._turn:
                app = await self.owned(package, actor.caller)
                action.before = _tools_of(app.version, [each.definition for each in app.tools])
                _refuse(f"the tools of {package} are not stored", tool_faults(tools))
                given = cast("list[JsonObject]", tools)
                crowded = self._crowded(app, len(given), actor.caller)
                _refuse(f"the tools of {package} are not stored", crowded)
                version = await self.store.apps.define(package, [stored(each) for each in given], time())
                if version is None:
                    raise no_app(package)
                action.applied()
                action.after = _tools_of(version, given)
                await self._changed(package)
            return {"packageName": package, **_tools_of(version, given), "warnings": oddities(app)}

    async def owned(self, package: str, caller: Caller) -> AppRecord:
        """Return an app that this caller may change."""
        app = await self.get(package)
        _check_owner(app, caller)
        return app

    def holder(self, package: str, key: str) -> AppRecord | None:
        """Return the app that shows its API key; None where it is not its key."""
        app = self.find(package)
        shown = digest(key)
        if app is None or app.digest is None or not compare_digest(app.digest, shown):
            return None
        return app

    def remarks(self) -> list[str]:
        """Name the apps whose stored address is refused, or would be if it were given now."""
        judged = ((app, self.rules.remark(app.public_url or "", app.url_giver)) for app in self.served())
        return [
            f"apps.{app.package}: its publicUrl {remark}"
            for app, remark in judged
            if app.public_url and remark
        ]

    async def _add(self, package: str, said: dict[str, Any], caller: Caller) -> tuple[AppRecord, str]:
        if self.taken(package):
            message = f"{package} is the id of another source of tools; choose another name"
            raise Refused("ALREADY_EXISTS", message, path="package")
        if len(self._all_of(caller.key)) >= MOST_APPS and not _is_admin(caller):
            too_many = f"is one too many: a developer has {MOST_APPS} apps at most"
            _refuse(f"{package} is not stored", [DefinitionFault("package", too_many)])
        key = _PREFIX + token_urlsafe(32)
        hashes = {"digest": digest(key), "signing": signing(key)}
        app = AppRecord(package=package, owner=caller.key, created=said["updated"], **hashes, **said)
        if not await self.store.apps.add(app):
            raise Refused("ALREADY_EXISTS", f"somebody has just stored {package}", path="package")
        return app, key

    async def _change(self, app: AppRecord) -> AppRecord:
        version = await self.store.apps.change(app)
        if version is None:
            raise no_app(app.package)
        return replace(app, version=version)

    async def _changed(self, package: str, *, ended: bool = False) -> None:
        """Serve what is stored now, and tell the others; an app that is `ended` must connect again."""
        await self.refresh()
        if ended:
            await self.sessions.forget(package)
        self.shared.publish(ChangeSignal("apps", package))

    async def _wait_their_turn(self, caller: Caller) -> None:
        """Bound how often a developer changes something: each time all apps are read again."""
        if _is_admin(caller):
            return
        wait = await self.shared.take((RateDemand(f"key:{caller.key}:apps", *CHANGES),))
        if wait > 0:
            message = f"too many changes of apps with this key; try again in {wait:.1f} s"
            raise Refused("RATE_LIMITED", message, retry_after=wait)

    def _all_of(self, owner: str) -> Sequence[AppRecord]:
        return [app for app in self.served() if app.owner == owner]

    def _crowded(self, app: AppRecord, count: int, caller: Caller) -> Sequence[DefinitionFault]:
        """Say why there is no room for an app's tools: not in the catalog, or not for one developer."""
        more = count - len(app.tools)
        if more > max(0, self.room()):
            return (
                DefinitionFault("tools", "do not all fit: the catalog is full; the operator must make room"),
            )
        others = sum(len(each.tools) for each in self._all_of(app.owner) if each.package != app.package)
        if more > 0 and others + count > MOST_TOOLS and not _is_admin(caller):
            return (
                DefinitionFault(
                    "tools", f"are too many: a developer has {MOST_TOOLS:,} at most, in all apps"
                ),
            )
        return ()

    def _giver(self, url: str | None, caller: Caller, before: AppRecord | None) -> AddressGiver | None:
        """Decide who is recorded as the giver of an app's address: of one that stays, who gave it first."""
        if url is None:
            return None
        if before is None or url != before.public_url:
            return caller.giver
        # Only for an address that shows what it is: a name may lead elsewhere by tomorrow, and whoever
        # else gave it must not gain by the operator's changing something else about the app.
        return "operator" if caller.operator and self.rules.needs_operator(url) else before.url_giver

    def _address_faults(self, url: str | None, giver: AddressGiver | None) -> Sequence[DefinitionFault]:
        """Say why the gateway must not connect to where an app says it is."""
        reason = None if url is None else self.rules.refusal(url, giver)
        return () if reason is None else (DefinitionFault("publicUrl", f"cannot be used: {reason}"),)


def spell_app(app: AppRecord, caller: Caller) -> JsonObject:
    """Spell an app: all but its secrets for those who may change it, for others what users see."""
    public: JsonObject = {
        "packageName": app.package,
        "name": app.name,
        "appType": app.app_type,
        "hardwareRequirements": [each.as_json() for each in app.hardware],
        "permissions": list(app.permissions),
        "version": app.version,
        "tools": _names([each.definition for each in app.tools]),
    }
    if not may_change(app, caller):
        return public
    inside = {"owner": app.owner, "publicUrl": app.public_url, "created": app.created, "updated": app.updated}
    return {**public, **inside, "warnings": oddities(app)}


def _recorded(app: AppRecord) -> JsonObject:
    """Return what the audit keeps of an app: its address without what may be a token."""
    return {
        "name": app.name,
        "owner": app.owner,
        "publicUrl": None if app.public_url is None else app.public_url.partition("?")[0],
        "appType": app.app_type,
        "hardwareRequirements": [each.as_json() for each in app.hardware],
        "permissions": list(app.permissions),
        "version": app.version,
    }


def _tools_of(version: int, definitions: Iterable[JsonObject]) -> JsonObject:
    return {"version": version, "tools": _names(definitions)}


def oddities(app: AppRecord) -> list[str]:
    """Say what is odd about an app."""
    return list(warnings({"hardwareRequirements": [each.as_json() for each in app.hardware]}))


def may_change(app: AppRecord, caller: Caller) -> bool:
    """Whether an app is this caller's own, or everything is."""
    return _is_admin(caller) or (app.owner == caller.key and caller.may(APPS))


def _is_admin(caller: Caller) -> bool:
    """Whether a caller is no developer like others: an admin key that is confined to contexts is one."""
    return caller.may(ADMIN) and not caller.narrowed


def no_app(package: str) -> Refused:
    """Make the refusal of an app that is not there."""
    return Refused("NOT_FOUND", f"there is no app {package[:200]}", path="package")


def _undotted(package: str) -> Sequence[DefinitionFault]:
    """Ask for words with dots between them."""
    # In one word operators name their sources; and a dot too many is a name that looks like another's.
    said = "must be a domain turned round, such as com.example.notes"
    words = package.split(".")
    return () if len(words) > 1 and all(words) else (DefinitionFault("package", said),)


def _check_owner(app: AppRecord, caller: Caller) -> None:
    if not may_change(app, caller):
        message = f"{app.package} is another developer's app; to change it takes the permission {ADMIN}"
        raise Refused("SCOPE_DENIED", message, path="package")


def _refuse(what: str, faults: Sequence[DefinitionFault]) -> None:
    if not faults:
        return
    first, more = faults[0], len(faults) - 1
    rest = f", and {more} more, all in error.details" if more else ""
    message = f"{what}: {first.path} {first.message}{rest}"
    told = {"faults": [each.as_json() for each in faults]}
    raise Refused("INVALID_REQUEST", message, path=first.path, details=told)


def _said(body: JsonObject) -> dict[str, Any]:
    """Return what a body without faults says of an app, as the record has it."""
    url = body.get("publicUrl")
    return {
        "name": body["name"],
        "public_url": None if url is None else url.rstrip("/"),
        "app_type": body.get("appType") or "background",
        "hardware": requirements(body),
        "permissions": tuple(body.get("permissions") or ()),
        "updated": time(),
    }


def _names(definitions: Iterable[JsonObject]) -> list[str]:
    return [str(each.get("name") or each.get("id")) for each in definitions]


def _package(app: AppRecord) -> str:
    return app.package
