"""A user's settings of an app."""

from collections.abc import Callable
from functools import partial
from typing import Any, cast

from toolcrib.apps.messages import settings_of
from toolcrib.model import Json
from toolcrib.sdk.app.handler_queue import HandlerQueue

Watcher = Callable[[dict[str, Any]], Any]
"""Called with the changes: new values by key, None for removed settings."""


class UserSettings:
    """The current settings, updated by notifications of the gateway."""

    def __init__(self, errands: HandlerQueue) -> None:
        self._errands = errands
        self._values: dict[str, Any] = {}
        self._watchers: list[Watcher] = []

    def get(self, key: str, default: Json = None) -> Json:
        """Return one setting."""
        return self._values.get(key, default)

    def all(self) -> dict[str, Any]:
        """Return a copy of all settings."""
        return dict(self._values)

    def on_change(self, handler: Watcher) -> None:
        """Subscribe a handler, sync or async, to changes."""
        self._watchers.append(handler)

    def take(self, given: Json) -> None:
        """Replace all settings, from an object or a list of `{key, value}`, and notify the handlers."""
        values = dict(cast("dict[str, Any]", given)) if isinstance(given, dict) else settings_of(given)
        before, self._values = self._values, values
        changed = {key: values.get(key) for key in {**before, **values} if before.get(key) != values.get(key)}
        if changed:
            for watcher in self._watchers:
                self._errands.add(partial(watcher, dict(changed)))
