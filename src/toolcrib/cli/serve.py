"""`toolcrib serve`: runs the gateway over HTTP, with MCP, REST and the web page."""

import os
from contextlib import ExitStack

import click

from toolcrib.cli.backend import config_option, demo_option


@click.command("serve")
@config_option
@click.option(
    "--host", metavar="H", help="Listen on this address. Default: that of the config, else 127.0.0.1."
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    metavar="P",
    help="Listen on this port, 0 for any. Default: that of the config, else the first free of 6740 to 6749.",
)
@demo_option
def command(*, config: str | None, host: str | None, port: int | None, demo: bool) -> int:
    """Run the gateway and print its addresses. Ctrl-C stops it."""
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
                banner = Banner(runtime, os.environ, demo=demo)
                if banner.shows_link:
                    async with runtime.console.audit.action(command_line(), "signin.link"):
                        pass

                def listening(address: str) -> None:
                    stack.enter_context(publish_address(home(os.environ), address))
                    banner.show(address)

                await serve(runtime, host=host, port=port, on_listening=listening)

    try:
        anyio.run(run, backend_options={"use_uvloop": True})
    except KeyboardInterrupt:
        # Ctrl-C during startup; later it is handled as a signal, which drains the server.
        return 0
    return 0


def _prepare_process() -> None:
    """Change limits and settings of the whole process, which an embedded gateway must not change."""
    from toolcrib.descriptors import raise_descriptor_limit
    from toolcrib.http.memory import map_large_blocks
    from toolcrib.interpreter_lock import shorten_switch_interval

    raise_descriptor_limit()
    map_large_blocks()
    shorten_switch_interval()
