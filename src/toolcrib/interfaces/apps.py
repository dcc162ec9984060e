"""The seam to what lasts of apps and users: who offers which app, who has installed it, who is here."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from toolcrib.model import AddressGiver, JsonObject, Requirement

AppType = Literal["standard", "background", "system_dashboard"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AppTool:
    """A tool as its app's developer defined it."""

    definition: JsonObject
    """`name`, `description`, `inputSchema`, `mentraExtensions`; of the old shape until it is migrated."""
    original: JsonObject | None = None
    """What it was before it was migrated, to go back to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AppRecord:
    """An app as it is stored: never its API key, only the hash."""

    package: str
    name: str
    owner: str
    """The name of the key that made it."""
    public_url: str | None = None
    url_giver: AddressGiver | None = None
    """Whose key gave `public_url`; None where it was stored before this was recorded."""
    app_type: AppType = "background"
    hardware: tuple[Requirement, ...] = ()
    permissions: tuple[str, ...] = ()
    digest: str | None = field(default=None, repr=False)
    """sha256 of its API key, in hex. A secret itself: it is what we show to the app."""
    signing: str | None = field(default=None, repr=False)
    """What is signed with for it: another hash of its key, which is never sent."""
    tools: tuple[AppTool, ...] = ()
    version: int = 1
    """Counts up with every change of the app or its tools."""
    created: float = 0.0
    updated: float = 0.0


class StoredApps(Protocol):
    """Apps and their tools."""

    async def all(self) -> Sequence[AppRecord]:
        """Every app with its tools, the oldest first."""
        ...

    async def get(self, package: str) -> AppRecord | None:
        """One app with its tools."""
        ...

    async def add(self, app: AppRecord) -> bool:
        """Store a new app; False where there is one of that package."""
        ...

    async def change(self, app: AppRecord) -> int | None:
        """Replace all but tools, owner and creation; the new version, or None where there is no such app."""
        ...

    async def define(self, package: str, tools: Sequence[AppTool], at: float) -> int | None:
        """Replace an app's tools whole; the new version, or None where there is no such app."""
        ...

    async def drop(self, package: str) -> bool:
        """Remove an app, its tools, its installs and all it has kept; False where there is none."""
        ...

    async def mark(self) -> str:
        """Something that is another one whenever any app or tool has changed. Cheap."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class InstallRecord:
    """An app a user has installed, and what the user has set there."""

    package: str
    at: float
    settings: JsonObject = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRecord:
    """A user who is here: with which device, speaking what."""

    user: str
    id: str
    device: JsonObject | None = None
    """Its capabilities, as they were given or as its profile says; None where none is connected."""
    language: str | None = None
    time_zone: str | None = None
    started: float = 0.0
    used: float = 0.0
    """When it was last used, by the store's clock, to within a minute or a twentieth of the idle time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UserRecord:
    """All that is stored of a user."""

    id: str
    language: str | None = None
    time_zone: str | None = None
    created: float = 0.0
    installs: tuple[InstallRecord, ...] = ()
    """By package."""
    disabled: frozenset[str] = frozenset()
    """Canonical names of tools, or packages of whole apps, the user has switched off."""
    session: SessionRecord | None = None


class StoredUsers(Protocol):
    """Users, what they have installed and switched off, and their sessions.

    Whoever installs or switches off something, or begins a session, is stored as a user where there is none.
    """

    async def get(self, id: str) -> UserRecord | None:
        """All of one user; what others have costs nothing."""
        ...

    async def page(self, *, after: str = "", limit: int = 100) -> Sequence[UserRecord]:
        """Users by id, from the first after `after` on."""
        ...

    async def put(self, id: str, *, language: str | None, time_zone: str | None, at: float) -> bool:
        """Store or change a user; whether it is new."""
        ...

    async def drop(self, id: str) -> bool:
        """Remove a user and everything of theirs; False where there is none."""
        ...

    async def install(self, id: str, install: InstallRecord) -> bool | None:
        """Install an app, or change its settings; whether it is new, or None where there is no such app."""
        ...

    async def uninstall(self, id: str, package: str) -> bool:
        """Take an app away, with what it has kept for the user; False where it was not installed."""
        ...

    async def disable(self, id: str, name: str) -> bool:
        """Switch a tool or an app off; False where it was."""
        ...

    async def enable(self, id: str, name: str) -> bool:
        """Switch it on again; False where it was not off."""
        ...

    async def begin(self, session: SessionRecord) -> SessionRecord:
        """Store a session, and return it as it is now; one that lasts keeps its id and when it began."""
        ...

    async def end(self, id: str, *, unused_since: float | None = None) -> SessionRecord | None:
        """End a user's session, and return it; None where there is none, or it was used since a moment."""
        ...

    async def used(self, times: Mapping[str, float]) -> None:
        """Store when sessions were last used, by user; a time before the stored one changes nothing."""
        ...

    async def unused_since(self, moment: float, *, limit: int = 100) -> Sequence[str]:
        """The users whose session was not used since a moment, the longest unused first."""
        ...

    async def having(self, package: str) -> Sequence[str]:
        """The users with a session who have installed an app."""
        ...


class AppData(Protocol):
    """What apps keep for their users: texts by key."""

    async def all(self, package: str, user: str) -> Mapping[str, str]:
        """Everything an app keeps for a user."""
        ...

    async def put(self, package: str, user: str, values: Mapping[str, str]) -> bool:
        """Add or replace; False where the user has not installed the app, for which nothing is kept."""
        ...

    async def drop(self, package: str, user: str, keys: Sequence[str] | None = None) -> int:
        """Forget some keys, or all of them; how many went."""
        ...
