"""Finds the gateway that runs for a config file, by its runtime file."""

import fcntl
import json
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from toolcrib.cli.backend import KEY_VARIABLE, Target, given_key
from toolcrib.errors import ToolcribError
from toolcrib.private_files import FILE_MODE, private_folder

if TYPE_CHECKING:
    from toolcrib.config import Document

# --- The file `gateway.json` in the home folder: the address of the gateway that runs with the state there
# ---

GATEWAY_FILE = "gateway.json"
MAX_GATEWAY_FILE_BYTES = 4096


@contextmanager
def publish_address(home: Path, address: str) -> Generator[None]:
    """Write the address of this gateway while the block runs; a gateway that was here first keeps the file.

    The lock ends with the process, however that ends: a file that is not locked is of no running gateway.
    """
    try:
        private_folder(home)
        descriptor = os.open(home / GATEWAY_FILE, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, FILE_MODE)
        os.fchmod(descriptor, FILE_MODE)
    except OSError:
        # A gateway runs without such a folder too; its commands then need --url.
        yield
        return
    with os.fdopen(descriptor, "r+b") as file:
        mine = _try_lock(file.fileno(), fcntl.LOCK_EX)
        if mine:
            file.truncate()
            file.write(json.dumps({"url": address, "pid": os.getpid()}).encode())
            file.flush()
        try:
            yield
        finally:
            if mine:
                file.truncate(0)


def running_address(home: Path) -> str | None:
    """Return the address of the gateway that runs with this home folder; None where none does."""
    try:
        descriptor = os.open(home / GATEWAY_FILE, os.O_RDONLY | os.O_NOFOLLOW)
    except OSError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        if _try_lock(file.fileno(), fcntl.LOCK_SH):
            return None
        try:
            found = json.loads(file.read(MAX_GATEWAY_FILE_BYTES))["url"]
        except (ValueError, LookupError, TypeError):
            return None
    return found if isinstance(found, str) else None


def _try_lock(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


# --- The running gateway a command is for: the one that --url names, else the one of the config here ---

DEFAULT_PORT = 6740
_HOW_TO_REACH_ONE = (
    f"start one with `toolcrib serve`, or name one with --url and put its key in ${KEY_VARIABLE}"
)


def find_gateway(target: Target) -> tuple[str, str]:
    """Return the address of the running gateway, and the key that opens it."""
    if target.url is not None and target.key is not None:
        return target.url, target.key
    return _local_gateway(target.config)


@contextmanager
def explain_connection_errors(target: Target, url: str) -> Generator[None]:
    """Say of a gateway that nobody named where it was looked for, if it cannot be opened there."""
    try:
        yield
    except ToolcribError as error:
        said = {
            "NETWORK_ERROR": f"no gateway answers at {url}",
            "UNAUTHENTICATED": f"the gateway at {url} does not take the key found here",
        }.get(error.problem.code)
        if said is None or target.url is not None:
            raise
        raise click.UsageError(f"{said}; {_HOW_TO_REACH_ONE}") from error


def _local_gateway(config: str | None) -> tuple[str, str]:
    """Return where the gateway of this folder runs, or would by its config, and the key that opens it."""
    from toolcrib.config import home

    document = _read_config(config)
    key = given_key() if os.environ.get(KEY_VARIABLE) else _admin_key(document)
    if key is None:
        raise click.UsageError(f"there is no admin key here to open a gateway with; {_HOW_TO_REACH_ONE}")
    return running_address(home(os.environ)) or _configured_address(document), key


def _configured_address(document: "Document | None") -> str:
    host, port = ("127.0.0.1", None) if document is None else (document.server.host, document.server.port)
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - where it listens, not where we do
    spelled = f"[{host}]" if ":" in host else host
    return f"http://{spelled}:{port or DEFAULT_PORT}"


def _read_config(config: str | None) -> "Document | None":
    """Read the config here; None where it has faults, since the gateway will say which."""
    from toolcrib.cli.local_backend import read_document
    from toolcrib.config import ConfigError, find

    try:
        return read_document(config)
    except ConfigError:
        file = find(config, os.environ)
        if file is None or not file.is_file():
            raise
        return None


def _admin_key(document: "Document | None") -> str | None:
    from toolcrib.config import home
    from toolcrib.config.load import ADMIN_KEY
    from toolcrib.identity import admin_key, new_key
    from toolcrib.identity.local_callers import FILE

    given = os.environ.get(ADMIN_KEY) or (None if document is None else document.auth.admin_key)
    if not given and not (home(os.environ) / FILE).exists():
        return None
    return admin_key(given, home(os.environ), new_key)
