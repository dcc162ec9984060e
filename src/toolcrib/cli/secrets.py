"""`toolcrib secrets`: re-encrypts or removes the secrets in the store."""

import os
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import click

from toolcrib.cli.backend import config_option, json_option
from toolcrib.cli.output import print_line, print_note, show_json
from toolcrib.model import JsonObject

if TYPE_CHECKING:
    from toolcrib.config import Document
    from toolcrib.observe import Action
    from toolcrib.store.sql.store import SqlStore

    Work = Callable[[SqlStore, Action], Awaitable[JsonObject]]


@click.group("secrets")
def command() -> None:
    """Re-encrypt or remove the secrets in the store.

    These are the settings of servers that were added at run time, and values derived from app keys.
    """


@command.command("rotate")
@config_option
@json_option
def rotate(*, config: str | None, as_json: bool) -> int:
    """Re-encrypt all secrets in the store with a new data key. Running gateways pick it up."""
    from toolcrib.cli.local_backend import read_document
    from toolcrib.config.open_store import wrapping_of
    from toolcrib.store.sql.secret_values import rotate

    document = read_document(config)

    async def work(store: "SqlStore", action: "Action") -> JsonObject:
        done: JsonObject = {"encrypted": await rotate(store.database, wrapping_of(document, os.environ))}
        action.after = done
        return done

    done = _in_store(document, "secrets.rotate", work, protected=True) or {"encrypted": 0}
    if as_json:
        show_json({"success": True, **done})
    else:
        print_line(f"{done['encrypted']} values were re-encrypted with a new key.")
    return 0


@command.command("remove")
@click.option("--yes", is_flag=True, help="Remove them; without this option they are only listed.")
@config_option
@json_option
def remove(*, yes: bool, config: str | None, as_json: bool) -> int:
    """Remove all encrypted secrets, for a store whose encryption secret is lost.

    Servers that were added at run time are removed. Apps stay, without a key: create a new one for each.
    """
    from toolcrib.cli.local_backend import read_document
    from toolcrib.store.sql.secret_values import encrypted_names, remove_encrypted

    async def work(store: "SqlStore", action: "Action") -> JsonObject:
        servers, apps = await (remove_encrypted if yes else encrypted_names)(store.database)
        done: JsonObject = {"servers": servers, "apps": apps}
        action.after = done
        return done

    named = "secrets.remove" if yes else None
    done = _in_store(read_document(config), named, work, protected=False) or {"servers": [], "apps": []}
    if as_json:
        show_json({"success": True, "removed": yes, **done})
        return 0
    for name in done["servers"]:
        print_line(f"server {name}: {'removed' if yes else 'would be removed'}")
    for name in done["apps"]:
        print_line(f"app {name}: key {'removed' if yes else 'would be removed'}")
    if not (done["servers"] or done["apps"]):
        print_note("The store has no encrypted secrets.")
    elif not yes:
        print_note("Nothing was removed. Run with --yes to remove them.")
    return 0


def _in_store(
    document: "Document", action: str | None, work: "Work", *, protected: bool
) -> JsonObject | None:
    """Run `work` with the store, if it exists, and audit the action; only `protected` work decrypts."""
    import anyio

    from toolcrib.cli.backend import command_line
    from toolcrib.cli.local_backend import has_store
    from toolcrib.config.open_store import open_store_of
    from toolcrib.observe import Action, Audit, Redactor
    from toolcrib.store import open_store

    if not has_store(document):
        return None

    async def run() -> JsonObject:
        store = await (open_store_of(document, os.environ) if protected else open_store(document.store))
        try:
            if action is None:
                return await work(store, Action())
            audit = Audit(store.audit, Redactor(document.secret_texts))
            async with audit.action(command_line(), action) as record:
                return await work(store, record)
        finally:
            await store.close()

    return anyio.run(run)
