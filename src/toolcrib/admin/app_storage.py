"""Key-value storage of apps per user: text values, limited in size, deleted with the app."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import anyio

from toolcrib.errors import Refused
from toolcrib.interfaces import AppData

LONGEST_KEY = 200
LONGEST_VALUE = 100_000
"""Maximum characters of one value, as in the apps' SDKs."""
MOST_BYTES = 1 << 20
"""Maximum bytes of all keys and values of one app for one user."""
MOST_KEYS = 10_000
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
            kept = {**await self.data.all(package, user), **values}
            size = sum(len(key.encode()) + len(value.encode()) for key, value in kept.items())
            if size > MOST_BYTES:
                message = f"{package} would keep {size:,} bytes for this user, the limit is {MOST_BYTES:,}"
                raise Refused("PAYLOAD_TOO_LARGE", message, path="data")
            if len(kept) > MOST_KEYS:
                message = f"{package} would keep {len(kept):,} keys for this user, the limit is {MOST_KEYS:,}"
                raise Refused("PAYLOAD_TOO_LARGE", message, path="data")
            if not await self.data.put(package, user, values):
                message = f"this user has not installed {package}, so nothing is kept for them"
                raise Refused("NOT_FOUND", message, path="user")

    async def drop(self, package: str, user: str, key: str | None = None) -> int:
        """Delete one key, or all; return how many were deleted."""
        return await self.data.drop(package, user, None if key is None else [key])


def _check(key: str, value: str) -> None:
    if not key or len(key) > LONGEST_KEY or not key.isprintable():
        message = f"a key has 1 to {LONGEST_KEY} printable characters"
        raise Refused("INVALID_REQUEST", message, path="data")
    if len(value) > LONGEST_VALUE:
        message = f"the value of {key} has {len(value):,} characters, the limit is {LONGEST_VALUE:,}"
        raise Refused("PAYLOAD_TOO_LARGE", message, path=f"data.{key}")
