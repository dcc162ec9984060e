"""The gateway that remembers no user and no list, to see what the first costs: `python cold.py serve …`."""

import sys

from toolcrib.cli import main
from toolcrib.gateway import Gateway
from toolcrib.identity import UserCache
from toolcrib.model import Caller


def forget() -> None:
    """Read every user again, and make every list again, for each request."""
    prepared = Gateway.prepared

    def nobody(_people: UserCache, caller: Caller) -> Caller | None:
        return caller if caller.user is None else None

    def anew(gateway: Gateway, *given: object) -> object:
        gateway._book.views.clear()  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        return prepared(gateway, *given)  # pyright: ignore[reportArgumentType, reportUnknownVariableType]

    for owner, name, instead in ((UserCache, "known", nobody), (Gateway, "prepared", anew)):
        setattr(owner, name, instead)


if __name__ == "__main__":
    forget()
    sys.exit(main())
