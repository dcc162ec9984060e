"""Rule: hides tools of apps that cannot run on the user's device."""

from collections.abc import Hashable

from toolcrib.apps.hardware import check_compatibility, missing_clause
from toolcrib.interfaces import Reason
from toolcrib.model import Caller, Tool


class HardwareRule:
    """Rule: the connected device must have the hardware that an app requires; no device hides nothing."""

    name = "hardware"

    def __init__(self, *, phone_microphone: bool = True) -> None:
        self.phone_microphone = phone_microphone
        """Whether the phone's microphone serves devices that have none."""

    def concerns(self, tool: Tool) -> bool:
        """Return whether the tool needs hardware."""
        return bool(tool.hardware)

    def why_not(self, tool: Tool, caller: Caller) -> Reason | None:
        """Hide tools that require hardware the device lacks."""
        if not tool.hardware or caller.device is None:
            return None
        found = check_compatibility(
            tool.hardware, caller.device, phone_microphone=self.phone_microphone
        ).missing_required
        return Reason(self.name, missing_clause(found, caller.device)) if found else None

    def audience(self, caller: Caller) -> Hashable:
        """Return the device's hardware, on which alone the rule depends; the model does not matter."""
        return None if caller.device is None else caller.device.has
