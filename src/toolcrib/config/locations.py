"""Where the config file is, and where state is kept."""

from collections.abc import Mapping
from pathlib import Path

CONFIG = "TOOLCRIB_CONFIG"
HOME = "TOOLCRIB_HOME"


def find(explicit: str | None, env: Mapping[str, str]) -> Path | None:
    """Return the file to read: the one asked for, `$TOOLCRIB_CONFIG`, `./toolcrib.yaml`, or None.

    One that was asked for is returned even where it is missing: reading it says so.
    """
    if explicit:
        return Path(explicit)
    if env.get(CONFIG):
        return Path(env[CONFIG])
    usual = Path("toolcrib.yaml")
    return usual if usual.exists() else None


def home(env: Mapping[str, str]) -> Path:
    """Return where the database and the generated admin key are: `$TOOLCRIB_HOME`, else `./.toolcrib`."""
    return Path(env.get(HOME) or ".toolcrib")
