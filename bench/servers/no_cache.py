"""Toolcrib without its caches of users and tool lists: `python no_cache.py serve …`."""

import sys

from toolcrib.cli import main
from toolcrib.gateway import Gateway
from toolcrib.identity import UserCache
from toolcrib.model import Caller


def disable_caches() -> None:
    """Disable the caches: every request reads the user again and builds the list again."""
    view = Gateway.view

    def unknown_user(_cache: UserCache, caller: Caller) -> Caller | None:
        return caller if caller.user is None else None

    def uncached_view(gateway: Gateway, *arguments: object) -> object:
        gateway._state.views.clear()  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        return view(gateway, *arguments)  # pyright: ignore[reportArgumentType, reportUnknownVariableType]

    for owner, name, replacement in ((UserCache, "known", unknown_user), (Gateway, "view", uncached_view)):
        setattr(owner, name, replacement)


if __name__ == "__main__":
    disable_caches()
    sys.exit(main())
