"""The user management of the admin API: installed apps, disabled tools, sessions and running apps."""

import re
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from time import time
from typing import Any
from urllib.parse import quote
from uuid import uuid4
from zoneinfo import ZoneInfo

from toolcrib.admin.app_admin import no_app
from toolcrib.apps.hardware import InvalidDevice, check_compatibility, parse_device
from toolcrib.errors import Refused
from toolcrib.identity import MAX_USER_CHARS, check_user
from toolcrib.interfaces import (
    AppRecord,
    ChangeSignal,
    InstallRecord,
    RateDemand,
    SessionRecord,
    Shared,
    Store,
    UserRecord,
)
from toolcrib.model import LIBRARY, SYSTEM, Actor, Caller, Device, Json, JsonObject, Tool
from toolcrib.observe import Audit
from toolcrib.policy import Policy
from toolcrib.sessions import UserEvent, UserSessions

MAX_SETTINGS_BYTES = 64 << 10
"""Maximum bytes of a user's settings in one app."""
APP_START_RATE = 30, 60.0
"""Rate limit of one user: app starts, and the seconds of the window. Starts by calls count as calls."""
LANGUAGE = r"[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8}){0,4}"
"""A language tag (BCP 47), as a regular expression."""
_LANGUAGE = re.compile(LANGUAGE)


@dataclass(frozen=True, kw_only=True)
class UserAdmin:
    """Manages users. Frontends authorize the caller."""

    store: Store
    shared: Shared
    sessions: UserSessions
    find: Callable[[str], AppRecord | None]
    """Looks up an app among those that are served."""
    named: Callable[[str], Sequence[Tool]]
    """Returns all tools that a name can refer to, regardless of who may see them."""
    policy: Policy
    audit: Audit
    phone_microphone: bool = True
    use: Callable[[str], None] = lambda _: None
    """Records that a user is active."""

    async def page(self, *, after: str = "", limit: int = 100) -> list[JsonObject]:
        """Return a page of users in order of id, after the id `after`."""
        return [_listed(user) for user in await self.store.users.page(after=after, limit=limit)]

    async def get(self, id: str) -> JsonObject:
        """Return one user in full."""
        return self._user_payload(await self._known(id))

    async def put(
        self, id: str, *, language: str | None, time_zone: str | None, actor: Actor = LIBRARY
    ) -> JsonObject:
        """Create or update a user."""
        async with self.audit.action(actor, "users.update", id) as action:
            _check(id, language, time_zone)
            action.before = await self._recorded(id)
            await self.store.users.put(id, language=language, time_zone=time_zone, at=time())
            action.applied()
            action.after = {"language": language, "timeZone": time_zone}
            self._changed(id)
            return await self.get(id)

    async def drop(self, id: str, *, actor: Actor = LIBRARY) -> None:
        """Remove a user and all their data."""
        async with self.audit.action(actor, "users.remove", id) as action:
            action.before = await self._recorded(id)
            if not await self.store.users.drop(id):
                raise _no_user(id)
            action.applied()
            await self.sessions.end(id)
            self._changed(id)

    # --- apps ---

    async def install(
        self, id: str, package: str, settings: JsonObject | None, *, actor: Actor = LIBRARY
    ) -> tuple[JsonObject, bool]:
        """Install an app for a user, or change its settings; also return whether it is a new installation."""
        async with self.audit.action(actor, "users.install", f"{id}/{package}") as action:
            _check(id)
            before = await self._settings(id, package)
            action.before = None if before is None else {"settings": sorted(before)}
            new_settings = (before or {}) if settings is None else settings
            new = await self.store.users.install(
                id, InstallRecord(package=package, at=time(), settings=new_settings)
            )
            if new is None:
                raise no_app(package)
            action.applied()
            # Only names: values are the user's own, and some are secrets.
            action.after = {"settings": sorted(new_settings)}
            if settings is not None and not new:
                self.sessions.configure(id, package, settings)
            self._changed(id)
            user = await self._known(id)
            return self._app(user, _installed(user, package), _session_device(user)), new

    async def uninstall(self, id: str, package: str, *, actor: Actor = LIBRARY) -> None:
        """Uninstall an app of a user and stop it."""
        async with self.audit.action(actor, "users.uninstall", f"{id}/{package}") as action:
            if not await self.store.users.uninstall(id, package):
                raise _not_installed(id, package)
            action.applied()
            self._changed(id)
            await self.sessions.stop(id, package)

    async def start(self, id: str, package: str, *, actor: Actor = LIBRARY) -> JsonObject:
        """Start an app for a user with a session, and wait until it runs."""
        async with self.audit.action(actor, "users.start_app", f"{id}/{package}") as action:
            user = await self._known(id)
            _installed(user, package)
            if user.session is None:
                raise _no_session(id)
            if package in user.disabled:
                message = f"{id} has switched {package} off; switch it on first"
                raise Refused("INVALID_REQUEST", message, path="package")
            await self._wait_their_turn(id)
            self.use(id)
            action.before = self._state(id, package)
            await self.sessions.start(id, package)
            action.after = self._state(id, package)
            return {"packageName": package, **self._state(id, package)}

    async def _wait_their_turn(self, id: str) -> None:
        """Apply the rate limit of app starts: each sends a request to an address that a developer chose."""
        wait = await self.shared.take((RateDemand(f"user:{id}:starts", *APP_START_RATE),))
        if wait > 0:
            message = f"{id[:MAX_USER_CHARS]} has started too many apps; try again in {wait:.1f} s"
            raise Refused("RATE_LIMITED", message, retry_after=wait)

    async def stop(self, id: str, package: str, *, actor: Actor = LIBRARY) -> JsonObject:
        """Stop an app of a user; the result reports whether it was running."""
        async with self.audit.action(actor, "users.stop_app", f"{id}/{package}") as action:
            _installed(await self._known(id), package)
            action.before = self._state(id, package)
            stopped = await self.sessions.stop(id, package)
            action.after = self._state(id, package)
            return {"packageName": package, "stopped": stopped, **self._state(id, package)}

    # --- disabled tools and apps ---

    async def disable(self, id: str, name: str, actor: Actor) -> str:
        """Disable a tool by any of its names, or an app, which is stopped; return the name that is stored."""
        async with self.audit.action(actor, "users.disable", f"{id}/{name}") as action:
            _check(id)
            user = await self.store.users.get(id) or UserRecord(id=id)
            target = self._disabled_name(user, name, actor.caller)
            action.target = f"{id}/{target}"
            action.before, action.after = {"disabled": target in user.disabled}, {"disabled": True}
            await self.store.users.disable(id, target)
            action.applied()
            self._changed(id)
            if ":" not in target:
                await self.sessions.stop(id, target)
            return target

    async def enable(self, id: str, name: str, actor: Actor) -> str:
        """Enable a tool or an app again; return the name that was stored."""
        async with self.audit.action(actor, "users.enable", f"{id}/{name}") as action:
            user = await self._known(id)
            target = name if name in user.disabled else self._disabled_name(user, name, actor.caller)
            action.target = f"{id}/{target}"
            action.before, action.after = {"disabled": target in user.disabled}, {"disabled": False}
            await self.store.users.enable(id, target)
            action.applied()
            self._changed(id)
            return target

    def _disabled_name(self, user: UserRecord, name: str, caller: Caller) -> str:
        if self.find(name) is not None:
            return name
        apps = frozenset(each.package for each in user.installs)
        viewer = replace(caller, disabled=frozenset(), apps=apps, device=None)
        tool = self.policy.owner(self.named(name), viewer)
        if tool is not None and self.policy.visible(tool, viewer):
            return tool.name
        message = f"there is no tool {name[:200]}, and no app of that name"
        raise Refused("TOOL_NOT_FOUND", message, path="name")

    # --- the session ---

    async def begin(
        self, id: str, *, worn: Json, language: str | None, time_zone: str | None, actor: Actor = LIBRARY
    ) -> JsonObject:
        """Start or change a user's session. An omitted device is removed; the rest defaults to the user's."""
        async with self.audit.action(actor, "users.begin_session", id) as action:
            _check(id, language, time_zone)
            device = None if worn is None else _device(worn)
            user = await self.store.users.get(id)
            action.before = None if user is None else _session_recorded(user.session)
            new_session = SessionRecord(
                user=id,
                id=str(uuid4()),
                device=None if device is None else device.capabilities,
                language=language or (None if user is None else user.language),
                time_zone=time_zone or (None if user is None else user.time_zone),
                started=time(),
                used=self.store.clock.now(),
            )
            session = await self.store.users.begin(new_session)
            action.applied()
            action.after = _session_recorded(session)
            self._changed(id)
            self.sessions.begin(session, device)
            return spell_session(session)

    async def session(self, id: str) -> JsonObject:
        """Return a user's session."""
        user = await self.store.users.get(id)
        if user is None or user.session is None:
            raise Refused("NOT_FOUND", f"{id[:MAX_USER_CHARS]} has no session", path="id")
        return spell_session(user.session)

    async def end(self, id: str, *, unused_since: float | None = None, actor: Actor = LIBRARY) -> str:
        """End a user's session and every app that runs in it; return the session's id.

        With `unused_since`, only if it was not used since that time.
        """
        async with self.audit.action(actor, "users.end_session", id) as action:
            ended = await self.store.users.end(id, unused_since=unused_since)
            if ended is None:
                raise Refused("NOT_FOUND", f"{id[:MAX_USER_CHARS]} has no session", path="id")
            action.applied()
            action.before = _session_recorded(ended)
            action.after = None if unused_since is None else {"reason": "unused"}
            self._changed(id)
            await self.sessions.end(id)
            return ended.id

    async def end_unused(self, id: str, since: float) -> None:
        """End a user's session if it was not used since a time."""
        await self.end(id, unused_since=since, actor=SYSTEM)

    async def transcribe(self, id: str, text: str, *, final: bool, language: str | None) -> int:
        """Forward a user's transcribed speech to the apps that subscribe to it; return their number."""
        _check(id, language)
        user = await self.store.users.get(id)
        if user is None or user.session is None:
            raise _no_session(id)
        self.use(id)
        spoken = language or user.session.language or user.language
        return await self.sessions.transcribe(id, text, final=final, language=spoken)

    def listen(self, id: str, principal: str) -> AbstractAsyncContextManager[AsyncIterator[UserEvent]]:
        """Subscribe to what apps display and speak for a user."""
        _check(id)
        return self.sessions.listen(id, principal)

    # --- shared helpers ---

    def _changed(self, id: str) -> None:
        self.shared.publish(ChangeSignal("users", id))

    async def _known(self, id: str) -> UserRecord:
        user = await self.store.users.get(id)
        if user is None:
            raise _no_user(id)
        return user

    async def _settings(self, id: str, package: str) -> JsonObject | None:
        """Return a user's settings in an app; None if it is not installed."""
        user = await self.store.users.get(id)
        for each in () if user is None else user.installs:
            if each.package == package:
                return each.settings
        return None

    async def _recorded(self, id: str) -> JsonObject | None:
        """Return the audit record of a user's current state; None if the user does not exist."""
        user = await self.store.users.get(id)
        return None if user is None else _listed(user)

    def _state(self, id: str, package: str) -> JsonObject:
        state = self.sessions.states(id).get(package)
        return {"state": "stopped"} if state is None else state.as_json()

    def _user_payload(self, user: UserRecord) -> JsonObject:
        device = _session_device(user)
        return {
            "id": user.id,
            "language": user.language,
            "timeZone": user.time_zone,
            "created": user.created,
            "apps": [self._app(user, each, device) for each in user.installs],
            "disabled": sorted(user.disabled),
            "session": None if user.session is None else spell_session(user.session),
            "device": None if device is None else {"model": device.model, "has": sorted(device.has)},
            "usage": f"/api/usage?user={quote(user.id, safe='')}",
        }

    def _app(self, user: UserRecord, install: InstallRecord, device: Device | None) -> JsonObject:
        """Serialize a user's app: its compatibility with the device, its state, and the user's settings."""
        app = self.find(install.package)
        needs = () if app is None else app.hardware
        compatible = check_compatibility(needs, device, phone_microphone=self.phone_microphone)
        return {
            "packageName": install.package,
            "name": install.package if app is None else app.name,
            "appType": None if app is None else app.app_type,
            "installedAt": install.at,
            "settings": install.settings,
            "disabled": install.package in user.disabled,
            "compatibility": compatible.as_json(),
            "running": self._state(user.id, install.package),
        }


def spell_session(session: SessionRecord) -> JsonObject:
    """Serialize a session."""
    return {
        "sessionId": session.id,
        "userId": session.user,
        "device": session.device,
        "language": session.language,
        "timeZone": session.time_zone,
        "startedAt": session.started,
    }


def _session_recorded(session: SessionRecord | None) -> JsonObject | None:
    """Return the audit record of a session."""
    if session is None:
        return None
    model = None if session.device is None else session.device.get("modelName")
    place = {"language": session.language, "timeZone": session.time_zone}
    return {"sessionId": session.id, "device": model, **place, "startedAt": session.started}


def _listed(user: UserRecord) -> JsonObject:
    return {
        "id": user.id,
        "language": user.language,
        "timeZone": user.time_zone,
        "created": user.created,
        "apps": [each.package for each in user.installs],
        "active": user.session is not None,
    }


def _session_device(user: UserRecord) -> Device | None:
    session = user.session
    return None if session is None or session.device is None else parse_device(session.device)


def _installed(user: UserRecord, package: str) -> InstallRecord:
    for each in user.installs:
        if each.package == package:
            return each
    raise _not_installed(user.id, package)


def _device(value: Any) -> Device:
    try:
        return parse_device(value)
    except InvalidDevice as fault:
        raise Refused("INVALID_REQUEST", f"{fault.path} {fault.message}", path=fault.path) from None


def _check(id: str, language: str | None = None, time_zone: str | None = None) -> None:
    """Refuse an invalid user id, language tag or time zone."""
    check_user(id, "id")
    if language is not None and not _LANGUAGE.fullmatch(language):
        message = "language must be a language tag, such as en or de-CH"
        raise Refused("INVALID_REQUEST", message, path="language")
    if time_zone is not None and not _is_zone(time_zone):
        message = "timeZone must be the name of a time zone, such as Europe/Berlin"
        raise Refused("INVALID_REQUEST", message, path="timeZone")


def _is_zone(name: str) -> bool:
    try:
        ZoneInfo(name)
    except (LookupError, ValueError, OSError):
        return False
    return True


def _no_user(id: str) -> Refused:
    return Refused("NOT_FOUND", f"there is no user {id[:MAX_USER_CHARS]}", path="id")


def _not_installed(id: str, package: str) -> Refused:
    message = f"{id[:MAX_USER_CHARS]} has not installed {package[:200]}"
    return Refused("NOT_FOUND", message, path="package")


def _no_session(id: str) -> Refused:
    message = f"{id[:MAX_USER_CHARS]} has no session; begin one with PUT /api/users/{{id}}/session"
    return Refused("NO_SESSION", message, path="id", details={"user": id[:MAX_USER_CHARS]})
