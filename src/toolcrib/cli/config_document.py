"""The config a command works with, and whether the store it names has been made yet."""

import os
from dataclasses import replace
from pathlib import Path

from toolcrib.config import Document, find, load

_SQLITE = "sqlite:///"
IN_MEMORY = "sqlite://"


def read_document(config: str | None) -> Document:
    """Read the config file that is in force here, or the built-in default."""
    return load(find(config, os.environ), env=os.environ)


def has_store(document: Document) -> bool:
    """Whether there is a store to open. One on a server counts as there."""
    return not document.store.startswith(_SQLITE) or Path(document.store[len(_SQLITE) :]).exists()


def traceless(document: Document) -> Document:
    """Return the document with a store in memory where none was made yet, so that looking leaves no trace."""
    return document if has_store(document) else replace(document, store=IN_MEMORY)


async def with_overlay(document: Document, *, action: str | None = None) -> Document:
    """Return the document with the changes made at run time, which are kept in its store.

    An `action` is recorded there in the audit; where there is no store, there is nothing to look after.
    """
    if not has_store(document):
        return document
    from toolcrib.cli.command_line_actor import command_line
    from toolcrib.config.open_store import open_store_of
    from toolcrib.observe import Action, Audit, Redactor

    store = await open_store_of(document, os.environ)
    try:
        version, overlay = await store.overlay.load()
        if action is not None:
            await Audit(store.audit, Redactor(document.secret_texts)).record(command_line(), action, Action())
    finally:
        await store.close()
    return load(document.source, env=os.environ, overlay=overlay) if version else document
