"""Naming rules for app packages and their tools, reported as definition faults."""

from collections.abc import Iterator

from toolcrib.apps.definition_errors import DefinitionFault
from toolcrib.errors import Refused
from toolcrib.model import APPS
from toolcrib.names import canonical

RESERVED = (APPS, "crib", "local")
"""Our own source names; an app with such a name would share their namespace."""

_PACKAGE = "a package is made of a-z, 0-9, '.', '_' and '-', starts with a letter or digit, up to 63"


def name_faults(name: object, path: str) -> Iterator[DefinitionFault]:
    """Yield the faults of a tool's name."""
    if not isinstance(name, str):
        yield DefinitionFault(path, "is required, and must be a string")
    elif not name:
        yield DefinitionFault(path, "must not be empty")
    elif ":" in name:
        yield DefinitionFault(
            path, "must hold no colon: it stands between the app's package and the tool's name"
        )
    elif said := _unfit("app", name):
        yield DefinitionFault(path, said)


def package_faults(package: str, path: str) -> Iterator[DefinitionFault]:
    """Yield the faults of an app's package name."""
    if not package or ":" in package or _unfit(package, "tool"):
        yield DefinitionFault(path, f"is no package: {_PACKAGE}")
    elif package in RESERVED:
        yield DefinitionFault(path, f"must not be one of {', '.join(RESERVED)}: these are ours")


def _unfit(source: str, local: str) -> str | None:
    """Return why the two parts do not form a valid name; None if they do."""
    try:
        canonical(source, local)
    except Refused as refused:
        return refused.problem.message.partition(": ")[2].removesuffix(". Write 'source:tool'.")
    return None
