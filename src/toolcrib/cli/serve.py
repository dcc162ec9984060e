"""`toolcrib serve`: the gateway over HTTP, with MCP, REST and the web page."""

import os
from contextlib import ExitStack

import click

from toolcrib.cli.backend import config_option, demo_option


@click.command("serve")
@config_option
@click.option("--host", metavar="H", help="The address to listen on; else the config's, else 127.0.0.1.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    metavar="P",
    help="The port, 0 for any; else the config's, else the first free of 6740 to 6749.",
)
@demo_option
def command(*, config: str | None, host: str | None, port: int | None, demo: bool) -> int:
    """Run the gateway and print how to reach it. Ctrl-C ends it."""
    import anyio

    from toolcrib.cli.local_backend import read_document
    from toolcrib.config import with_bind_address

    document = with_bind_address(read_document(config), host=host, port=port)

    async def run() -> None:
        from toolcrib.cli.backend import command_line
        from toolcrib.cli.discovery import publish_address
        from toolcrib.cli.running_gateway import Banner, running_gateway
        from toolcrib.config import home
        from toolcrib.server import serve

        _prepare_process()
        with ExitStack() as stack:
            async with running_gateway(document, demo=demo) as runtime:
                welcome = Banner(runtime, os.environ, demo=demo)
                if welcome.shows_link:
                    async with runtime.console.audit.action(command_line(), "signin.link"):
                        pass

                def listening(address: str) -> None:
                    stack.enter_context(publish_address(home(os.environ), address))
                    welcome.show(address)

                await serve(runtime, host=host, port=port, on_listening=listening)

    try:
        anyio.run(run, backend_options={"use_uvloop": True})
    except KeyboardInterrupt:
        # Ctrl-C before anyone could connect; later ones end the server in its own time.
        return 0
    return 0


def _prepare_process() -> None:
    """Adjust the limits and settings that hold for the whole process, which a library must leave alone."""
    from toolcrib.descriptors import raise_descriptor_limit
    from toolcrib.http.memory import map_large_blocks
    from toolcrib.interpreter_lock import shorten_switch_interval

    raise_descriptor_limit()
    map_large_blocks()
    shorten_switch_interval()
