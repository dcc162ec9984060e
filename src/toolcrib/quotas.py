"""Quotas of what is stored for calls with an idempotency key: per principal and in all, keys and bytes."""

from collections.abc import Callable
from dataclasses import dataclass

import anyio

from toolcrib.errors import Refused, Unavailable
from toolcrib.interfaces import ReplayRow, StoredReplays

KEPT_SECONDS = 24 * 3600.0
"""How long keys and answers are kept."""
SPARE_PARTS = 8
"""Where bytes run out, so much of the quota (one part in eight) is freed at once: not by every call anew."""
_PAUSE = 60.0
"""When to come back, where it is not known when the oldest key is dropped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayQuota:
    """The most that may be stored. A replica counts what others store once a minute."""

    keys_per_principal: int = 10_000
    bytes_per_principal: int = 16 << 20
    keys: int = 100_000
    bytes: int = 256 << 20


@dataclass(slots=True)
class _Held:
    keys: int = 0
    bytes: int = 0
    oldest: float = 0.0

    def add(self, keys: int, size: int) -> None:
        self.keys, self.bytes = max(0, self.keys + keys), max(0, self.bytes + size)


class BoundedReplays:
    """Requests under a key, within the quota. What is stored is counted in memory, not asked for per call.

    Where bytes run out, the oldest answers of whoever holds most are replaced with a short one, which says
    that the call was carried out. Keys are never dropped early: a change would be made twice. Where
    keys run out, a request under a new one is refused before anything is done.
    """

    def __init__(
        self, replays: StoredReplays, quota: ReplayQuota, *, short_answer: str, clock: Callable[[], float]
    ) -> None:
        self.replays, self.quota, self._short, self._clock = replays, quota, short_answer, clock
        self._held: dict[str, _Held] = {}
        self._all = _Held()
        self._meanwhile: list[tuple[str, int, int]] | None = None
        """What was counted while the totals are being read, and may not be in them."""
        self._making_room = anyio.Lock()

    async def claim(self, row: ReplayRow) -> ReplayRow | None:
        """Claim a key and return None, or return the row it has; refused where there is room for no more."""
        since = row.at - KEPT_SECONDS
        if refusal := self._refusal(row.owner):
            found = await self.replays.find(row.key, since=since)
            if found is None:
                raise refusal
            return found
        self._count(row.owner, keys=1)
        try:
            found = await self.replays.claim(row, since=since)
        except Unavailable:
            self._count(row.owner, keys=-1)
            raise
        # After any other error the claim may have been made; it stays counted until it is released.
        if found is not None:
            self._count(row.owner, keys=-1)
        return found

    async def release(self, row: ReplayRow) -> None:
        """Free a key under which nothing was done, and no longer count its claim."""
        # Also where there was no row: the claim had no effect, or an earlier release had, and both failed.
        await self.replays.release(row.key, row.call)
        self._count(row.owner, keys=-1)

    async def finish(self, row: ReplayRow, answer: str) -> None:
        """Store the answer of a key, or that there was one where it does not fit."""
        size = len(answer.encode())
        # Counted first, so that others who store at the same time see it.
        self._count(row.owner, size=size)
        kept = False
        try:
            kept = await self._has_room(row.owner)
            done = await self.replays.finish(row.key, row.call, answer if kept else self._short, size * kept)
            kept = kept and done
        except BaseException:
            # Also where it is cancelled: the answer is stored by another try, which counts it again.
            kept = False
            raise
        finally:
            if not kept:
                self._count(row.owner, size=-size)

    async def reconcile(self) -> None:
        """Count anew from the store, which other processes write to as well."""
        self._meanwhile = []
        try:
            totals = await self.replays.totals()
            meanwhile = self._meanwhile
        finally:
            self._meanwhile = None
        self._held = {owner: _Held(each.keys, each.bytes, each.oldest) for owner, each in totals.items()}
        self._all = _Held(
            sum(each.keys for each in totals.values()),
            sum(each.bytes for each in totals.values()),
            min((each.oldest for each in totals.values()), default=0.0),
        )
        for owner, keys, size in meanwhile:
            self._count(owner, keys=keys, size=size)

    async def tidy(self) -> int:
        """Drop what is too old, and count what is left; how many went."""
        gone = await self.replays.prune(self._clock() - KEPT_SECONDS)
        await self.reconcile()
        return gone

    def _count(self, owner: str, *, keys: int = 0, size: int = 0) -> None:
        held = self._held.get(owner)
        if held is None:
            held = self._held[owner] = _Held()
        held.add(keys, size)
        self._all.add(keys, size)
        if self._meanwhile is not None:
            self._meanwhile.append((owner, keys, size))

    def _refusal(self, owner: str) -> Refused | None:
        """Say why no further key is taken; None where one is."""
        held, quota = self._held.get(owner), self.quota
        if held is not None and held.keys >= quota.keys_per_principal:
            said = f"this credential has {held.keys} idempotency keys stored, as many as it may"
            return self._full("RATE_LIMITED", said, held)
        if self._all.keys >= quota.keys:
            said = f"{self._all.keys} idempotency keys are stored, as many as may be"
            return self._full("OVERLOADED", said, self._all)
        return None

    def _full(self, code: str, said: str, held: _Held) -> Refused:
        left = held.oldest + KEPT_SECONDS - self._clock() if held.oldest else _PAUSE
        todo = "the oldest are dropped after a day; call without a key, or raise idempotency.* in the config"
        return Refused(code, f"{said}, so nothing was done; {todo}", retry_after=max(round(left, 1), 1.0))

    async def _has_room(self, owner: str) -> bool:
        """Make room where too much is stored; whether there is enough then."""
        if not self._over(owner):
            return True
        async with self._making_room:  # one at a time, or each would free what all together need
            if (over := self._over_own(owner)) > 0:
                await self._shorten(owner, over, self.quota.bytes_per_principal)
            if (over := self._all.bytes - self.quota.bytes) > 0:
                largest = max(self._held, key=lambda each: self._held[each].bytes)
                await self._shorten(largest, over, self.quota.bytes)
            return not self._over(owner)

    async def _shorten(self, owner: str, over: int, quota: int) -> None:
        freed = await self.replays.shorten(owner, over + quota // SPARE_PARTS, self._short)
        self._count(owner, size=-freed)

    def _over_own(self, owner: str) -> int:
        return self._held[owner].bytes - self.quota.bytes_per_principal

    def _over(self, owner: str) -> bool:
        return self._over_own(owner) > 0 or self._all.bytes > self.quota.bytes
