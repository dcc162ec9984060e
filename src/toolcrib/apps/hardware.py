"""Hardware compatibility: compares the requirements of an app with the capabilities of a device."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import orjson

from toolcrib.apps.profiles import EMPTY, profile
from toolcrib.model import HARDWARE, Device, JsonObject, Requirement
from toolcrib.names import hidden
from toolcrib.schemas import too_deep

# Characters of a model name.
LONGEST_MODEL = 200
# Bytes of JSON of a device description.
MOST_BYTES = 64 * 1024
# Nesting levels of a device description.
DEPTH = 32

_NOUNS = {
    "CAMERA": "a camera",
    "DISPLAY": "a display",
    "MICROPHONE": "a microphone",
    "SPEAKER": "a speaker",
    "IMU": "a motion sensor",
    "BUTTON": "a button",
    "LIGHT": "a light",
    "WIFI": "Wi-Fi",
}
FLAGS = {kind: "hasIMU" if kind == "IMU" else f"has{kind.capitalize()}" for kind in HARDWARE}
_NO_DEVICE = "No device is connected, so it cannot be said whether it has the hardware this app needs."


class InvalidDevice(ValueError):
    """An invalid device description; `path` locates the fault."""

    def __init__(self, path: str, message: str) -> None:
        super().__init__(f"{path}: {message}")
        self.path = path
        self.message = message


@dataclass(frozen=True, slots=True, kw_only=True)
class Compatibility:
    """The result of a compatibility check: the missing hardware."""

    missing_required: tuple[Requirement, ...] = ()
    missing_optional: tuple[Requirement, ...] = ()
    warnings: tuple[str, ...] = ()
    message: str = ""
    """Why the app cannot run, for the user; empty if it can."""

    @property
    def is_compatible(self) -> bool:
        """Whether the app can run: no required hardware is missing."""
        return not self.missing_required

    def as_json(self) -> dict[str, Any]:
        """Serialize in the format of the app protocol."""
        return {
            "isCompatible": self.is_compatible,
            "missingRequired": [each.as_json() for each in self.missing_required],
            "missingOptional": [each.as_json() for each in self.missing_optional],
            "warnings": list(self.warnings),
            "message": self.message,
        }


def check_compatibility(
    requirements: Sequence[Requirement], device: Device | None, *, phone_microphone: bool = True
) -> Compatibility:
    """Compare requirements with a device; without a device the result is compatible, with a warning.

    With `phone_microphone` every device has a microphone: that of the connected phone.
    """
    if not requirements:
        return Compatibility()
    if device is None:
        return Compatibility(warnings=(_NO_DEVICE,))
    missing = [each for each in requirements if not has(device, each.type, phone_microphone=phone_microphone)]
    required = tuple(each for each in missing if each.level == "REQUIRED")
    return Compatibility(
        missing_required=required,
        missing_optional=tuple(each for each in missing if each.level != "REQUIRED"),
        message=f"This app {lacks(required, device)}." if required else "",
    )


def has(device: Device, kind: str, *, phone_microphone: bool = True) -> bool:
    """Whether a device has a kind of hardware; no device has an unknown kind."""
    return kind in device.has or (phone_microphone and kind == "MICROPHONE")


def lacks(missing: Iterable[Requirement], device: Device) -> str:
    """Return the missing hardware as a clause: `needs a camera, which Mentra Mach1 does not have`."""
    return f"needs {_listed(missing)}, which {device.model or 'the connected device'} does not have"


def summary(requirements: Iterable[Requirement]) -> str:
    """Return required and optional hardware as a sentence; empty without requirements."""
    known = tuple(requirements)
    needs = _listed(each for each in known if each.level == "REQUIRED")
    uses = _listed(each for each in known if each.level != "REQUIRED")
    parts = [f"needs {needs}" if needs else "", f"can use {uses}" if uses else ""]
    said = "; ".join(part for part in parts if part)
    return f"{said[0].upper()}{said[1:]}." if said else ""


def _listed(requirements: Iterable[Requirement]) -> str:
    nouns = list(dict.fromkeys(_NOUNS.get(each.type, each.type) for each in requirements))
    return " and ".join(filter(None, [", ".join(nouns[:-1]), *nouns[-1:]]))


def device(given: str | JsonObject) -> Device:
    """Parse a device: a model name or its capabilities. An unknown model has no hardware."""
    if isinstance(given, str):
        return _named(given, "device")
    if not isinstance(given, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance] - external input
        raise InvalidDevice("device", "must be the name of a model, or an object of capabilities")
    _bounded(given)
    model = given.get("modelName", "")
    if not isinstance(model, str):
        raise InvalidDevice("device.modelName", "must be a string")
    if len(given) == 1 and model:
        return _named(model, "device.modelName")
    return _described(_checked(model, "device.modelName") if model else "", given)


def _named(model: str, path: str) -> Device:
    known = profile(model) or {**EMPTY, "modelName": _checked(model, path)}
    return _described(known["modelName"], known)


def _checked(model: str, path: str) -> str:
    if not model.strip() or len(model) > LONGEST_MODEL:
        raise InvalidDevice(path, f"must have 1 to {LONGEST_MODEL} characters")
    if found := hidden(model):
        raise InvalidDevice(path, f"holds a character that cannot be seen ({found})")
    return model.strip()


def _bounded(given: JsonObject) -> None:
    if found := too_deep(given, DEPTH):
        raise InvalidDevice("device", f"{found}; describe less")
    try:
        size = len(orjson.dumps(dict(given)))
    except TypeError as fault:
        raise InvalidDevice("device", f"is not JSON: {fault}") from None
    if size > MOST_BYTES:
        raise InvalidDevice("device", f"has {size:,} bytes of JSON, over {MOST_BYTES:,}; describe less")


def _described(model: str, given: JsonObject) -> Device:
    having = frozenset(kind for kind in HARDWARE if _flag(given, FLAGS[kind]))
    for kind in HARDWARE:
        _check_detail(given, kind, having)
    return Device(model=model, has=having, capabilities={**EMPTY, **given, "modelName": model})


def _flag(given: JsonObject, name: str) -> bool:
    value = given.get(name, False)
    if not isinstance(value, bool):
        raise InvalidDevice(f"device.{name}", "must be true or false")
    return value


def _check_detail(given: JsonObject, kind: str, having: frozenset[str]) -> None:
    """Reject details of absent hardware; details of present hardware are optional."""
    name = kind.lower()
    detail = cast("object", given.get(name))
    if detail is None:
        return
    if not isinstance(detail, Mapping):
        raise InvalidDevice(f"device.{name}", "must be an object, or null")
    if kind not in having:
        raise InvalidDevice(f"device.{name}", f"is described, so device.{FLAGS[kind]} must be true")
