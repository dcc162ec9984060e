"""Store protocols for apps, users, installs and user sessions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from toolcrib.model import AddressGiver, JsonObject, Requirement

AppType = Literal["standard", "background", "system_dashboard"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AppTool:
    """A tool as the app's developer defined it."""

    definition: JsonObject
    """`name`, `description`, `inputSchema`, `mentraExtensions`; in the legacy format until migrated."""
    original: JsonObject | None = None
    """The definition before its migration, for a rollback."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AppRecord:
    """A stored app: never with its API key, only the hash."""

    package: str
    name: str
    owner: str
    """Name of the key that created it."""
    public_url: str | None = None
    url_giver: AddressGiver | None = None
    """Kind of caller that supplied `public_url`; None for records older than this field."""
    app_type: AppType = "background"
    hardware: tuple[Requirement, ...] = ()
    permissions: tuple[str, ...] = ()
    digest: str | None = field(default=None, repr=False)
    """SHA-256 of its API key, in hex. A secret too, as the gateway authenticates to the app with it."""
    signing: str | None = field(default=None, repr=False)
    """Signing key for its requests: another hash of its API key, which is never sent."""
    tools: tuple[AppTool, ...] = ()
    version: int = 1
    """Incremented with every change of the app or its tools."""
    created: float = 0.0
    updated: float = 0.0


class StoredApps(Protocol):
    """Apps and their tools."""

    async def all(self) -> Sequence[AppRecord]:
        """Return every app with its tools, the oldest first."""
        ...

    async def get(self, package: str) -> AppRecord | None:
        """Return one app with its tools."""
        ...

    async def add(self, app: AppRecord) -> bool:
        """Store a new app; False if the package exists."""
        ...

    async def change(self, app: AppRecord) -> int | None:
        """Replace all but tools, owner and creation time; return the new version, None if it is unknown."""
        ...

    async def define(self, package: str, tools: Sequence[AppTool], at: float) -> int | None:
        """Replace all tools of an app; return its new version, or None if there is no such app."""
        ...

    async def drop(self, package: str) -> bool:
        """Remove an app, its tools, installs and data; False if there is none."""
        ...

    async def mark(self) -> str:
        """Return a version tag that changes whenever any app or tool changes. Cheap."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class InstallRecord:
    """An app that a user has installed, with the user's settings."""

    package: str
    at: float
    settings: JsonObject = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRecord:
    """An active session of a user: device, language, time zone."""

    user: str
    id: str
    device: JsonObject | None = None
    """Device capabilities, as given or from its profile; None if no device is connected."""
    language: str | None = None
    time_zone: str | None = None
    started: float = 0.0
    used: float = 0.0
    """Last use by the store's clock, accurate to a minute or a twentieth of the idle timeout."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UserRecord:
    """All stored data of a user, except app data."""

    id: str
    language: str | None = None
    time_zone: str | None = None
    created: float = 0.0
    installs: tuple[InstallRecord, ...] = ()
    """Ordered by package."""
    disabled: frozenset[str] = frozenset()
    """Canonical names of tools, or packages of whole apps, that the user disabled."""
    session: SessionRecord | None = None


class StoredUsers(Protocol):
    """Users, their installed apps, disabled tools and sessions.

    Installing, disabling or beginning a session creates the user if needed.
    """

    async def get(self, id: str) -> UserRecord | None:
        """Return all of one user; the cost does not depend on the number of users."""
        ...

    async def page(self, *, after: str = "", limit: int = 100) -> Sequence[UserRecord]:
        """Return a page of users, ordered by id, after the id `after`."""
        ...

    async def put(self, id: str, *, language: str | None, time_zone: str | None, at: float) -> bool:
        """Insert or update a user; return whether it is new."""
        ...

    async def drop(self, id: str) -> bool:
        """Remove a user and all of their data; False if there is none."""
        ...

    async def install(self, id: str, install: InstallRecord) -> bool | None:
        """Install an app or change its settings; return whether it is new, None if the app is unknown."""
        ...

    async def uninstall(self, id: str, package: str) -> bool:
        """Uninstall an app and delete its data of the user; False if it was not installed."""
        ...

    async def disable(self, id: str, name: str) -> bool:
        """Disable a tool or an app; False if it was disabled already."""
        ...

    async def enable(self, id: str, name: str) -> bool:
        """Enable it again; False if it was not disabled."""
        ...

    async def begin(self, session: SessionRecord) -> SessionRecord:
        """Insert or update a session and return it; an existing one retains its id and start time."""
        ...

    async def end(self, id: str, *, unused_since: float | None = None) -> SessionRecord | None:
        """End a user's session and return it; None if there is none, or it was used since `unused_since`."""
        ...

    async def used(self, times: Mapping[str, float]) -> None:
        """Store the last use of sessions, by user; an earlier time than the stored one is ignored."""
        ...

    async def unused_since(self, moment: float, *, limit: int = 100) -> Sequence[str]:
        """Return users with a session not used since a moment, the longest unused first."""
        ...

    async def having(self, package: str) -> Sequence[str]:
        """The users with a session who have installed an app."""
        ...


class AppData(Protocol):
    """Data that apps store for their users: texts by key."""

    async def all(self, package: str, user: str) -> Mapping[str, str]:
        """Return all data of an app for a user."""
        ...

    async def put(self, package: str, user: str, values: Mapping[str, str]) -> bool:
        """Insert or replace values; False, and nothing is stored, if the user has not installed the app."""
        ...

    async def drop(self, package: str, user: str, keys: Sequence[str] | None = None) -> int:
        """Delete some keys, or all of them; return the number of deleted ones."""
        ...
