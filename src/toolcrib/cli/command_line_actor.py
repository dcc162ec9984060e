"""The person at the command line, as the audit names them."""

import getpass

from toolcrib.model import Actor, Caller

_EVERYTHING = Caller(id="local", key="local", permissions=frozenset({"*"}))


def command_line(caller: Caller = _EVERYTHING) -> Actor:
    """Return the actor of a command that works in its own process: the operating system's user."""
    try:
        name = getpass.getuser()
    except (KeyError, OSError, ImportError):  # a user without a name, as in some containers
        name = ""
    return Actor(kind="command_line", name=name, caller=caller, frontend="cli")
