"""The context of a mini-app's tool call: the user, and the session for output."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from toolcrib.sdk.context import ToolContext

if TYPE_CHECKING:
    from toolcrib.sdk.app.session import AppSession


@dataclass(frozen=True, slots=True, kw_only=True)
class AppContext(ToolContext):
    """A ToolContext of a call to an app. `report` is sent to the caller over the app's WebSocket."""

    activated_for_tool: bool = False
    """Whether this call started the app."""
    call_id: str = ""
    session: "AppSession | None" = field(default=None, repr=False, compare=False)
    """The user's session; None if the app has none at the moment."""
