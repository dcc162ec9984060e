"""`toolcrib link`: creates a one-time sign-in link for the web page."""

import click

from toolcrib.cli.backend import Target, with_running_gateway
from toolcrib.cli.discovery import explain_connection_errors, find_gateway
from toolcrib.cli.output import may_show_secrets, show_link

_NEEDS_TERMINAL = (
    "a sign-in link is printed only to a terminal, never to a pipe, a file or a log; "
    "run this command in a terminal (`ssh -t`, `docker exec -it`), or send POST /api/signin"
)


@click.command("link")
@with_running_gateway
def command(target: Target) -> int:
    """Print a link that signs you in to the web page of a running gateway, once, within 10 minutes.

    Without --url, it is the gateway that runs with the state in this folder, and its admin key is used. The
    page gets the permissions of the key that creates the link, and is signed out when that key is revoked.
    """
    if not may_show_secrets():
        raise click.UsageError(_NEEDS_TERMINAL)
    url, key = find_gateway(target)
    with explain_connection_errors(target, url):
        link = _make_link(url, key)
    show_link(link)
    return 0


def _make_link(url: str, key: str) -> str:
    import anyio

    from toolcrib.cli.remote_backend import remote_backend

    async def ask() -> str:
        async with remote_backend(url, key) as backend:
            return await backend.sign_in_link()

    return anyio.run(ask)
