"""Every command there is, in the order of the help; each is one file, imported when it is needed."""

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
    """Finds a command in the file of its name, where it is called `command`."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Name the commands."""
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
    epilog="Exit codes: 0 done, 1 the tool or the check failed, 2 wrong use.",
)
@click.version_option(VERSION, message="%(prog)s %(version)s")
def toolcrib() -> None:
    """Stand between language models and tools: one catalog, one set of rules, every protocol.

    The config is the file given by -c, else $TOOLCRIB_CONFIG, else ./toolcrib.yaml, else a built-in default.
    State is kept in $TOOLCRIB_HOME, else ./.toolcrib. With --url or $TOOLCRIB_URL, and a key in
    $TOOLCRIB_KEY, commands act on a running gateway, else in their own process.
    """
