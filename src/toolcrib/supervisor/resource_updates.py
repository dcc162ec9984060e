"""What sources are asked to tell of, and who hears it: which of their resources have changed."""

import logging
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

import anyio

from toolcrib.interfaces import Source, SubscribableSource
from toolcrib.supervisor.failure_reasons import reason

log = logging.getLogger(__name__)

PATIENCE = 30.0
"""How long a source may take to agree on what it tells, in seconds."""

Wanted = Callable[[str], frozenset[str]]
"""Which resources of a source are followed now."""
Updated = Callable[[str, str], None]
"""Told of a source, and of a resource of it that has changed. Must not wait."""


def _nothing(_source: str) -> frozenset[str]:
    """Nobody follows anything yet."""
    return frozenset()


def _unheard(_source: str, _uri: str) -> None:
    """Nobody hears of anything yet."""


class ResourceUpdates:
    """Between those who follow resources and the sources that tell of them."""

    def __init__(
        self, start: Callable[[Callable[[Source], Coroutine[Any, Any, None]], Source], None]
    ) -> None:
        self._start = start
        self.wanted: Wanted = _nothing
        self.updated: Updated = _unheard

    def attend(self, wanted: Wanted, updated: Updated) -> None:
        """Go by what `wanted` says from now on, and tell `updated`."""
        self.wanted, self.updated = wanted, updated

    def agree(self, source: Source) -> None:
        """Have a source that is up told what is followed now."""
        if isinstance(source, SubscribableSource):
            self._start(self._agree, source)

    async def _agree(self, source: Source) -> None:
        refused: Mapping[str, Exception] = {}
        try:
            with anyio.move_on_after(PATIENCE):
                if isinstance(source, SubscribableSource):
                    refused = await source.follow(self.wanted(source.id))
        except Exception as error:  # noqa: BLE001 - the boundary: what one source raises must not end the others
            log.warning("%s does not tell what has changed: %s", source.id, reason(error))
        for uri, error in refused.items():
            log.warning("%s does not tell of changes to %s: %s", source.id, uri[:200], reason(error))
