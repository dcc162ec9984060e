"""The running gateway a command is for: the one that --url names, else the one of the config here."""

import os
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from toolcrib.cli.runtime_file import running_address
from toolcrib.cli.target import KEY, Target, given_key
from toolcrib.errors import ToolcribError

if TYPE_CHECKING:
    from toolcrib.config import Document

USUAL_PORT = 6740
_NAMED = f"start one with `toolcrib serve`, or name one with --url and put its key in ${KEY}"


def reached(place: Target) -> tuple[str, str]:
    """Return the address of the running gateway, and the key that opens it."""
    if place.url is not None and place.key is not None:
        return place.url, place.key
    return _nearby(place.config)


@contextmanager
def opening(place: Target, url: str) -> Generator[None]:
    """Say of a gateway that nobody named where it was looked for, if it cannot be opened there."""
    try:
        yield
    except ToolcribError as error:
        said = {
            "NETWORK_ERROR": f"no gateway answers at {url}",
            "UNAUTHENTICATED": f"the gateway at {url} does not take the key found here",
        }.get(error.problem.code)
        if said is None or place.url is not None:
            raise
        raise click.UsageError(f"{said}; {_NAMED}") from error


def _nearby(config: str | None) -> tuple[str, str]:
    """Return where the gateway of this folder runs, or would by its config, and the key that opens it."""
    from toolcrib.config import home

    document = _document(config)
    key = given_key() if os.environ.get(KEY) else _admin_key(document)
    if key is None:
        raise click.UsageError(f"there is no admin key here to open a gateway with; {_NAMED}")
    return running_address(home(os.environ)) or _configured(document), key


def _configured(document: "Document | None") -> str:
    host, port = ("127.0.0.1", None) if document is None else (document.server.host, document.server.port)
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - where it listens, not where we do
    spelled = f"[{host}]" if ":" in host else host
    return f"http://{spelled}:{port or USUAL_PORT}"


def _document(config: str | None) -> "Document | None":
    """Read the config here; None where it has faults, since the gateway will say which."""
    from toolcrib.cli.config_document import read_document
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
    from toolcrib.identity.admin import FILE

    given = os.environ.get(ADMIN_KEY) or (None if document is None else document.auth.admin_key)
    if not given and not (home(os.environ) / FILE).exists():
        return None
    return admin_key(given, home(os.environ), new_key)
