"""The list of commands, in the order of the help; each is one module, imported on use."""

from importlib import import_module
from keyword import iskeyword

import click

from toolcrib.version import VERSION

COMMANDS = (
    "serve",
    "stdio",
    "check",
    "tools",
    "call",
    "explain",
    "usage",
    "keys",
    "audit",
    "pins",
    "config",
    "secrets",
    "link",
    "reload",
    "import",
    "apps",
    "migrate",
    "device",
)


class Commands(click.Group):
    """A group that imports a command from the module of its name, attribute `command`."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Load one command."""
        if cmd_name not in COMMANDS:
            return None
        file = f"{cmd_name}_" if iskeyword(cmd_name) else cmd_name
        command: click.Command = import_module(f"toolcrib.cli.{file}").command
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
