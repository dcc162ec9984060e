"""The table of commands, in the order of the help; the module of a command is imported on use."""

from importlib import import_module

import click

from toolcrib.version import VERSION

COMMANDS = {
    "serve": "serve:command",
    "stdio": "stdio:command",
    "check": "check:command",
    "tools": "tools:command",
    "call": "call:command",
    "explain": "explain:command",
    "usage": "tools:usage",
    "keys": "keys:command",
    "audit": "audit:command",
    "pins": "pins:command",
    "config": "config:command",
    "secrets": "secrets:command",
    "link": "keys:link",
    "reload": "reload:command",
    "import": "import_:command",
    "apps": "apps:command",
    "migrate": "migrate:command",
    "device": "device:command",
}
"""The module and attribute of each command."""


class Commands(click.Group):
    """A group that imports the module of a command on use."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Load one command."""
        if cmd_name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[cmd_name].partition(":")
        command: click.Command = getattr(import_module(f"toolcrib.cli.{module}"), attribute)
        return command


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit status: 0 success, 1 the tool or the check failed, 2 usage error.",
)
@click.version_option(VERSION, message="%(prog)s %(version)s")
def toolcrib() -> None:
    """A gateway between language models and tools: one catalog and one policy for every protocol.

    The config is the file given with -c, else $TOOLCRIB_CONFIG, else ./toolcrib.yaml, else a built-in
    default. State is stored in $TOOLCRIB_HOME, else ./.toolcrib. With --url or $TOOLCRIB_URL, and an API key
    in $TOOLCRIB_KEY, commands use a running gateway; otherwise each runs its own.
    """
