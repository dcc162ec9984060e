"""`toolcrib migrate`: converts old tool definitions in a file or in the store."""

import os
from collections.abc import Sequence
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING, Any

import click

from toolcrib.cli.backend import config_option, json_option
from toolcrib.cli.output import print_error, print_line, print_note, show_json

if TYPE_CHECKING:
    from toolcrib.apps.file_migration import ToolMigration

# --- Atomic writes: a reader sees the old file or the new one, never a part ---


def replace_file(file: Path, data: bytes) -> None:
    """Replace the content of an existing file atomically; its mode is kept, symbolic links are followed."""
    target = file.resolve(strict=True)
    with NamedTemporaryFile(dir=target.parent, prefix=f".{target.name}.", delete=False) as written:
        new = Path(written.name)
        try:
            written.write(data)
            written.flush()
            os.fsync(written.fileno())
            new.chmod(target.stat().st_mode & 0o7777)
            new.replace(target)
        except BaseException:
            new.unlink(missing_ok=True)
            raise


# --- The command ---

MAX_DEFINITION_FILE_BYTES = 64 << 20
"""Maximum size of a file to migrate."""


@click.command("migrate")
@click.argument("file", type=click.Path(path_type=Path), required=False)
@click.option("--store", "in_store", is_flag=True, help="Migrate the apps in the store of the config.")
@click.option("--dry-run", is_flag=True, help="Print the changes without making them.")
@click.option("--undo", is_flag=True, help="Restore the original definitions.")
@config_option
@json_option
def command(
    *, file: Path | None, in_store: bool, dry_run: bool, undo: bool, config: str | None, as_json: bool
) -> int:
    """Migrate app tools from the old format (id, parameters) to the new one (name, inputSchema).

    FILE is JSON: an array of tools, or an object with such an array as `tools`. The originals are stored
    beside each tool, in the file or in the store, and --undo restores them. Tools in the new format are not
    changed. If a tool is invalid, nothing is changed, every error is printed with its path, and the exit
    status is 1.
    """
    from toolcrib.apps.file_migration import UnmigratableFile

    if in_store == (file is not None):
        raise click.UsageError("give either FILE or --store")
    try:
        if file is None:
            changes = _migrate_store(config, undo=undo, write=not dry_run)
        else:
            changes = _migrate_file(file, undo=undo, write=not dry_run)
    except UnmigratableFile as error:
        faults = [fault.as_json() for fault in error.faults]
        _show([], faults, undo=undo, dry_run=dry_run, as_json=as_json)
        return 1
    _show(changes, [], undo=undo, dry_run=dry_run, as_json=as_json)
    return 0


def _migrate_file(file: Path, *, undo: bool, write: bool) -> "Sequence[ToolMigration]":
    from toolcrib.apps import file_migration

    before = _read_text(file)
    after = file_migration.undo(before) if undo else file_migration.migrate(before)
    if write and after.text != before:
        replace_file(file, after.text.encode())
    return after.changes


def _read_text(file: Path) -> str:
    from toolcrib.apps.errors import DefinitionFault
    from toolcrib.apps.file_migration import UnmigratableFile

    with file.open("rb") as opened:
        data = opened.read(MAX_DEFINITION_FILE_BYTES + 1)
    if len(data) > MAX_DEFINITION_FILE_BYTES:
        raise UnmigratableFile(DefinitionFault("file", f"has more than {MAX_DEFINITION_FILE_BYTES:,} bytes"))
    try:
        return data.decode()
    except UnicodeDecodeError as fault:
        raise UnmigratableFile(DefinitionFault("file", f"is not UTF-8 at byte {fault.start}")) from None


def _migrate_store(config: str | None, *, undo: bool, write: bool) -> "Sequence[ToolMigration]":
    import anyio

    from toolcrib.cli.backend import command_line
    from toolcrib.cli.local_backend import has_store, read_document
    from toolcrib.config.open_store import open_store_of
    from toolcrib.observe import Audit, Redactor
    from toolcrib.store.migrating import migrate_apps

    document = read_document(config)
    if not has_store(document):
        return ()

    async def work() -> "Sequence[ToolMigration]":
        store = await open_store_of(document, os.environ)
        try:
            if not write:
                return await migrate_apps(store.apps, undo=undo, write=False)
            audit = Audit(store.audit, Redactor(document.secret_texts))
            async with audit.action(command_line(), "store.migrate") as action:
                changes = await migrate_apps(store.apps, undo=undo)
                action.after = {"undo": undo, "changed": [change.path for change in changes]}
                return changes
        finally:
            await store.close()

    return anyio.run(work)


def _show(
    changes: "Sequence[ToolMigration]",
    faults: Sequence[dict[str, Any]],
    *,
    undo: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    if as_json:
        changed = [{"path": each.path, "before": each.before, "after": each.after} for each in changes]
        done = {"undo": undo, "dryRun": dry_run, "changed": changed, "faults": faults}
        show_json({"success": not faults, **done})
        return
    for fault in faults:
        print_error(f"{fault['path']}: {fault['message']}")
    for change in changes:
        _show_change(change, undo=undo, dry_run=dry_run)
    if faults:
        print_note("Nothing was changed.")
    elif not changes:
        print_note("No migrated tool was found." if undo else "All tools have the new format.")
    elif dry_run:
        print_note(f"{len(changes)} would change. Run without --dry-run to change them.")


def _show_change(change: "ToolMigration", *, undo: bool, dry_run: bool) -> None:
    name = change.after.get("name", change.after.get("id"))
    done = "restored" if undo else "migrated"
    print_line(f"{change.path} {name}: {f'would be {done}' if dry_run else done}")
    if not dry_run:
        return
    from difflib import ndiff

    for line in ndiff(_json_lines(change.before), _json_lines(change.after)):
        if not line.startswith("?"):
            print_line(f"  {line}")


def _json_lines(definition: Any) -> list[str]:
    import json

    return json.dumps(definition, indent=2, ensure_ascii=False).splitlines()
