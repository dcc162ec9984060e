"""`toolcrib link`: creates a one-time sign-in link for the web page."""

import click

from toolcrib.cli.backend import Target, with_running_gateway
from toolcrib.cli.discovery import with_running_backend
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
    link = with_running_backend(target, lambda backend: backend.sign_in_link())
    show_link(link)
    return 0
