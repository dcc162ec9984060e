"""Toolcrib without its caches of users and tool lists: `python no_cache.py serve …`."""

import sys

from toolcrib.cli import main
from toolcrib.gateway import Gateway
from toolcrib.identity import UserCache
from toolcrib.model import Caller


def forget() -> None:
    """Read every user again, and make every list again, for each request."""
    view = Gateway.view

    def nobody(_people: UserCache, caller: Caller) -> Caller | None:
        return caller if caller.user is None else None

    def anew(gateway: Gateway, *given: object) -> object:
        gateway._state.views.clear()  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        return view(gateway, *given)  # pyright: ignore[reportArgumentType, reportUnknownVariableType]

    for owner, name, instead in ((UserCache, "known", nobody), (Gateway, "view", anew)):
        setattr(owner, name, instead)


if __name__ == "__main__":
    forget()
    sys.exit(main())
