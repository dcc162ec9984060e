"""In-process publish/subscribe: a change signal calls the listeners of its topic synchronously."""

import logging
from collections.abc import Callable

from toolcrib.interfaces import ChangeSignal

Hear = Callable[[ChangeSignal], None]

_log = logging.getLogger(__name__)


class ChangeSignals:
    """The registry of listeners by topic."""

    def __init__(self) -> None:
        self._listeners: dict[str, dict[object, Hear]] = {}

    def publish(self, change: ChangeSignal) -> None:
        """Call every listener of the topic; an exception of one is logged, and the others still run."""
        for hear in tuple(self._listeners.get(change.topic, {}).values()):
            try:
                hear(change)
            except Exception:  # noqa: BLE001 - boundary: it must not affect the publisher or the other listeners
                _log.exception("a listener to %r failed on %r", change.topic, change.about)

    def listen(self, topic: str, hear: Hear) -> Callable[[], None]:
        """Subscribe a callback to a topic; return a function that unsubscribes it."""
        listeners = self._listeners.setdefault(topic, {})
        # A unique token, since the same function may subscribe twice.
        token = object()
        listeners[token] = hear

        def stop() -> None:
            listeners.pop(token, None)

        return stop
