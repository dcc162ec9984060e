"""What a tool of a mini-app is told beside its arguments: for whom, and the session it can show things in."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from toolcrib.sdk.context import ToolContext

if TYPE_CHECKING:
    from toolcrib.sdk.app.session import AppSession


@dataclass(frozen=True, slots=True, kw_only=True)
class AppContext(ToolContext):
    """A ToolContext of a call that came to an app. `report` goes to the caller over the app's socket."""

    activated_for_tool: bool = False
    """Whether the app was started because of this call."""
    call_id: str = ""
    session: "AppSession | None" = field(default=None, repr=False, compare=False)
    """The user's session; None where the app has none at the moment."""
