"""Resource subscriptions: reports the wanted resources to sources and delivers their update notifications."""

import logging
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

import anyio

from toolcrib.interfaces import Source, SubscribableSource
from toolcrib.supervisor.failure_reasons import reason

log = logging.getLogger(__name__)

PATIENCE = 30.0
"""Seconds that a source has to accept a changed set of subscriptions."""

Wanted = Callable[[str], frozenset[str]]
"""Returns the resource URIs of a source that have subscribers now."""
Updated = Callable[[str, str], None]
"""Callback for an updated resource: source id and URI. Must not block."""


def _nothing(_source: str) -> frozenset[str]:
    """Return no subscriptions; the default until `attend` is called."""
    return frozenset()


def _unheard(_source: str, _uri: str) -> None:
    """Discard the notification; the default until `attend` is called."""


class ResourceUpdates:
    """Connects the subscribers of resources with the sources that publish updates."""

    def __init__(
        self, start: Callable[[Callable[[Source], Coroutine[Any, Any, None]], Source], None]
    ) -> None:
        self._start = start
        self.wanted: Wanted = _nothing
        self.updated: Updated = _unheard

    def attend(self, wanted: Wanted, updated: Updated) -> None:
        """Set the lookup of wanted subscriptions and the callback for updates."""
        self.wanted, self.updated = wanted, updated

    def agree(self, source: Source) -> None:
        """Start a task that sends the current subscriptions to a source that is up."""
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
