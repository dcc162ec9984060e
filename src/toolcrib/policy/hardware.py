"""A tool of an app that cannot run on the user's device is not there."""

from collections.abc import Hashable

from toolcrib.apps.hardware import check_compatibility, lacks
from toolcrib.interfaces import Reason
from toolcrib.model import Caller, Tool


class HardwareRule:
    """The rule: what an app requires of a device, the connected one must have. No device is no reason."""

    name = "hardware"

    def __init__(self, *, phone_microphone: bool = True) -> None:
        self.phone_microphone = phone_microphone
        """Whether the phone lends its microphone to devices that have none."""

    def why_not(self, tool: Tool, caller: Caller) -> Reason | None:
        """Hide what needs hardware the device lacks."""
        if not tool.hardware or caller.device is None:
            return None
        found = check_compatibility(
            tool.hardware, caller.device, phone_microphone=self.phone_microphone
        ).missing_required
        return Reason(self.name, lacks(found, caller.device)) if found else None

    def audience(self, caller: Caller) -> Hashable:
        """All that matters is what the device has; which model it is, does not."""
        return None if caller.device is None else caller.device.has
