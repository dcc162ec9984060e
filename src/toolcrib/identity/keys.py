"""API keys: random, shown once, stored as a hash, looked up by it."""

from collections.abc import Callable, Iterable
from hashlib import sha256
from secrets import token_urlsafe

from toolcrib.interfaces import KeyRecord
from toolcrib.model import Caller

PREFIX = "tc_"


def new_key() -> str:
    """Make a key of 256 random bits."""
    return PREFIX + token_urlsafe(32)


def digest(key: str) -> str:
    """Hash a key. It is random, so a plain hash is as good as a slow one."""
    return sha256(key.encode()).hexdigest()


class KeyRing:
    """The live keys, ready as callers. Swapped whole when the store changes."""

    def __init__(self) -> None:
        self._callers: dict[str, Caller] = {}
        self.seen: dict[bytes, Caller] = {}
        """Whom an `Authorization` header has turned out to be; forgotten whenever the keys are loaded."""
        self._listeners: list[Callable[[str], None]] = []

    def listen(self, hear: Callable[[str], None]) -> None:
        """Hear the name of every key that no longer opens anything, whoever ended it and wherever."""
        self._listeners.append(hear)

    def load(self, records: Iterable[KeyRecord]) -> None:
        """Replace all keys; a revoked one is gone with this."""
        before = self._callers
        self._callers = {each.digest: _caller(each) for each in records if each.revoked is None}
        self.seen = {}
        for gone in before.keys() - self._callers.keys():
            for hear in self._listeners:
                hear(before[gone].key)

    def caller(self, hashed: str) -> Caller | None:
        """Return the caller a hashed key stands for."""
        return self._callers.get(hashed)


def _caller(record: KeyRecord) -> Caller:
    user = record.user
    return Caller(
        id=f"key:{record.name}" if user is None else f"user:{user}",
        user=user,
        key=record.name,
        context=record.home,
        contexts=record.contexts,
        permissions=record.permissions,
        act_as=record.act_as,
    )
