"""Display layouts of apps: constructors, bounded parsing, and rendering as lines of text."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from toolcrib.apps.errors import InvalidMessage
from toolcrib.model import Json, JsonObject

# Characters of one text.
LONGEST_TEXT = 16_384
LARGEST_PICTURE = 768 * 1024
"""Characters of one encoded image, or of all frames of an animation."""
# Frames of an animation.
MOST_PICTURES = 64

_TEXTS: Mapping[str, tuple[str, ...]] = {
    "text_wall": ("text",),
    "double_text_wall": ("topText", "bottomText"),
    "reference_card": ("title", "text"),
    "dashboard_card": ("leftText", "rightText"),
    "bitmap_view": (),
    "bitmap_animation": (),
    "clear_view": (),
}


def text_wall(text: str) -> dict[str, Any]:
    """Build a layout with one text that fills the display."""
    return {"layoutType": "text_wall", "text": text}


def double_text_wall(top: str, bottom: str) -> dict[str, Any]:
    """Build a layout with two texts, one above the other."""
    return {"layoutType": "double_text_wall", "topText": top, "bottomText": bottom}


def reference_card(title: str, text: str) -> dict[str, Any]:
    """Build a layout with a text under its title."""
    return {"layoutType": "reference_card", "title": title, "text": text}


def dashboard_card(left: str, right: str) -> dict[str, Any]:
    """Build a layout with two short texts side by side."""
    return {"layoutType": "dashboard_card", "leftText": left, "rightText": right}


def bitmap_view(data: str) -> dict[str, Any]:
    """Build a layout with an image."""
    return {"layoutType": "bitmap_view", "data": data}


def bitmap_animation(frames: Sequence[str], *, interval_ms: float, repeat: bool) -> dict[str, Any]:
    """Build a layout with a sequence of images."""
    shown = {"frames": list(frames), "interval": interval_ms, "repeat": repeat}
    return {"layoutType": "bitmap_animation", **shown}


def clear_view() -> dict[str, Any]:
    """Build an empty layout."""
    return {"layoutType": "clear_view"}


def read_layout(given: Json) -> dict[str, Any]:
    """Parse a layout: of a known type, with valid fields, and within the size limits."""
    if not isinstance(given, Mapping):
        raise InvalidMessage("layout", "must be an object")
    layout = cast("JsonObject", given)
    kind = layout.get("layoutType")
    if not isinstance(kind, str) or kind not in _TEXTS:
        raise InvalidMessage("layout.layoutType", f"must be one of {', '.join(_TEXTS)}")
    if kind == "bitmap_view":
        return bitmap_view(_text(layout, "data", LARGEST_PICTURE))
    if kind == "bitmap_animation":
        return _animation(layout)
    texts = {name: _text(layout, name, LONGEST_TEXT) for name in _TEXTS[kind]}
    return {"layoutType": kind, **texts}


def lines(layout: JsonObject) -> list[str]:
    """Render a layout for a text-only display, without line wrapping."""
    kind = layout["layoutType"]
    if kind in ("bitmap_view", "bitmap_animation"):
        return ["[picture]"]
    texts = [str(layout[name]) for name in _TEXTS[kind]]
    if kind == "dashboard_card":
        return ["  ".join(text for text in texts if text)]
    return [line for text in texts for line in text.split("\n")]


def _text(layout: JsonObject, name: str, most: int) -> str:
    value = layout.get(name, "")
    if not isinstance(value, str):
        raise InvalidMessage(f"layout.{name}", "must be a string")
    if len(value) > most:
        raise InvalidMessage(f"layout.{name}", f"has {len(value):,} characters, over {most:,}")
    return value


def _animation(layout: JsonObject) -> dict[str, Any]:
    frames = layout.get("frames")
    if not isinstance(frames, list) or not all(isinstance(each, str) for each in cast("list[Json]", frames)):
        raise InvalidMessage("layout.frames", "must be an array of strings")
    pictures = cast("list[str]", frames)
    if len(pictures) > MOST_PICTURES or sum(map(len, pictures)) > LARGEST_PICTURE:
        bounds = f"{MOST_PICTURES} pictures and {LARGEST_PICTURE:,} characters"
        raise InvalidMessage("layout.frames", f"must keep within {bounds}")
    interval = layout.get("interval", 0)
    if isinstance(interval, bool) or not isinstance(interval, int | float) or not 0 <= interval <= 3_600_000:
        raise InvalidMessage("layout.interval", "must be milliseconds, at most an hour")
    return bitmap_animation(pictures, interval_ms=interval, repeat=layout.get("repeat") is True)
