"""Finds the running gateway of a config, by a file in its home folder."""

import fcntl
import json
import os
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from toolcrib.cli import resume_collector
from toolcrib.cli.backend import KEY_VARIABLE, Target, given_key
from toolcrib.errors import ToolcribError
from toolcrib.private_files import FILE_MODE, private_folder

if TYPE_CHECKING:
    from toolcrib.cli.remote_backend import RemoteBackend
    from toolcrib.config import Document

T = TypeVar("T")

# --- `gateway.json` in the home folder: the address of the gateway that runs with the state there ---

GATEWAY_FILE = "gateway.json"
MAX_GATEWAY_FILE_BYTES = 4096


@contextmanager
def publish_address(home: Path, address: str) -> Generator[None]:
    """Write the address of this gateway while the block runs; the file of an earlier gateway is unchanged.

    The kernel releases the lock when the process ends: an unlocked file belongs to no running gateway.
    """
    try:
        private_folder(home)
        descriptor = os.open(home / GATEWAY_FILE, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, FILE_MODE)
        os.fchmod(descriptor, FILE_MODE)
    except OSError:
        # The gateway also runs without this folder; commands then need --url.
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
    """Return the address of the gateway that runs with this home folder; None if none does."""
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


# --- The running gateway of a command: that of --url, else that of the config here ---

DEFAULT_PORT = 6740
_HOW_TO_REACH_ONE = (
    f"start one with `toolcrib serve`, or name one with --url and put its key in ${KEY_VARIABLE}"
)


def with_running_backend(target: Target, work: "Callable[[RemoteBackend], Awaitable[T]]") -> T:
    """Connect to the running gateway of a target and run `work` with it."""
    import anyio

    from toolcrib.cli.remote_backend import remote_backend

    url, key = find_gateway(target)

    async def run() -> T:
        async with remote_backend(url, key) as backend:
            resume_collector()
            return await work(backend)

    with explain_connection_errors(target, url):
        return anyio.run(run)


def find_gateway(target: Target) -> tuple[str, str]:
    """Return the address of the running gateway, and an API key for it."""
    if target.url is not None and target.key is not None:
        return target.url, target.key
    return _local_gateway(target.config)


@contextmanager
def explain_connection_errors(target: Target, url: str) -> Generator[None]:
    """Without --url, add to connection errors which gateway was tried, and how to select another."""
    try:
        yield
    except ToolcribError as error:
        message = {
            "NETWORK_ERROR": f"no gateway answers at {url}",
            "UNAUTHENTICATED": f"the gateway at {url} rejects the admin key found here",
        }.get(error.problem.code)
        if message is None or target.url is not None:
            raise
        raise click.UsageError(f"{message}; {_HOW_TO_REACH_ONE}") from error


def _local_gateway(config: str | None) -> tuple[str, str]:
    """Return the address at which the gateway of this config runs or would run, and an API key for it."""
    from toolcrib.config import home

    document = _read_config(config)
    key = given_key() if os.environ.get(KEY_VARIABLE) else _admin_key(document)
    if key is None:
        raise click.UsageError(f"no admin key was found here; {_HOW_TO_REACH_ONE}")
    return running_address(home(os.environ)) or _configured_address(document), key


def _configured_address(document: "Document | None") -> str:
    host, port = ("127.0.0.1", None) if document is None else (document.server.host, document.server.port)
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - compared, not listened on
    url_host = f"[{host}]" if ":" in host else host
    return f"http://{url_host}:{port or DEFAULT_PORT}"


def _read_config(config: str | None) -> "Document | None":
    """Read the config here; None if it is invalid, as the gateway then reports its errors."""
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
