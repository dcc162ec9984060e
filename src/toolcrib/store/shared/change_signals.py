"""Change signals within this process: whoever listens to a topic hears of it at once."""

import logging
from collections.abc import Callable

from toolcrib.interfaces import ChangeSignal

Hear = Callable[[ChangeSignal], None]

_log = logging.getLogger(__name__)


class ChangeSignals:
    """Who listens to what."""

    def __init__(self) -> None:
        self._listeners: dict[str, dict[object, Hear]] = {}

    def publish(self, change: ChangeSignal) -> None:
        """Tell every listener of the topic; one that fails is logged and stops nobody."""
        for hear in tuple(self._listeners.get(change.topic, {}).values()):
            try:
                hear(change)
            except Exception:  # noqa: BLE001 - boundary: the publisher and the other listeners have no part in it
                _log.exception("a listener to %r failed on %r", change.topic, change.about)

    def listen(self, topic: str, hear: Hear) -> Callable[[], None]:
        """Hear of changes of a topic; call the answer to stop."""
        listeners = self._listeners.setdefault(topic, {})
        # A token of its own, since the same function may listen twice.
        token = object()
        listeners[token] = hear

        def stop() -> None:
            listeners.pop(token, None)

        return stop
