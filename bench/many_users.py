"""Part `users`: one user's tool list with 100,000 users in the store, compared with that user alone."""

import sys
from pathlib import Path

import anyio

from bench.requests import Request
from bench.running_servers import HERE, RunningServers
from tests.store.large_store import MEASURED, fill

EXPECTED = b'"total":'
_LIST = Request(path="/api/tools", method="GET", expected=EXPECTED)
_HEALTH = Request(path="/health", method="GET", expected=b"")
_STORES = {"crowd": {"apps": 1_000, "users": 100_000}, "alone": {"apps": 20, "users": 1}}
COLD = "-cold"
"""Suffix of cases in which the gateway caches no users and no lists between requests."""


def add_users(servers: RunningServers) -> None:
    """Add the list of the same user from both stores, cached and uncached."""
    for store, counts in _STORES.items():
        folder = servers.folder / f"store-{store}"
        folder.mkdir()
        print(f"filling a store with {counts['users']:,} users ...", file=sys.stderr, flush=True)
        anyio.run(_fill_store, folder / "toolcrib.db", counts["apps"], counts["users"])
        for cold in ("", COLD):
            name = f"toolcrib-{store}{cold}"
            key = servers.start_toolcrib(
                name,
                "users.yaml",
                _HEALTH,
                {"BENCH_STORE": f"sqlite:///{folder / 'toolcrib.db'}"},
                program=(str(HERE / "servers/no_cache.py"),) if cold else ("-m", "toolcrib"),
                user=MEASURED,
            )
            servers.add_case("users" + cold, name, _LIST.with_key(key))


async def _fill_store(path: Path, apps: int, users: int) -> None:
    await fill(f"sqlite:///{path}", apps=apps, users=users)
