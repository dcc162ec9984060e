"""Layouts an app can display on a user's device."""

from typing import Literal

from toolcrib.apps import layouts
from toolcrib.model import JsonObject
from toolcrib.sdk.app.outgoing_messages import OutgoingMessages

View = Literal["main", "dashboard"]


class Layouts:
    """Each method replaces what the app displayed before; `duration_ms` limits the time.

    They raise SessionEnded if the session is over.
    """

    def __init__(self, wire: OutgoingMessages) -> None:
        self._wire = wire

    async def show_text_wall(
        self, text: str, *, view: View = "main", duration_ms: float | None = None
    ) -> None:
        """Show a text that fills the display."""
        await self._show(layouts.text_wall(text), view, duration_ms)

    async def show_double_text_wall(
        self, top: str, bottom: str, *, view: View = "main", duration_ms: float | None = None
    ) -> None:
        """Show two texts, one above the other."""
        await self._show(layouts.double_text_wall(top, bottom), view, duration_ms)

    async def show_reference_card(
        self, title: str, text: str, *, view: View = "main", duration_ms: float | None = None
    ) -> None:
        """Show a text under its title."""
        await self._show(layouts.reference_card(title, text), view, duration_ms)

    async def show_dashboard_card(
        self, left: str, right: str, *, view: View = "dashboard", duration_ms: float | None = None
    ) -> None:
        """Show two short texts side by side, by default on the dashboard."""
        await self._show(layouts.dashboard_card(left, right), view, duration_ms)

    async def clear(self, *, view: View = "main") -> None:
        """Show nothing."""
        await self._show(layouts.clear_view(), view, None)

    async def _show(self, layout: JsonObject, view: View, duration_ms: float | None) -> None:
        await self._wire.display(layout, view, duration_ms)
