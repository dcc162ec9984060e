"""What apps show: every layout is read as it was made, and none without bounds."""

from typing import Any

import pytest

from toolcrib.apps.errors import InvalidMessage
from toolcrib.apps.messages import (
    bitmap_animation,
    bitmap_view,
    clear_view,
    dashboard_card,
    double_text_wall,
    layout_lines,
    parse_layout,
    reference_card,
    text_wall,
)

SHOWN: list[tuple[dict[str, Any], list[str]]] = [
    (text_wall("one\ntwo"), ["one", "two"]),
    (double_text_wall("top", "bottom"), ["top", "bottom"]),
    (reference_card("Title", "text"), ["Title", "text"]),
    (dashboard_card("left", "right"), ["left  right"]),
    (bitmap_view("Qk0="), ["[picture]"]),
    (bitmap_animation(["a", "b"], interval_ms=100, repeat=True), ["[picture]"]),
    (clear_view(), []),
]


@pytest.mark.parametrize("layout, shown", SHOWN)
def test_every_layout_is_read_as_it_was_made_and_has_lines(layout: dict[str, Any], shown: list[str]) -> None:
    assert parse_layout(layout) == layout
    assert layout_lines(layout) == shown


def test_missing_fields_are_empty_and_unknown_ones_dropped() -> None:
    assert parse_layout({"layoutType": "reference_card", "title": "T", "colour": "red"}) == reference_card(
        "T", ""
    )


@pytest.mark.parametrize(
    "layout, path",
    [
        (None, "layout"),
        ({}, "layout.layoutType"),
        ({"layoutType": "hologram"}, "layout.layoutType"),
        ({"layoutType": ["text_wall"]}, "layout.layoutType"),
        ({"layoutType": "text_wall", "text": 3}, "layout.text"),
        ({"layoutType": "text_wall", "text": "x" * 20_000}, "layout.text"),
        ({"layoutType": "bitmap_view", "data": "x" * 800_000}, "layout.data"),
        ({"layoutType": "bitmap_animation"}, "layout.frames"),
        ({"layoutType": "bitmap_animation", "frames": ["a", 3]}, "layout.frames"),
        ({"layoutType": "bitmap_animation", "frames": ["a"] * 65}, "layout.frames"),
        ({"layoutType": "bitmap_animation", "frames": [], "interval": "fast"}, "layout.interval"),
        ({"layoutType": "bitmap_animation", "frames": [], "interval": -1}, "layout.interval"),
    ],
)
def test_any_other_is_refused_by_path(layout: object, path: str) -> None:
    with pytest.raises(InvalidMessage) as caught:
        parse_layout(layout)
    assert caught.value.path == path
