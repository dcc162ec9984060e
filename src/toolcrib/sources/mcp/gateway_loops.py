"""What a server that is a gateway lists: what of it leads back to us, and the way the rest has come."""

from collections.abc import Sequence

from toolcrib.model import JsonObject
from toolcrib.model.gateways import GATEWAYS, MAX_GATEWAYS, gateways_in


class OwnGateway(ConnectionError):
    """The server that was connected to is this gateway itself."""

    def __init__(self, server: str) -> None:
        super().__init__(
            f"{server} is this gateway itself, so all of its tools are here already; "
            "give the address of another server, or take it out"
        )


def leads_back(entry: JsonObject, own: str) -> bool:
    """Whether what is listed came through our own gateway, or through too many."""
    passed = gateways_in(entry.get("_meta"))
    return (own != "" and own in passed) or len(passed) >= MAX_GATEWAYS


def through(gateway: str, meta: JsonObject) -> JsonObject:
    """Return `_meta` with the gateway it was listed by before those it came through earlier."""
    return {**meta, GATEWAYS: [gateway, *gateways_in(meta)]} if gateway else meta


def passed_on(entries: Sequence[JsonObject], own: str, gateway: str) -> tuple[JsonObject, ...]:
    """Return what does not lead back to us, each with the way it has come."""
    kept = [entry for entry in entries if not leads_back(entry, own)]
    if not gateway:
        return tuple(kept)
    return tuple({**entry, "_meta": through(gateway, entry.get("_meta", {}))} for entry in kept)
