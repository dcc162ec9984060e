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


async def with_overlay(document: Document) -> Document:
    """Return the document with the changes made at run time, which are kept in its store."""
    if not has_store(document):
        return document
    from toolcrib.store import open_store

    store = await open_store(document.store)
    try:
        version, overlay = await store.overlay.load()
    finally:
        await store.close()
    return load(document.source, env=os.environ, overlay=overlay) if version else document
