"""API keys: random, shown once, stored and looked up by hash."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from hashlib import sha256
from heapq import heappop, heappush
from secrets import token_urlsafe
from time import monotonic, time
from typing import NamedTuple

import anyio

from toolcrib.errors import Unavailable
from toolcrib.interfaces import KeyRecord
from toolcrib.model import EVERY_CONTEXT, NO_CONTEXT, Caller

PREFIX = "tc_"
MAX_UNCHECKED_SECONDS = 60.0
"""Seconds that keys are accepted without a successful read of the store: one may have been revoked."""
EXPIRY_CHECK_SECONDS = 0.25
"""Seconds between checks for expired keys: bounds how long a cached header outlives its key."""
MAX_EXPIRED_AT_ONCE = 1000
"""Keys expired per batch; a large batch must not block the event loop."""

# Cached callers; a full cache is cleared.
_MAX_CALLERS = 8192
# Shared grants; beyond that, the table is cleared.
_MAX_KNOWN_GRANTS = 4096
# Seconds; Retry-After while the store is unreachable.
_RETRY_AFTER = 2.0
# Seconds between checks while the store is unreachable.
_EXPIRED_PAUSE = 1.0
_GENERATED = re.compile(rb"[Bb]earer +tc_[A-Za-z0-9_-]{43}")


def new_key() -> str:
    """Generate a key with 256 random bits."""
    return PREFIX + token_urlsafe(32)


def is_generated(authorization: bytes) -> bool:
    """Whether a header holds a key in our generated format, with 256 random bits that cannot be guessed."""
    return _GENERATED.fullmatch(authorization) is not None


def digest(key: str) -> str:
    """Hash a key. Keys are random, so a plain hash is as safe as a slow one."""
    return sha256(key.encode()).hexdigest()


class _Grant(NamedTuple):
    """The permissions of a key."""

    home: str
    contexts: frozenset[str] | None
    permissions: frozenset[str]
    act_as: bool


class KeyRing:
    """Index of the valid keys. Changes are applied as they are read; expiry is applied on time.

    Per key it stores strings and a shared grant only, and creates the caller on first use: a hundred
    thousand more objects would make every garbage collection pause the process.
    """

    def __init__(
        self, clock: Callable[[], float] = monotonic, *, now: Callable[[], float] = time, deny: bool = False
    ) -> None:
        self._clock, self._now, self._deny = clock, now, deny
        self._checked = clock()
        self._stale = False
        self._live: dict[str, str] = {}
        """Names of valid keys, by hash."""
        self._grants: dict[str, _Grant] = {}
        """Grants, by key name."""
        self._users: dict[str, str] = {}
        """Users of personal keys, by key name."""
        self._known_grants: dict[_Grant, _Grant] = {}
        self._callers: dict[str, Caller] = {}
        """Callers of keys in use, by hash: one object per secret, as other caches use its identity."""
        self._digests: dict[str, tuple[str, ...]] = {}
        """All hashes of each key name, valid or not."""
        self._ends: dict[str, float] = {}
        """Expiry times of hashes that expire."""
        self._due: list[tuple[float, str]] = []
        """The same as a heap; outdated entries are skipped."""
        self._ended: dict[str, str] = {}
        self._expired: set[str] = set()
        self.used: dict[str, float] = {}
        """Time of the last use by key name, for uses that are not stored yet."""
        self.seen: dict[bytes, Caller] = {}
        """Callers by `Authorization` header; emptied whenever a key changes."""
        self._listeners: list[Callable[[str], None]] = []

    @property
    def names(self) -> Collection[str]:
        """The names of all known keys."""
        return self._digests.keys()

    def listen(self, callback: Callable[[str], None]) -> None:
        """Register a callback with the name of every key that loses a valid secret, in any process."""
        self._listeners.append(callback)

    def load(self, records: Collection[KeyRecord]) -> None:
        """Replace all keys."""
        names = {each.name for each in records}
        self.remove([name for name in self._digests if name not in names])
        self.apply(records)
        self.checked()

    def checked(self) -> None:
        """Record that the store has been read up to its newest change."""
        self._checked, self._stale = self._clock(), False

    def apply(self, records: Iterable[KeyRecord]) -> None:
        """Insert or update keys; the secrets of a revoked one become invalid."""
        now = self._now()
        for record in records:
            self._apply(record, now)

    def remove(self, names: Iterable[str]) -> None:
        """Remove keys."""
        for name in names:
            self._notify(name, invalidated=self._forget(name))

    def digest_of(self, name: str) -> str | None:
        """Return the hash of the valid key with this name; rotation changes it."""
        newest = self._digests.get(name, ("",))[0]
        return newest if newest in self._live else None

    def caller(self, hashed: str) -> Caller | None:
        """Return the caller of a hashed key and record its use; raise Unavailable if the keys are stale."""
        if self._stale:
            message = "the store does not answer, so API keys cannot be checked; nothing was done"
            raise Unavailable("SOURCE_DOWN", message, retry_after=_RETRY_AFTER)
        name = self._live.get(hashed)
        if name is None:
            return None
        if hashed in self._ends and self._ends[hashed] <= self._now():
            self._end(hashed)
            return None
        self.used[name] = time()
        return self._callers.get(hashed) or self._create_caller(name, hashed)

    def ended_name(self, hashed: str) -> str:
        """Return the name of a revoked or expired key; empty for any other hash."""
        return self._ended.get(hashed, "")

    def has_expired(self, hashed: str) -> bool:
        """Whether this hash belongs to a key that has expired and was not revoked."""
        return hashed in self._expired

    def expire(self) -> float:
        """Stop accepting keys that are too stale; return the seconds until the next check."""
        left = self._checked + MAX_UNCHECKED_SECONDS - self._clock()
        if left > 0:
            return left
        # Requests look up `seen` first: once it is empty, they all reach `caller`.
        self._stale, self.seen = True, {}
        return _EXPIRED_PAUSE

    def end_expired(self) -> bool:
        """Expire keys and previous secrets; return whether the batch was full, so that there may be more."""
        now, ended = self._now(), 0
        while self._due and self._due[0][0] <= now and ended < MAX_EXPIRED_AT_ONCE:
            until, hashed = heappop(self._due)
            if self._ends.get(hashed) == until:
                self._end(hashed)
                ended += 1
        return ended == MAX_EXPIRED_AT_ONCE

    async def run(self) -> None:
        """Expire keys on time, until cancelled: a check on every call would cost every call."""
        while True:
            seconds = min(self.expire(), EXPIRY_CHECK_SECONDS)
            await anyio.sleep(0 if self.end_expired() else seconds)

    def _apply(self, record: KeyRecord, now: float) -> None:
        before = self._forget(record.name)
        self._grant(record)
        for hashed, until in _valid(record):
            if until is None or until > now:
                self._live[hashed] = record.name
                if until is not None:
                    self._ends[hashed] = until
                    heappush(self._due, (until, hashed))
        if record.digest not in self._live:
            self._ended[record.digest] = record.name
            if record.revoked is None:
                self._expired.add(record.digest)
        previous = () if record.previous_digest is None else (record.previous_digest,)
        self._digests[record.name] = (record.digest, *previous)
        self._notify(record.name, invalidated=[each for each in before if each not in self._live])

    def _grant(self, record: KeyRecord) -> None:
        """Store the grant of a key; equal grants share one object, since most keys are alike."""
        home, contexts = record.home, record.contexts
        if contexts is None and self._deny:
            home, contexts = NO_CONTEXT, frozenset[str]()
        elif contexts is not None and EVERY_CONTEXT in contexts:
            contexts = None
        grant = _Grant(home, contexts, record.permissions, record.act_as)
        if len(self._known_grants) >= _MAX_KNOWN_GRANTS:
            self._known_grants.clear()
        self._grants[record.name] = self._known_grants.setdefault(grant, grant)
        if record.user is not None:
            self._users[record.name] = record.user

    def _create_caller(self, name: str, hashed: str) -> Caller:
        """Create the caller of a secret on its first use."""
        grant, user = self._grants[name], self._users.get(name)
        if len(self._callers) >= _MAX_CALLERS:
            self._callers.clear()
        caller = self._callers[hashed] = Caller(
            id=f"key:{name}" if user is None else f"user:{user}",
            user=user,
            key=name,
            context=grant.home,
            contexts=grant.contexts,
            permissions=grant.permissions,
            act_as=grant.act_as,
            retiring=None if hashed == self._digests[name][0] else self._ends.get(hashed),
        )
        return caller

    def _forget(self, name: str) -> list[str]:
        """Remove a key; return its hashes that were valid."""
        valid: list[str] = []
        self._grants.pop(name, None)
        for hashed in self._digests.pop(name, ()):
            if self._live.pop(hashed, None) is not None:
                valid.append(hashed)
            self._ends.pop(hashed, None)
            self._ended.pop(hashed, None)
            self._expired.discard(hashed)
            self._callers.pop(hashed, None)
        self._users.pop(name, None)
        if self.seen:
            self.seen = {}
        return valid

    def _end(self, hashed: str) -> None:
        """Expire a hash."""
        name = self._live.pop(hashed)
        del self._ends[hashed]
        self._callers.pop(hashed, None)
        if hashed == self._digests[name][0]:
            self._ended[hashed] = name
            self._expired.add(hashed)
        self.seen = {}
        self._notify(name, invalidated=[hashed])

    def _notify(self, name: str, *, invalidated: Collection[str]) -> None:
        if invalidated:
            for callback in self._listeners:
                callback(name)


def _valid(record: KeyRecord) -> Iterator[tuple[str, float | None]]:
    """Yield the hashes of a key that is not revoked, each with its expiry time."""
    if record.revoked is not None:
        return
    yield record.digest, record.expires
    previous, until = record.previous_digest, record.previous_until
    if previous is not None and until is not None:
        yield previous, until if record.expires is None else min(until, record.expires)
