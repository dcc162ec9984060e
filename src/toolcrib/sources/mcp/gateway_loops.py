"""Loop detection between gateways: drops entries that lead back to this one, records the others' path."""

from collections.abc import Sequence

from toolcrib.model import JsonObject
from toolcrib.model.gateways import GATEWAYS, MAX_GATEWAYS, gateways_in


class OwnGateway(ConnectionError):
    """The server at the other end is this gateway itself."""

    def __init__(self, server: str) -> None:
        super().__init__(
            f"{server} is this gateway itself, so all of its tools are here already; "
            "give the address of another server, or take it out"
        )


def leads_back(entry: JsonObject, own: str) -> bool:
    """Return whether an entry came through this gateway, or through too many gateways."""
    passed = gateways_in(entry.get("_meta"))
    return (own != "" and own in passed) or len(passed) >= MAX_GATEWAYS


def through(gateway: str, meta: JsonObject) -> JsonObject:
    """Return `_meta` with the listing gateway in front of the gateways already on the path."""
    return {**meta, GATEWAYS: [gateway, *gateways_in(meta)]} if gateway else meta


def passed_on(entries: Sequence[JsonObject], own: str, gateway: str) -> tuple[JsonObject, ...]:
    """Return the entries that do not lead back to this gateway, each with the path it came by."""
    kept = [entry for entry in entries if not leads_back(entry, own)]
    if not gateway:
        return tuple(kept)
    return tuple({**entry, "_meta": through(gateway, entry.get("_meta", {}))} for entry in kept)
