"""`toolcrib config`: prints and checks the config in force."""

from functools import partial

import click

from toolcrib.cli.backend import config_option, json_option
from toolcrib.cli.output import print_line, show_json


@click.group("config")
def command() -> None:
    """Print or check the config: the file merged with run-time changes."""


@command.command("export")
@config_option
@json_option
def export(*, config: str | None, as_json: bool) -> int:
    """Print the config in force as a config file, with secrets redacted."""
    import anyio

    from toolcrib.cli.local_backend import read_document, with_overlay
    from toolcrib.config import export as config_text
    from toolcrib.config.secrets import mask

    document = anyio.run(partial(with_overlay, read_document(config), action="config.export"))
    if as_json:
        show_json(mask(document.raw))
    else:
        print_line(config_text(document.raw).rstrip("\n"))
    return 0


@command.command("check")
@config_option
@json_option
def check(*, config: str | None, as_json: bool) -> int:
    """Print all errors in the config file, and settings that have no effect."""
    from toolcrib.cli.check_run import config_findings, show

    return show(config_findings(config)[1], as_json=as_json)
