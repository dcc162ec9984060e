"""Paths of the config file and of the state folder."""

from collections.abc import Mapping
from pathlib import Path

CONFIG = "TOOLCRIB_CONFIG"
HOME = "TOOLCRIB_HOME"


def find(explicit: str | None, env: Mapping[str, str]) -> Path | None:
    """Return the config path: the explicit one, `$TOOLCRIB_CONFIG`, `./toolcrib.yaml`, or None.

    The first two are returned even if the file does not exist: reading it reports that.
    """
    if explicit:
        return Path(explicit)
    if env.get(CONFIG):
        return Path(env[CONFIG])
    usual = Path("toolcrib.yaml")
    return usual if usual.exists() else None


def home(env: Mapping[str, str]) -> Path:
    """Return the folder of the database and the generated admin key: `$TOOLCRIB_HOME` or `./.toolcrib`."""
    return Path(env.get(HOME) or ".toolcrib")
