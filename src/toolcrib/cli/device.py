"""`toolcrib device`: a pair of glasses to wear in the terminal, for apps to show something on."""

import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from toolcrib.cli import startup_gc
from toolcrib.cli.backend import Target, json_option, with_running_gateway
from toolcrib.cli.discovery import explain_connection_errors, find_gateway
from toolcrib.cli.output import console, in_terminal

if TYPE_CHECKING:
    from toolcrib.cli.glasses.renderers import Renderer
    from toolcrib.cli.glasses.simulate import SimulationOptions


@click.group("device")
def command() -> None:
    """Wear a simulated device."""


@command.command("simulate")
@with_running_gateway
@click.option(
    "--model",
    default="Simulated Glasses",
    show_default=True,
    metavar="NAME",
    help="Which glasses, such as 'Even Realities G1'; unknown ones have no hardware at all.",
)
@click.option("--user", default="demo", show_default=True, metavar="ID", help="Who wears them.")
@click.option("--language", metavar="TAG", help="The language that is spoken, such as en or de-DE.")
@click.option("--no-voice", is_flag=True, help="Only write what is said.")
@click.option(
    "--stay",
    type=click.FloatRange(0, 86_400),
    default=0.0,
    metavar="S",
    help="Go on for S seconds after the end of the input.",
)
@json_option
def simulate(
    target: Target,
    *,
    model: str,
    user: str,
    language: str | None,
    no_voice: bool,
    stay: float,
    as_json: bool,
) -> int:
    """Wear a pair of glasses in the terminal.

    They belong to a running gateway; without --url it is the one that the config here would start on this
    machine. They show what the user's apps show, with the real number of lines, and speak through this
    machine's voice where it has one. What is typed is heard by the apps, line by line. The session ends with
    the input, or with Ctrl-C. In a pipe every event is a few plain lines, with --json a line of JSON.
    """
    if not (user and user.isprintable()):
        raise click.UsageError("--user must be printable text")
    url, key = find_gateway(target)
    from toolcrib.cli.glasses.simulate import SimulationOptions

    wish = SimulationOptions(model=model, user=user, language=language, voice=not no_voice, stay=stay)
    with explain_connection_errors(target, url), _shown(as_json=as_json) as show:
        _wear(url, key, wish, show)
    return 0


def _wear(url: str, key: str, wish: "SimulationOptions", show: "Renderer") -> None:
    import anyio

    from toolcrib.cli.glasses.simulate import open_connection
    from toolcrib.cli.glasses.simulate import simulate as worn

    async def run() -> None:
        async with open_connection(url, key, wish.user) as line:
            startup_gc.resume_collector()
            await worn(line, wish, show)

    try:
        anyio.run(run)
    except KeyboardInterrupt:
        # Ctrl-C before the glasses were on; later ones take them off.
        return


@contextmanager
def _shown(*, as_json: bool) -> "Generator[Renderer]":
    from toolcrib.cli.glasses.renderers import DrawnRenderer, JsonRenderer, PlainRenderer

    if as_json:
        yield JsonRenderer()
    elif in_terminal() and sys.stdin.isatty() and sys.platform != "win32":
        from rich.live import Live

        from toolcrib.cli.glasses.simulate import without_echo

        with without_echo(), Live(console=console(), auto_refresh=False) as live:
            yield DrawnRenderer(live)
    else:
        yield PlainRenderer()
