"""`toolcrib device`: simulates smart glasses in the terminal."""

import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from toolcrib.cli import resume_collector
from toolcrib.cli.backend import Target, json_option, with_running_gateway
from toolcrib.cli.discovery import explain_connection_errors, find_gateway
from toolcrib.cli.output import console, in_terminal

if TYPE_CHECKING:
    from toolcrib.cli.glasses.renderers import Renderer
    from toolcrib.cli.glasses.simulate import SimulationOptions


@click.group("device")
def command() -> None:
    """Simulate a device that apps can use."""


@command.command("simulate")
@with_running_gateway
@click.option(
    "--model",
    default="Simulated Glasses",
    show_default=True,
    metavar="NAME",
    help="Device model, such as 'Even Realities G1'. An unknown model has no hardware.",
)
@click.option(
    "--user", default="demo", show_default=True, metavar="ID", help="The user who wears the device."
)
@click.option("--language", metavar="TAG", help="Language of speech, such as en or de-DE.")
@click.option("--no-voice", is_flag=True, help="Print speech, without speaking it.")
@click.option(
    "--stay",
    type=click.FloatRange(0, 86_400),
    default=0.0,
    metavar="S",
    help="Keep the session for S seconds after the end of the input.",
)
@json_option
def simulate(
    target: Target, *, model: str, user: str, language: str | None, no_voice: bool, stay: float, as_json: bool
) -> int:
    """Simulate smart glasses in the terminal.

    They connect to a running gateway; without --url, to the one of the config here. They display what the
    user's apps show, with the device's number of lines, and speak with this machine's speech program, if it
    has one. Each typed line is sent to the apps as speech. The session ends with the input, or with Ctrl-C.
    In a pipe, each event is printed as plain lines; with --json, as a line of JSON.
    """
    if not (user and user.isprintable()):
        raise click.UsageError("--user must be printable text")
    url, key = find_gateway(target)
    from toolcrib.cli.glasses.simulate import SimulationOptions

    options = SimulationOptions(model=model, user=user, language=language, voice=not no_voice, stay=stay)
    with explain_connection_errors(target, url), _renderer(as_json=as_json) as renderer:
        _run(url, key, options, renderer)
    return 0


def _run(url: str, key: str, options: "SimulationOptions", renderer: "Renderer") -> None:
    import anyio

    from toolcrib.cli.glasses.simulate import open_connection
    from toolcrib.cli.glasses.simulate import simulate as simulate_device

    async def run() -> None:
        async with open_connection(url, key, options.user) as connection:
            resume_collector()
            await simulate_device(connection, options, renderer)

    try:
        anyio.run(run)
    except KeyboardInterrupt:
        # Ctrl-C before the session began; later it is handled as a signal, which ends the session.
        return


@contextmanager
def _renderer(*, as_json: bool) -> "Generator[Renderer]":
    from toolcrib.cli.glasses.renderers import JsonRenderer, LiveRenderer, PlainRenderer

    if as_json:
        yield JsonRenderer()
    elif in_terminal() and sys.stdin.isatty() and sys.platform != "win32":
        from rich.live import Live

        from toolcrib.cli.glasses.simulate import without_echo

        with without_echo(), Live(console=console(), auto_refresh=False) as live:
            yield LiveRenderer(live)
    else:
        yield PlainRenderer()
