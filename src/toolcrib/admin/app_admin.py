"""Operations for developers on mini-apps: register, update, publish tools, and store data per user."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hmac import compare_digest
from operator import attrgetter
from secrets import token_urlsafe
from time import time
from typing import Any, cast

import anyio

from toolcrib.apps.definition import (
    DefinitionFault,
    app_faults,
    requirements,
    stored_tool,
    tool_faults,
    warnings,
)
from toolcrib.apps.signature import key_digest, signing_secret
from toolcrib.egress import AddressRules
from toolcrib.errors import Refused
from toolcrib.interfaces import AppData, AppRecord, ChangeSignal, RateDemand, Shared, Store
from toolcrib.model import Actor, AddressGiver, Caller, Json, JsonObject
from toolcrib.observe import Audit
from toolcrib.sessions import UserSessions

# --- Key-value storage of apps per user: text values, limited in size, deleted with the app ---

MAX_DATA_KEY_CHARS = 200
MAX_DATA_VALUE_CHARS = 100_000
"""Maximum characters of one value, as in the apps' SDKs."""
MAX_DATA_BYTES = 1 << 20
"""Maximum bytes of all keys and values of one app for one user."""
MAX_DATA_KEYS = 10_000
"""Maximum number of keys of one app for one user: each is a row, however small."""


@dataclass(frozen=True)
class AppStorage:
    """The storage operations; the caller has authenticated the app."""

    data: AppData
    _turn: anyio.Lock = field(default_factory=anyio.Lock, init=False, repr=False)
    """Makes the size check and the write atomic: concurrent writes must not exceed the limit together."""

    async def all(self, package: str, user: str) -> Mapping[str, str]:
        """Return all values of an app for a user."""
        return await self.data.all(package, user)

    async def put(self, package: str, user: str, values: Mapping[str, str]) -> None:
        """Add or replace values; if any is invalid or a limit is exceeded, none is stored."""
        for key, value in values.items():
            _check(key, value)
        async with self._turn:
            data = {**await self.data.all(package, user), **values}
            size = sum(len(key.encode()) + len(value.encode()) for key, value in data.items())
            if size > MAX_DATA_BYTES:
                message = (
                    f"{package} would keep {size:,} bytes for this user, the limit is {MAX_DATA_BYTES:,}"
                )
                raise Refused("PAYLOAD_TOO_LARGE", message, path="data")
            if len(data) > MAX_DATA_KEYS:
                message = (
                    f"{package} would keep {len(data):,} keys for this user, the limit is {MAX_DATA_KEYS:,}"
                )
                raise Refused("PAYLOAD_TOO_LARGE", message, path="data")
            if not await self.data.put(package, user, values):
                message = f"this user has not installed {package}, so nothing is kept for them"
                raise Refused("NOT_FOUND", message, path="user")

    async def drop(self, package: str, user: str, key: str | None = None) -> int:
        """Delete one key, or all; return how many were deleted."""
        return await self.data.drop(package, user, None if key is None else [key])


def _check(key: str, value: str) -> None:
    if not key or len(key) > MAX_DATA_KEY_CHARS or not key.isprintable():
        message = f"a key has 1 to {MAX_DATA_KEY_CHARS} printable characters"
        raise Refused("INVALID_REQUEST", message, path="data")
    if len(value) > MAX_DATA_VALUE_CHARS:
        message = f"the value of {key} has {len(value):,} characters, the limit is {MAX_DATA_VALUE_CHARS:,}"
        raise Refused("PAYLOAD_TOO_LARGE", message, path=f"data.{key}")


# --- The developers' part of the admin API: registration of apps, their tools and API keys ---

ADMIN, APPS = "crib:admin", "crib:apps"
"""`crib:apps` makes a developer, who manages their own apps; an admin manages all."""

MAX_DEVELOPER_APPS = 50
MAX_DEVELOPER_TOOLS = 2_000
"""Apps and tools of one developer, so that all developers fit into one catalog; not for admins."""
DEVELOPER_CHANGE_RATE = 100, 600.0
"""Rate limit of one developer: changes, and the seconds of the window."""

_APP_KEY_PREFIX = "tcapp_"
"""Prefix by which logs redact these keys. Registering each one would let developers evict other secrets."""


@dataclass(frozen=True, kw_only=True)
class AppAdmin:
    """Manages apps. Frontends decide who is a developer; this class checks who owns an app."""

    store: Store
    shared: Shared
    refresh: Callable[[], Awaitable[None]]
    """Reloads the apps from the store and publishes their tools."""
    find: Callable[[str], AppRecord | None]
    """Looks up an app among those that are served."""
    sessions: UserSessions
    rules: AddressRules
    """Which addresses apps may have, depending on who registered the address."""
    taken: Callable[[str], bool]
    """Returns whether another source has this id."""
    served: Callable[[], Sequence[AppRecord]]
    """Returns all apps that are served."""
    room: Callable[[], int]
    """Returns how many more tools the catalog accepts."""
    audit: Audit
    _turn: anyio.Lock = field(default_factory=anyio.Lock, init=False, repr=False)

    def page(self, *, after: str = "", limit: int = 100) -> Sequence[AppRecord]:
        """Return a page of apps in order of package, after the package `after`."""
        # From memory: reading all apps from the store is slow, and any caller may list them.
        found = sorted((app for app in self.served() if app.package > after), key=attrgetter("package"))
        return found[:limit]

    async def get(self, package: str) -> AppRecord:
        """Return an app; refuse if it does not exist."""
        app = await self.store.apps.get(package)
        if app is None:
            raise no_app(package)
        return app

    async def put(self, package: str, body: Json, actor: Actor) -> tuple[AppRecord, str | None]:
        """Store an app; return a new one with its API key, which cannot be read again."""
        async with self.audit.action(actor, "apps.update", package) as action:
            _refuse(f"{package[:200]} is not stored", (*_undotted(package), *app_faults(package, body)))
            await self._wait_their_turn(actor.caller)
            fields = _record_fields(cast("JsonObject", body))
            async with self._turn:
                before = await self.store.apps.get(package)
                action.before = None if before is None else _recorded(before)
                if before is not None:
                    _check_owner(before, actor.caller)
                url, giver = (
                    fields["public_url"],
                    self._giver(fields["public_url"], actor.caller, before),
                )
                _refuse(f"{package} is not stored", self._address_faults(url, giver))
                fields["url_giver"] = giver
                if before is None:
                    app, key = await self._add(package, fields, actor.caller)
                    action.applied()
                    action.after = _recorded(app)
                    await self._changed(package)
                    return app, key
                app = await self._change(replace(before, **fields))
                action.applied()
                action.after = _recorded(app)
            await self._changed(package, ended=app.public_url != before.public_url)
            return app, None

    async def rotate(self, package: str, actor: Actor) -> str:
        """Replace an app's API key; the old one and the app's connections end at once."""
        async with self.audit.action(actor, "apps.rotate_key", package) as action:
            await self._wait_their_turn(actor.caller)
            key = _APP_KEY_PREFIX + token_urlsafe(32)
            async with self._turn:
                app = await self.owned(package, actor.caller)
                await self._change(replace(app, digest=key_digest(key), signing=signing_secret(key)))
                action.applied()
            await self._changed(package, ended=True)
            return key

    async def drop(self, package: str, actor: Actor) -> None:
        """Remove an app, also for every user who has installed it."""
        async with self.audit.action(actor, "apps.remove", package) as action:
            await self._wait_their_turn(actor.caller)
            async with self._turn:
                action.before = _recorded(await self.owned(package, actor.caller))
                if not await self.store.apps.drop(package):
                    raise no_app(package)
                action.applied()
            await self._changed(package, ended=True)
            # Otherwise a later app of this package would already be installed for the users of this one.
            self.shared.publish(ChangeSignal("users"))

    async def define(self, package: str, tools: Json, actor: Actor) -> JsonObject:
        """Replace all tools of an app; if any is invalid, none is stored."""
        async with self.audit.action(actor, "apps.define_tools", package) as action:
            await self._wait_their_turn(actor.caller)
            async with self._turn:
                app = await self.owned(package, actor.caller)
                action.before = _tools_of(app.version, [each.definition for each in app.tools])
                _refuse(f"the tools of {package} are not stored", tool_faults(tools))
                definitions = cast("list[JsonObject]", tools)
                crowded = self._crowded(app, len(definitions), actor.caller)
                _refuse(f"the tools of {package} are not stored", crowded)
                version = await self.store.apps.define(
                    package, [stored_tool(each) for each in definitions], time()
                )
                if version is None:
                    raise no_app(package)
                action.applied()
                action.after = _tools_of(version, definitions)
                await self._changed(package)
            return {"packageName": package, **_tools_of(version, definitions), "warnings": oddities(app)}

    async def owned(self, package: str, caller: Caller) -> AppRecord:
        """Return an app that this caller may change; refuse otherwise."""
        app = await self.get(package)
        _check_owner(app, caller)
        return app

    def holder(self, package: str, key: str) -> AppRecord | None:
        """Return the app if this is its API key; None otherwise."""
        app = self.find(package)
        digest = key_digest(key)
        if app is None or app.digest is None or not compare_digest(app.digest, digest):
            return None
        return app

    def remarks(self) -> list[str]:
        """Return a warning for each app with an address that is refused, or would be if registered now."""
        judged = ((app, self.rules.remark(app.public_url or "", app.url_giver)) for app in self.served())
        return [
            f"apps.{app.package}: its publicUrl {remark}"
            for app, remark in judged
            if app.public_url and remark
        ]

    async def _add(self, package: str, values: dict[str, Any], caller: Caller) -> tuple[AppRecord, str]:
        if self.taken(package):
            message = f"{package} is the id of another source of tools; choose another name"
            raise Refused("ALREADY_EXISTS", message, path="package")
        if len(self._all_of(caller.key)) >= MAX_DEVELOPER_APPS and not _is_admin(caller):
            too_many = f"is one too many: a developer has {MAX_DEVELOPER_APPS} apps at most"
            _refuse(f"{package} is not stored", [DefinitionFault("package", too_many)])
        key = _APP_KEY_PREFIX + token_urlsafe(32)
        hashes = {"digest": key_digest(key), "signing": signing_secret(key)}
        app = AppRecord(package=package, owner=caller.key, created=values["updated"], **hashes, **values)
        if not await self.store.apps.add(app):
            raise Refused(
                "ALREADY_EXISTS", f"{package} was registered by a concurrent request", path="package"
            )
        return app, key

    async def _change(self, app: AppRecord) -> AppRecord:
        version = await self.store.apps.change(app)
        if version is None:
            raise no_app(app.package)
        return replace(app, version=version)

    async def _changed(self, package: str, *, ended: bool = False) -> None:
        """Reload the apps and notify other replicas; with `ended`, the app must reconnect."""
        await self.refresh()
        if ended:
            await self.sessions.forget(package)
        self.shared.publish(ChangeSignal("apps", package))

    async def _wait_their_turn(self, caller: Caller) -> None:
        """Apply the rate limit of a developer: each change reloads all apps."""
        if _is_admin(caller):
            return
        wait = await self.shared.take((RateDemand(f"key:{caller.key}:apps", *DEVELOPER_CHANGE_RATE),))
        if wait > 0:
            message = f"too many changes of apps with this key; try again in {wait:.1f} s"
            raise Refused("RATE_LIMITED", message, retry_after=wait)

    def _all_of(self, owner: str) -> Sequence[AppRecord]:
        return [app for app in self.served() if app.owner == owner]

    def _crowded(self, app: AppRecord, count: int, caller: Caller) -> Sequence[DefinitionFault]:
        """Return the fault if an app's tools exceed the catalog's capacity or the developer's limit."""
        more = count - len(app.tools)
        if more > max(0, self.room()):
            return (
                DefinitionFault("tools", "do not all fit: the catalog is full; the operator must make room"),
            )
        others = sum(len(each.tools) for each in self._all_of(app.owner) if each.package != app.package)
        if more > 0 and others + count > MAX_DEVELOPER_TOOLS and not _is_admin(caller):
            return (
                DefinitionFault(
                    "tools", f"are too many: a developer has {MAX_DEVELOPER_TOOLS:,} at most, in all apps"
                ),
            )
        return ()

    def _giver(self, url: str | None, caller: Caller, before: AppRecord | None) -> AddressGiver | None:
        """Return who is recorded as the giver of an app's address; an unchanged address retains its giver."""
        if url is None:
            return None
        if before is None or url != before.public_url:
            return caller.giver
        # Only for a literal address: a host name may resolve to another one tomorrow, and the key that gave
        # it must not gain the operator's rights because the operator changes something else about the app.
        return "operator" if caller.operator and self.rules.needs_operator(url) else before.url_giver

    def _address_faults(self, url: str | None, giver: AddressGiver | None) -> Sequence[DefinitionFault]:
        """Return the fault if the gateway must not connect to an app's address."""
        reason = None if url is None else self.rules.refusal(url, giver)
        return () if reason is None else (DefinitionFault("publicUrl", f"cannot be used: {reason}"),)


def spell_app(app: AppRecord, caller: Caller) -> JsonObject:
    """Serialize an app: in full except secrets for those who may change it, for others what users see."""
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
    """Return the audit record of an app; its URL without the query, which may contain a token."""
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
    """Return warnings about an app."""
    return list(warnings({"hardwareRequirements": [each.as_json() for each in app.hardware]}))


def may_change(app: AppRecord, caller: Caller) -> bool:
    """Return whether a caller may change an app: as its owner, or as an admin."""
    return _is_admin(caller) or (app.owner == caller.key and caller.may(APPS))


def _is_admin(caller: Caller) -> bool:
    """Return whether a caller is an admin; an admin key confined to contexts counts as a developer's."""
    return caller.may(ADMIN) and not caller.narrowed


def no_app(package: str) -> Refused:
    """Return the error for an app that does not exist."""
    return Refused("NOT_FOUND", f"there is no app {package[:200]}", path="package")


def _undotted(package: str) -> Sequence[DefinitionFault]:
    """Return the fault of a package name that is not two or more words joined by dots."""
    # Single words are names of the operator's sources, and an extra dot would imitate another package.
    words = package.split(".")
    if len(words) > 1 and all(words):
        return ()
    return (DefinitionFault("package", "must be a domain turned round, such as com.example.notes"),)


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
    details = {"faults": [each.as_json() for each in faults]}
    raise Refused("INVALID_REQUEST", message, path=first.path, details=details)


def _record_fields(body: JsonObject) -> dict[str, Any]:
    """Convert a valid body into the fields of an app record."""
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
