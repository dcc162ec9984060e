"""Capabilities of the known device models, in the format of the app protocol."""

from collections.abc import Mapping
from typing import Any

from toolcrib.model import JsonObject

_NOTHING: dict[str, Any] = {
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
    return {"modelName": name, **_NOTHING, **has}


def _green(
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


_HEAD_UP: dict[str, Any] = {"hasIMU": True, "imu": None}
"""An IMU that only detects a raised head."""
_PRESSES = ("press", "double_press", "long_press")
_EVEN = _green(count=2, size=_size(640, 200), wide=25, lines=5, pictures=True)
_SMALL = _green(count=1, size=_size(640, 480), wide=30, lines=7, pictures=False)

EMPTY = _model("None")
"""An unknown device: it has no hardware."""

_G2 = _model(
    "Even Realities G2",
    **_EVEN,
    **_microphone(1),
    **_HEAD_UP,
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
    **_green(count=1, size=_size(640, 480), wide=30, lines=7, pictures=True),
    **_microphone(1, notices_speech=True),
)

_NIMO = _model(
    "NIMO",
    **_green(count=2, size=_size(640, 400), lines=5, pictures=True),
    **_microphone(2),
    **_HEAD_UP,
    **_buttons(2, *_PRESSES, capacitive=True),
)

PROFILES: Mapping[str, JsonObject] = {
    each["modelName"]: each
    for each in (
        _model("Even Realities G1", **_EVEN, **_microphone(1), **_HEAD_UP),
        _G2,
        _LIVE,
        _model("Vuzix Z100", **_SMALL),
        _model("Mentra Mach1", **_SMALL),
        _MENTRA_DISPLAY,
        _NIMO,
        _model("Simulated Glasses", **_SMALL, **_microphone(1), **_speaker(), **_buttons(1, "press")),
        EMPTY,
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


def _folded(model: str) -> str:
    return " ".join(model.replace("_", " ").replace("-", " ").casefold().split())


_KNOWN = {_folded(name): PROFILES[name] for name in PROFILES} | {
    _folded(alias): PROFILES[name] for alias, name in _ALIASES.items()
}


def profile(model: str) -> JsonObject | None:
    """Return a model by its current or a former name, ignoring case; None if it is unknown."""
    return _KNOWN.get(_folded(model))
