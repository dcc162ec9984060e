"""One user's list of tools in a store of a hundred thousand users, beside a store of that user alone."""

import sys
from pathlib import Path

import anyio

from bench.asking import Ask
from bench.stage import HERE, Stage
from tests.store.large_store import MEASURED, fill

LAST = b'"total":'
_LIST = Ask(path="/api/tools", method="GET", holds=LAST)
_FIRST = Ask(path="/health", method="GET", holds=b"")
_SIZES = {"crowd": {"apps": 1_000, "users": 100_000}, "alone": {"apps": 20, "users": 1}}
COLD = "-cold"
"""A gateway that has forgotten its users and their lists before every request."""


def users(stage: Stage) -> None:
    """The same list from both stores, kept in memory and made anew each time."""
    for size, counts in _SIZES.items():
        folder = stage.folder / f"store-{size}"
        folder.mkdir()
        print(f"filling a store with {counts['users']:,} users ...", file=sys.stderr, flush=True)
        anyio.run(_filled, folder / "toolcrib.db", counts["apps"], counts["users"])
        for cold in ("", COLD):
            name = f"toolcrib-{size}{cold}"
            key = stage.crib(
                name,
                "users.yaml",
                _FIRST,
                {"BENCH_STORE": f"sqlite:///{folder / 'toolcrib.db'}"},
                program=(str(HERE / "servers/cold.py"),) if cold else ("-m", "toolcrib"),
                user=MEASURED,
            )
            stage.add("users" + cold, name, _LIST.signed(key))


async def _filled(path: Path, apps: int, users: int) -> None:
    await fill(f"sqlite:///{path}", apps=apps, users=users)
