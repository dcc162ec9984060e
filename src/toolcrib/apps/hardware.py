"""Hardware of devices: known device profiles, and whether a device meets an app's requirements."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import orjson

from toolcrib.model import HARDWARE, Device, JsonObject, Requirement
from toolcrib.names import invisible_character
from toolcrib.schemas import too_deep

# --- Capabilities of the known device models, in the format of the app protocol ---

_NO_HARDWARE: dict[str, Any] = {
    "hasCamera": False,
    "camera": None,
    "hasDisplay": False,
    "display": None,
    "hasMicrophone": False,
    "microphone": None,
    "hasSpeaker": False,
    "speaker": None,
    "hasIMU": False,
    "imu": None,
    "hasButton": False,
    "button": None,
    "hasLight": False,
    "light": None,
    "hasWifi": False,
    "power": {"hasExternalBattery": False},
}


def _size(width: int, height: int) -> dict[str, int]:
    return {"width": width, "height": height}


def _model(name: str, **has: Any) -> JsonObject:
    return {"modelName": name, **_NO_HARDWARE, **has}


def _green_display(
    *, count: int, size: dict[str, int], lines: int, pictures: bool, wide: int | None = None
) -> dict[str, Any]:
    return {
        "hasDisplay": True,
        "display": {
            "count": count,
            "isColor": False,
            "color": "green",
            "canDisplayBitmap": pictures,
            "resolution": size,
            **({"fieldOfView": {"horizontal": wide}} if wide else {}),
            "maxTextLines": lines,
            "adjustBrightness": True,
        },
    }


def _microphone(count: int, *, notices_speech: bool = False) -> dict[str, Any]:
    return {"hasMicrophone": True, "microphone": {"count": count, "hasVAD": notices_speech}}


def _buttons(count: int, *events: str, kind: str = "press", capacitive: bool = False) -> dict[str, Any]:
    each = {"type": kind, "events": list(events), "isCapacitive": capacitive}
    return {"hasButton": True, "button": {"count": count, "buttons": [each] * count}}


def _speaker() -> dict[str, Any]:
    return {"hasSpeaker": True, "speaker": {"count": 1, "isPrivate": False}}


_HEAD_MOTION: dict[str, Any] = {"hasIMU": True, "imu": None}
"""An IMU that only detects a raised head."""
_PRESSES = ("press", "double_press", "long_press")
_EVEN = _green_display(count=2, size=_size(640, 200), wide=25, lines=5, pictures=True)
_SMALL = _green_display(count=1, size=_size(640, 480), wide=30, lines=7, pictures=False)

NO_HARDWARE = _model("None")
"""An unknown device: it has no hardware."""

_G2 = _model(
    "Even Realities G2",
    **_EVEN,
    **_microphone(1),
    **_HEAD_MOTION,
    **_buttons(
        1,
        "TAP",
        "DOUBLE_TAP",
        "TRIPLE_TAP",
        "PRESS_HOLD",
        "SWIPE_UP",
        "SWIPE_DOWN",
        kind="swipe1d",
        capacitive=True,
    ),
)

_LIVE_CAMERA = {
    "resolution": _size(1920, 1080),
    "hasHDR": False,
    "hasFocus": True,
    "video": {
        "canRecord": True,
        "canStream": True,
        "supportedStreamTypes": ["rtmp"],
        "supportedResolutions": [_size(1920, 1080), _size(1280, 720), _size(640, 480)],
    },
}

_LIVE_LIGHTS = [
    {
        "id": "privacy",
        "purpose": "privacy",
        "isFullColor": False,
        "color": "white",
        "position": "front_facing",
    },
    {
        "id": "user_feedback",
        "purpose": "user_feedback",
        "isFullColor": True,
        "color": "rgb",
        "position": "user_facing",
    },
]

_LIVE = _model(
    "Mentra Live",
    hasCamera=True,
    camera=_LIVE_CAMERA,
    **_microphone(1, notices_speech=True),
    **_speaker(),
    hasIMU=True,
    imu={"axisCount": 6, "hasAccelerometer": True, "hasCompass": False, "hasGyroscope": True},
    **_buttons(1, *_PRESSES),
    hasLight=True,
    light={"count": 2, "lights": _LIVE_LIGHTS},
    hasWifi=True,
)

_MENTRA_DISPLAY = _model(
    "Mentra Display",
    **_green_display(count=1, size=_size(640, 480), wide=30, lines=7, pictures=True),
    **_microphone(1, notices_speech=True),
)

_NIMO = _model(
    "NIMO",
    **_green_display(count=2, size=_size(640, 400), lines=5, pictures=True),
    **_microphone(2),
    **_HEAD_MOTION,
    **_buttons(2, *_PRESSES, capacitive=True),
)

PROFILES: Mapping[str, JsonObject] = {
    each["modelName"]: each
    for each in (
        _model("Even Realities G1", **_EVEN, **_microphone(1), **_HEAD_MOTION),
        _G2,
        _LIVE,
        _model("Vuzix Z100", **_SMALL),
        _model("Mentra Mach1", **_SMALL),
        _MENTRA_DISPLAY,
        _NIMO,
        _model("Simulated Glasses", **_SMALL, **_microphone(1), **_speaker(), **_buttons(1, "press")),
        NO_HARDWARE,
    )
}
"""Capabilities by model name."""

_ALIASES = {
    "Even G1": "Even Realities G1",
    "G1": "Even Realities G1",
    "Even G2": "Even Realities G2",
    "G2": "Even Realities G2",
    "Mach1": "Mentra Mach1",
    "Mentra Nex": "Mentra Display",
    "Z100": "Vuzix Z100",
}


def _normalized(model: str) -> str:
    return " ".join(model.replace("_", " ").replace("-", " ").casefold().split())


_BY_NAME = {_normalized(name): PROFILES[name] for name in PROFILES} | {
    _normalized(alias): PROFILES[name] for alias, name in _ALIASES.items()
}


def profile(model: str) -> JsonObject | None:
    """Return a model by its current or a former name, ignoring case; None if it is unknown."""
    return _BY_NAME.get(_normalized(model))


# --- Hardware compatibility: compares the requirements of an app with the capabilities of a device ---

# Characters of a model name.
MAX_MODEL_CHARS = 200
# Bytes of JSON of a device description.
MAX_DEVICE_BYTES = 64 * 1024
# Nesting levels of a device description.
MAX_DEVICE_DEPTH = 32

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
CAPABILITY_FLAGS = {kind: "hasIMU" if kind == "IMU" else f"has{kind.capitalize()}" for kind in HARDWARE}
_NO_DEVICE = "No device is connected, so it is unknown whether it has the hardware this app needs."


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
    missing = [
        each
        for each in requirements
        if not has_hardware(device, each.type, phone_microphone=phone_microphone)
    ]
    required = tuple(each for each in missing if each.level == "REQUIRED")
    return Compatibility(
        missing_required=required,
        missing_optional=tuple(each for each in missing if each.level != "REQUIRED"),
        message=f"This app {missing_clause(required, device)}." if required else "",
    )


def has_hardware(device: Device, kind: str, *, phone_microphone: bool = True) -> bool:
    """Whether a device has a kind of hardware; no device has an unknown kind."""
    return kind in device.has or (phone_microphone and kind == "MICROPHONE")


def missing_clause(missing: Iterable[Requirement], device: Device) -> str:
    """Return the missing hardware as a clause: `needs a camera, which Mentra Mach1 does not have`."""
    return f"needs {_enumeration(missing)}, which {device.model or 'the connected device'} does not have"


def summary(requirements: Iterable[Requirement]) -> str:
    """Return required and optional hardware as a sentence; empty without requirements."""
    known = tuple(requirements)
    needs = _enumeration(each for each in known if each.level == "REQUIRED")
    uses = _enumeration(each for each in known if each.level != "REQUIRED")
    parts = [f"needs {needs}" if needs else "", f"can use {uses}" if uses else ""]
    sentence = "; ".join(part for part in parts if part)
    return f"{sentence[0].upper()}{sentence[1:]}." if sentence else ""


def _enumeration(requirements: Iterable[Requirement]) -> str:
    nouns = list(dict.fromkeys(_NOUNS.get(each.type, each.type) for each in requirements))
    return " and ".join(filter(None, [", ".join(nouns[:-1]), *nouns[-1:]]))


def parse_device(value: str | JsonObject) -> Device:
    """Parse a device: a model name or its capabilities. An unknown model has no hardware."""
    if isinstance(value, str):
        return _device_of_model(value, "device")
    if not isinstance(value, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance] - external input
        raise InvalidDevice("device", "must be the name of a model, or an object of capabilities")
    _check_size(value)
    model = value.get("modelName", "")
    if not isinstance(model, str):
        raise InvalidDevice("device.modelName", "must be a string")
    if len(value) == 1 and model:
        return _device_of_model(model, "device.modelName")
    return _device_with(_checked_model(model, "device.modelName") if model else "", value)


def _device_of_model(model: str, path: str) -> Device:
    known = profile(model) or {**NO_HARDWARE, "modelName": _checked_model(model, path)}
    return _device_with(known["modelName"], known)


def _checked_model(model: str, path: str) -> str:
    if not model.strip() or len(model) > MAX_MODEL_CHARS:
        raise InvalidDevice(path, f"must have 1 to {MAX_MODEL_CHARS} characters")
    if found := invisible_character(model):
        raise InvalidDevice(path, f"contains an invisible character ({found})")
    return model.strip()


def _check_size(capabilities: JsonObject) -> None:
    if found := too_deep(capabilities, MAX_DEVICE_DEPTH):
        raise InvalidDevice("device", f"{found}; describe less")
    try:
        size = len(orjson.dumps(dict(capabilities)))
    except TypeError as fault:
        raise InvalidDevice("device", f"is not JSON: {fault}") from None
    if size > MAX_DEVICE_BYTES:
        raise InvalidDevice("device", f"has {size:,} bytes of JSON, over {MAX_DEVICE_BYTES:,}; describe less")


def _device_with(model: str, capabilities: JsonObject) -> Device:
    having = frozenset(kind for kind in HARDWARE if _flag(capabilities, CAPABILITY_FLAGS[kind]))
    for kind in HARDWARE:
        _check_detail(capabilities, kind, having)
    return Device(model=model, has=having, capabilities={**NO_HARDWARE, **capabilities, "modelName": model})


def _flag(capabilities: JsonObject, name: str) -> bool:
    value = capabilities.get(name, False)
    if not isinstance(value, bool):
        raise InvalidDevice(f"device.{name}", "must be true or false")
    return value


def _check_detail(capabilities: JsonObject, kind: str, having: frozenset[str]) -> None:
    """Reject details of absent hardware; details of present hardware are optional."""
    name = kind.lower()
    detail = cast("object", capabilities.get(name))
    if detail is None:
        return
    if not isinstance(detail, Mapping):
        raise InvalidDevice(f"device.{name}", "must be an object, or null")
    if kind not in having:
        raise InvalidDevice(
            f"device.{name}", f"is described, so device.{CAPABILITY_FLAGS[kind]} must be true"
        )
