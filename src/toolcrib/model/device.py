"""A device and what it can do, and what an app needs of one."""

from dataclasses import dataclass, field
from typing import Any, Literal

from toolcrib.model.json import JsonObject

HARDWARE = ("CAMERA", "DISPLAY", "MICROPHONE", "SPEAKER", "IMU", "BUTTON", "LIGHT", "WIFI")
"""Every kind of hardware a device can have; what is none of these, no device has."""

Level = Literal["REQUIRED", "OPTIONAL"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """One kind of hardware an app needs, or would use."""

    type: str
    level: Level = "REQUIRED"
    description: str = ""

    def as_json(self) -> dict[str, Any]:
        """Spell it as apps do."""
        said: dict[str, Any] = {"type": self.type, "level": self.level}
        return {**said, "description": self.description} if self.description else said


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """A device a user wears: which kinds of hardware it has, and all it says of itself."""

    model: str = ""
    has: frozenset[str] = frozenset()
    """Kinds of `HARDWARE`."""
    capabilities: JsonObject = field(default_factory=dict[str, Any], hash=False, repr=False)
    """Everything it can do, as apps are told: `hasCamera`, `camera`, and so on."""
