"""TCP health probe: checks with one TCP handshake, without a request, that a server accepts connections."""

import socket
from collections.abc import Sequence

import anyio
from yarl import URL

from toolcrib.egress.client import why_no_connection
from toolcrib.egress.connect import connect, dial
from toolcrib.egress.egress import Egress
from toolcrib.egress.lookup import AddressBlocked, Look, ResolvedAddress, judged, look_up
from toolcrib.egress.response import NoConnection


class Probe:
    """Connects to the server of a URL and closes the connection at once."""

    def __init__(self, url: URL, egress: Egress, look: Look | None = None) -> None:
        self._host, self._port = url.raw_host or "", url.port or 0
        self._egress, self._look = egress, look or look_up

    async def connect(self, within: float) -> None:
        """Raise NoConnection unless the server accepts a connection within this many seconds.

        An address that the egress refuses raises nothing: a real request reports that with the reason.
        """
        try:
            with anyio.fail_after(within):
                await _connect(await judged(self._host, self._port, self._egress, self._look))
        except AddressBlocked:
            return
        except TimeoutError as error:
            raise NoConnection(f"no connection within {within:g} s") from error
        except OSError as error:
            raise NoConnection(why_no_connection(error)) from error


async def _connect(places: Sequence[ResolvedAddress]) -> None:
    if len(places) > 1:
        (await dial(places)).close()
        return
    # One address needs no Happy Eyeballs, which costs more than the connect itself.
    with socket.socket(places[0].family, socket.SOCK_STREAM) as opened:
        opened.setblocking(False)
        await connect(opened, places[0].address)
