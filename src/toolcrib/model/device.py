"""Devices and their capabilities, and the hardware requirements of apps."""

from dataclasses import dataclass, field
from typing import Any, Literal

from toolcrib.model.json import JsonObject

HARDWARE = ("CAMERA", "DISPLAY", "MICROPHONE", "SPEAKER", "IMU", "BUTTON", "LIGHT", "WIFI")
"""All known kinds of hardware; no device has any other kind."""

Level = Literal["REQUIRED", "OPTIONAL"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """One kind of hardware that an app requires or can use."""

    type: str
    level: Level = "REQUIRED"
    description: str = ""

    def as_json(self) -> dict[str, Any]:
        """Serialize in the format of apps."""
        said: dict[str, Any] = {"type": self.type, "level": self.level}
        return {**said, "description": self.description} if self.description else said


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """A user's device: its kinds of hardware, and its full capabilities."""

    model: str = ""
    has: frozenset[str] = frozenset()
    """Kinds of `HARDWARE`."""
    capabilities: JsonObject = field(default_factory=dict[str, Any], hash=False, repr=False)
    """All capabilities, as sent to apps: `hasCamera`, `camera`, and so on."""
