"""`toolcrib import`: converts the server config of another MCP host."""

import os
from collections.abc import Sequence
from pathlib import Path

import click

from toolcrib.cli.backend import json_option
from toolcrib.cli.output import print_error, print_note, show_json


@click.command("import")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--output", type=click.Path(path_type=Path), metavar="FILE", help="Write the config to FILE.")
@click.option("--force", is_flag=True, help="Overwrite the output file if it exists.")
@json_option
def command(*, file: Path, output: Path | None, force: bool, as_json: bool) -> int:
    """Convert the MCP servers in FILE, a config of another MCP host, to a config, and print it.

    FILE is an mcp.json, a claude_desktop_config.json, or an mcp.json or settings.json of VS Code. What cannot
    be converted is reported on standard error. Exits with status 1 if no server was converted.
    """
    from toolcrib.config import ConfigError
    from toolcrib.config.imports import MAX_IMPORT_BYTES, ImportedServers, import_servers, servers_file

    if output is not None and output.exists() and not force:
        raise click.UsageError(f"{output} already exists; --force overwrites it")
    with file.open("rb") as opened:
        data = opened.read(MAX_IMPORT_BYTES + 1)
    try:
        found = import_servers(data, str(file))
        text = servers_file(found.servers)
    except ConfigError as error:
        found, text = ImportedServers(servers={}, warnings=tuple(str(fault) for fault in error.faults)), ""
    written = output if found.servers else None
    if written is not None:
        _write(written, text, force=force, private=found.private)
    if as_json:
        shown = None if written is None else str(written)
        show_json({"servers": found.servers, "warnings": found.warnings, "output": shown})
    else:
        _show(found.warnings, "" if written else text, nothing=not found.servers)
    return 0 if found.servers else 1


def _write(output: Path, text: str, *, force: bool, private: bool) -> None:
    """Write the config; one with secrets is readable only by its owner."""
    flags = os.O_WRONLY | os.O_CREAT | (os.O_TRUNC if force else os.O_EXCL)
    with os.fdopen(os.open(output, flags, 0o600 if private else 0o666), "w", encoding="utf-8") as file:
        if private:
            output.chmod(0o600)  # an existing file keeps its mode otherwise
        file.write(text)


def _show(warnings: Sequence[str], text: str, *, nothing: bool) -> None:
    click.echo("" if nothing else text, nl=False)
    for warning in warnings:
        print_note(warning)
    if nothing:
        print_error("no server was imported")
