"""The key management of the admin API: listing, creation, rotation and revocation of API keys."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from time import time
from typing import Any

from toolcrib.errors import Refused
from toolcrib.identity import check_user, digest, new_key
from toolcrib.interfaces import ChangeSignal, KeyRecord, Shared, Store
from toolcrib.model import EVERY_CONTEXT, LIBRARY, Actor, JsonObject
from toolcrib.observe import Audit
from toolcrib.policy import Contexts

MAX_OVERLAP_SECONDS = 30 * 86_400.0
"""Maximum seconds for which the old secret stays valid after a rotation."""
MAX_LISTED_KEYS = 1000
"""Maximum keys on one page of the list."""
END_OF_TIME = 253_402_300_800
"""The year 10000 as a Unix timestamp: `datetime` cannot represent it."""
MAX_NAME_LENGTH = 64
RESERVED_NAMES = frozenset({"admin", "anonymous", "local", "trust_header"})
"""Ids of callers without a key; a key of that name would inherit what belongs to them."""


@dataclass(frozen=True, kw_only=True)
class KeyAdmin:
    """Manages API keys. Frontends authorize the caller and decide which keys it may change."""

    store: Store
    shared: Shared
    audit: Audit
    contexts: Contexts
    learn: Callable[[str], None]
    """Registers a new secret with the redactor."""
    read_keys: Callable[[], Awaitable[None]]
    """Reloads the keys of this process from the store."""

    async def keys(self) -> list[dict[str, Any]]:
        """Return all keys, without their secrets."""
        found: list[dict[str, Any]] = []
        after = ""
        while True:
            page = await self.keys_after(after, MAX_LISTED_KEYS)
            found += map(spell_key, page)
            if len(page) < MAX_LISTED_KEYS:
                return found
            after = page[-1].name

    async def keys_after(self, name: str, limit: int) -> Sequence[KeyRecord]:
        """Return at most `limit` keys in order of name, after this name."""
        return await self.store.keys.page(after=name, limit=limit)

    async def key(self, name: str) -> KeyRecord | None:
        """Return one key, also a revoked or expired one."""
        return await self.store.keys.find(name)

    async def create_key(
        self,
        name: str,
        *,
        permissions: Sequence[str] = (),
        contexts: Sequence[str] | None = None,
        home: str = "default",
        act_as: bool = False,
        user: str | None = None,
        expires: float | None = None,
        actor: Actor = LIBRARY,
    ) -> dict[str, Any]:
        """Create a key, optionally as a user's own; the secret is returned only this once."""
        async with self.audit.action(actor, "keys.create", name) as action:
            self._check_key(name, permissions, contexts, home)
            if user is not None:
                check_user(user, "user")
            if expires is not None and self.store.clock.is_past(expires):
                raise Refused("INVALID_REQUEST", "expires must be in the future", path="expires")
            key = new_key()
            record = KeyRecord(
                name=name,
                digest=digest(key),
                permissions=frozenset(permissions),
                contexts=None if contexts is None else frozenset(contexts),
                home=home,
                act_as=act_as,
                user=user,
                created=time(),
                created_by=actor.label,
                expires=expires,
            )
            if not await self.store.keys.add(record):
                message = f"there is or was a key named {name}; choose another name"
                raise Refused("ALREADY_EXISTS", message, path="name")
            action.applied()
            action.after = spell_key(record)
            return await self._created_key(record, key)

    async def rotate_key(self, name: str, *, overlap: float = 0.0, actor: Actor = LIBRARY) -> dict[str, Any]:
        """Replace a key's secret, which stays valid for `overlap` seconds; an even older one ends at once."""
        async with self.audit.action(actor, "keys.rotate", name) as action:
            check_overlap(overlap)
            action.before = await self._key_record(name)
            key, now = new_key(), self.store.clock.latest()
            until = now + overlap if overlap else None
            if not await self.store.keys.rotate(name, digest(key), now, until):
                raise _no_key(name)
            action.applied()
            record = await self.key(name)
            if record is None:
                raise _no_key(name)
            action.after = spell_key(record)
            return await self._created_key(record, key)

    async def revoke_key(self, name: str, *, actor: Actor = LIBRARY) -> None:
        """Revoke a key at once."""
        async with self.audit.action(actor, "keys.revoke", name) as action:
            action.before = await self._key_record(name)
            if not await self.store.keys.revoke(name, time()):
                raise _no_key(name)
            action.applied()
            action.after = await self._key_record(name)
            await self._reload_keys()

    async def _key_record(self, name: str) -> JsonObject | None:
        found = await self.key(name)
        return None if found is None else spell_key(found)

    async def _created_key(self, record: KeyRecord, key: str) -> dict[str, Any]:
        self.learn(key)
        await self._reload_keys()
        return {**spell_key(record), "key": key}

    async def _reload_keys(self) -> None:
        await self.read_keys()
        self.shared.publish(ChangeSignal("keys"))

    def _check_key(
        self, name: str, permissions: Sequence[str], contexts: Sequence[str] | None, home: str
    ) -> None:
        if not name or len(name) > MAX_NAME_LENGTH or not all(c.isalnum() or c in "-_." for c in name):
            message = f"a key's name has 1 to {MAX_NAME_LENGTH} letters, digits, `-`, `_` or `.`"
            raise Refused("INVALID_REQUEST", message, path="name")
        if name in RESERVED_NAMES:
            raise Refused("INVALID_REQUEST", f"{name} is a name of ours; choose another one", path="name")
        for each in permissions:
            if each != "*" and not _is_permission(each):
                message = f"{each} is no permission; write resource:action, resource:* or *"
                raise Refused("INVALID_REQUEST", message, path="permissions")
        self._check_contexts(contexts, home)

    def _check_contexts(self, contexts: Sequence[str] | None, home: str) -> None:
        for each in (home, *(contexts or ())):
            if each not in self.contexts.contexts and (each != EVERY_CONTEXT or each == home):
                raise Refused("NOT_FOUND", f"there is no context named {each}", path="contexts")
        if contexts is not None and home not in contexts and EVERY_CONTEXT not in contexts:
            raise Refused(
                "INVALID_REQUEST", f"the home context {home} is not among the key's contexts", path="home"
            )


def _is_permission(text: str) -> bool:
    """Return whether this is `resource:action` or `resource:*`; a wildcard resource would look like `*`."""
    resource, _, action = text.partition(":")
    return bool(resource and action) and ":" not in action and resource != "*"


def check_overlap(seconds: float) -> None:
    """Refuse an overlap that is negative, not a number, or too long."""
    if not 0 <= seconds <= MAX_OVERLAP_SECONDS:  # also refuses NaN
        message = f"overlapSeconds must be from 0 to {MAX_OVERLAP_SECONDS:.0f}, which are 30 days"
        raise Refused("INVALID_REQUEST", message, path="overlapSeconds")


def read_moment(value: object, path: str) -> float:
    """Parse a Unix timestamp or an ISO 8601 date or time; UTC if it has no time zone."""
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < END_OF_TIME:
        return float(value)
    try:
        moment = datetime.fromisoformat(value if isinstance(value, str) else "")
        return (moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        message = f"{path} must be seconds since 1970 or a time such as 2027-01-31T12:00:00Z"
        raise Refused("INVALID_REQUEST", message, path=path) from None


def spell_key(record: KeyRecord) -> dict[str, Any]:
    """Serialize a key without its secret."""
    return {
        "name": record.name,
        "permissions": sorted(record.permissions),
        "contexts": None if record.contexts is None else sorted(record.contexts),
        "home": record.home,
        "actAs": record.act_as,
        "user": record.user,
        "created": record.created,
        "createdBy": record.created_by,
        "expires": record.expires,
        "rotated": record.rotated,
        "previousUntil": record.previous_until,
        "revoked": record.revoked,
        "lastUsed": record.last_used,
    }


def _no_key(name: str) -> Refused:
    return Refused("NOT_FOUND", f"there is no live key named {name}", path="name")
