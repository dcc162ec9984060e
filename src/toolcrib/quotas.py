"""Quotas for stored idempotency keys and results, and the network that a client counts as."""

from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import IPv6Address, IPv6Network

import anyio

from toolcrib.errors import Refused, Unavailable
from toolcrib.interfaces import ReplayRow, StoredReplays

# --- Quotas for stored idempotency keys and results: keys and bytes, per principal and in total ---

REPLAY_RETENTION_SECONDS = 24 * 3600.0
"""Retention of keys and results."""
FREED_QUOTA_DIVISOR = 8
"""When bytes run out, 1/8 of the quota is freed at once, so that not every call has to free some."""
_DEFAULT_RETRY_SECONDS = 60.0
"""Retry-After in seconds, if it is unknown when the oldest key expires."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayQuota:
    """Maximum stored keys and bytes. A replica counts what other replicas store once a minute."""

    keys_per_principal: int = 10_000
    bytes_per_principal: int = 16 << 20
    keys: int = 100_000
    bytes: int = 256 << 20


@dataclass(slots=True)
class _StoredTotals:
    keys: int = 0
    bytes: int = 0
    oldest: float = 0.0

    def add(self, keys: int, size: int) -> None:
        self.keys, self.bytes = max(0, self.keys + keys), max(0, self.bytes + size)


class BoundedReplays:
    """Idempotency keys within the quota. Totals are counted in memory, not queried per call.

    When bytes run out, the oldest results of the largest holder are replaced with a short one, which
    states that the call was carried out. Keys are never dropped early: a mutation would be repeated.
    When keys run out, a request with a new key is refused before anything is done.
    """

    def __init__(
        self, replays: StoredReplays, quota: ReplayQuota, *, short_answer: str, clock: Callable[[], float]
    ) -> None:
        self.replays, self.quota, self._short, self._clock = replays, quota, short_answer, clock
        self._held: dict[str, _StoredTotals] = {}
        self._all = _StoredTotals()
        self._meanwhile: list[tuple[str, int, int]] | None = None
        """Counts made while the totals are being read, which may not include them."""
        self._freeing = anyio.Lock()

    async def claim(self, row: ReplayRow) -> ReplayRow | None:
        """Claim a key and return None, or return its existing row; `Refused` if the quota is used up."""
        since = row.at - REPLAY_RETENTION_SECONDS
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
        # After any other error the claim may have been stored; it stays counted until it is released.
        if found is not None:
            self._count(row.owner, keys=-1)
        return found

    async def release(self, row: ReplayRow) -> None:
        """Release a key under which nothing was done, and uncount its claim."""
        # Uncounted also if there was no row: a failed claim had no effect, or a failed earlier release had.
        await self.replays.release(row.key, row.call)
        self._count(row.owner, keys=-1)

    async def finish(self, row: ReplayRow, answer: str) -> None:
        """Store the result of a key, or the short one if it exceeds the quota."""
        size = len(answer.encode())
        # Counted first, so that concurrent writers see it.
        self._count(row.owner, size=size)
        stored = False
        try:
            stored = await self._has_room(row.owner)
            done = await self.replays.finish(
                row.key, row.call, answer if stored else self._short, size * stored
            )
            stored = stored and done
        except BaseException:
            # Also on cancellation: the result is stored by a retry, which counts it again.
            stored = False
            raise
        finally:
            if not stored:
                self._count(row.owner, size=-size)

    async def reconcile(self) -> None:
        """Recount from the store, to which other processes write too."""
        self._meanwhile = []
        try:
            totals = await self.replays.totals()
            meanwhile = self._meanwhile
        finally:
            self._meanwhile = None
        self._held = {
            owner: _StoredTotals(each.keys, each.bytes, each.oldest) for owner, each in totals.items()
        }
        self._all = _StoredTotals(
            sum(each.keys for each in totals.values()),
            sum(each.bytes for each in totals.values()),
            min((each.oldest for each in totals.values()), default=0.0),
        )
        for owner, keys, size in meanwhile:
            self._count(owner, keys=keys, size=size)

    async def tidy(self) -> int:
        """Delete expired rows and recount; return the number of deleted ones."""
        gone = await self.replays.prune(self._clock() - REPLAY_RETENTION_SECONDS)
        await self.reconcile()
        return gone

    def _count(self, owner: str, *, keys: int = 0, size: int = 0) -> None:
        held = self._held.get(owner)
        if held is None:
            held = self._held[owner] = _StoredTotals()
        held.add(keys, size)
        self._all.add(keys, size)
        if self._meanwhile is not None:
            self._meanwhile.append((owner, keys, size))

    def _refusal(self, owner: str) -> Refused | None:
        """Return the error if the quota of keys is used up, or None."""
        held, quota = self._held.get(owner), self.quota
        if held is not None and held.keys >= quota.keys_per_principal:
            reason = f"this credential has {held.keys} stored idempotency keys, its maximum"
            return self._full("RATE_LIMITED", reason, held)
        if self._all.keys >= quota.keys:
            reason = f"{self._all.keys} idempotency keys are stored, the maximum"
            return self._full("OVERLOADED", reason, self._all)
        return None

    def _full(self, code: str, reason: str, held: _StoredTotals) -> Refused:
        left = (
            held.oldest + REPLAY_RETENTION_SECONDS - self._clock() if held.oldest else _DEFAULT_RETRY_SECONDS
        )
        advice = "keys expire after a day; call without a key, or raise idempotency.* in the config"
        return Refused(code, f"{reason}, so nothing was done; {advice}", retry_after=max(round(left, 1), 1.0))

    async def _has_room(self, owner: str) -> bool:
        """Free bytes if the quota is exceeded; return whether the result fits."""
        if not self._over(owner):
            return True
        async with self._freeing:  # serialized: concurrent calls would each free the bytes needed by all
            if (over := self._over_own(owner)) > 0:
                await self._shorten(owner, over, self.quota.bytes_per_principal)
            if (over := self._all.bytes - self.quota.bytes) > 0:
                largest = max(self._held, key=lambda each: self._held[each].bytes)
                await self._shorten(largest, over, self.quota.bytes)
            return not self._over(owner)

    async def _shorten(self, owner: str, over: int, quota: int) -> None:
        freed = await self.replays.shorten(owner, over + quota // FREED_QUOTA_DIVISOR, self._short)
        self._count(owner, size=-freed)

    def _over_own(self, owner: str) -> int:
        return self._held[owner].bytes - self.quota.bytes_per_principal

    def _over(self, owner: str) -> bool:
        return self._over_own(owner) > 0 or self._all.bytes > self.quota.bytes


# --- Client networks: the range from which one client can choose its address ---

IPV6_PREFIX_BITS = 64
"""Prefix length of a client's IPv6 network; the client chooses the remaining bits."""


def client_network(address: str) -> str:
    """Return the rate-limit key of a client: IPv4 address, IPv6 /64 network, or the text unchanged."""
    if ":" not in address:
        return address
    try:
        parsed = IPv6Address(address)
    except ValueError:
        return address
    if parsed.ipv4_mapped is not None:
        # IPv4 on a dual-stack socket (::ffff:0:0/96); one /64 network would contain all of IPv4.
        return str(parsed.ipv4_mapped)
    return str(IPv6Network((parsed, IPV6_PREFIX_BITS), strict=False))
