"""Every layout is drawn on every kind of display as expected, row by row."""

import pytest

from toolcrib.apps import messages
from toolcrib.apps.hardware import PROFILES, parse_device
from toolcrib.cli.glasses.glasses import Screen, add_frame, device_screen, draw_layout
from toolcrib.model import JsonObject

FOX = "The quick brown fox jumps over the lazy dog. " * 7

WALL = messages.text_wall(FOX)
DOUBLE = messages.double_text_wall("Now playing", FOX)
CARD = messages.reference_card(
    "Reminders", "1. Buy two bottles of milk\n\n2. Call Ada about the gate, and ask for Bob"
)
DASHBOARD = messages.dashboard_card("10:41\nMonday", "Rain until the evening, 12 degrees")
PICTURE = messages.bitmap_view("Qk0=")

GOLDEN = {
    ("Even Realities G1", "wall"): """\
┌─ main ───────────────────────────────────┐
│ The quick brown fox jumps over the lazy  │
│ dog. The quick brown fox jumps over the  │
│ lazy dog. The quick brown fox jumps over │
│ the lazy dog. The quick brown fox jumps  │
│ over the lazy dog. The quick brown fox…  │
└──────────────────────────────────────────┘""",
    ("Vuzix Z100", "wall"): """\
┌─ main ───────────────────────────────────┐
│ The quick brown fox jumps over the lazy  │
│ dog. The quick brown fox jumps over the  │
│ lazy dog. The quick brown fox jumps over │
│ the lazy dog. The quick brown fox jumps  │
│ over the lazy dog. The quick brown fox   │
│ jumps over the lazy dog. The quick brown │
│ fox jumps over the lazy dog. The quick…  │
└──────────────────────────────────────────┘""",
    ("Even Realities G1", "double"): """\
┌─ main ───────────────────────────────────┐
│ Now playing                              │
│                                          │
│                                          │
│ The quick brown fox jumps over the lazy  │
│ dog. The quick brown fox jumps over the… │
└──────────────────────────────────────────┘""",
    ("Vuzix Z100", "double"): """\
┌─ main ───────────────────────────────────┐
│ Now playing                              │
│                                          │
│                                          │
│                                          │
│ The quick brown fox jumps over the lazy  │
│ dog. The quick brown fox jumps over the  │
│ lazy dog. The quick brown fox jumps ove… │
└──────────────────────────────────────────┘""",
    ("Even Realities G1", "card"): """\
┌─ main ───────────────────────────────────┐
│ Reminders                                │
│ 1. Buy two bottles of milk               │
│                                          │
│ 2. Call Ada about the gate, and ask for  │
│ Bob                                      │
└──────────────────────────────────────────┘""",
    ("Vuzix Z100", "card"): """\
┌─ main ───────────────────────────────────┐
│ Reminders                                │
│ 1. Buy two bottles of milk               │
│                                          │
│ 2. Call Ada about the gate, and ask for  │
│ Bob                                      │
│                                          │
│                                          │
└──────────────────────────────────────────┘""",
    ("Even Realities G1", "dashboard"): """\
┌─ main ───────────────────────────────────┐
│ 10:41                     Rain until the │
│ Monday               evening, 12 degrees │
│                                          │
│                                          │
│                                          │
└──────────────────────────────────────────┘""",
    ("Vuzix Z100", "dashboard"): """\
┌─ main ───────────────────────────────────┐
│ 10:41                     Rain until the │
│ Monday               evening, 12 degrees │
│                                          │
│                                          │
│                                          │
│                                          │
│                                          │
└──────────────────────────────────────────┘""",
    ("Even Realities G1", "clear"): """\
┌─ main ───────────────────────────────────┐
│                                          │
│                                          │
│                                          │
│                                          │
│                                          │
└──────────────────────────────────────────┘""",
    ("Even Realities G1", "picture"): """\
┌─ main ───────────────────────────────────┐
│ [picture]                                │
│                                          │
│                                          │
│                                          │
│                                          │
└──────────────────────────────────────────┘""",
}
LAYOUTS: dict[str, JsonObject] = {
    "wall": WALL,
    "double": DOUBLE,
    "card": CARD,
    "dashboard": DASHBOARD,
    "clear": messages.clear_view(),
    "picture": PICTURE,
}


def on(model: str, layout: JsonObject) -> str:
    screen = device_screen(parse_device(model).capabilities)
    assert screen is not None
    return "\n".join(add_frame(draw_layout(layout, screen), screen, "main"))


@pytest.mark.requirement("D16")
@pytest.mark.parametrize("model, name", GOLDEN)
def test_layout_is_drawn_as_on_the_model(model: str, name: str) -> None:
    assert on(model, LAYOUTS[name]) == GOLDEN[model, name]


def test_known_models_have_their_number_of_lines() -> None:
    found = {model: device_screen(parse_device(model).capabilities) for model in PROFILES}
    seven, five = Screen(40, 7), Screen(40, 5)
    assert found["Even Realities G1"] == found["Even Realities G2"] == found["NIMO"] == five
    assert found["Vuzix Z100"] == found["Simulated Glasses"] == found["Mentra Display"] == seven
    assert found["Mentra Live"] is None


@pytest.mark.parametrize(
    "display, expected",
    [
        (None, Screen(40, 5)),
        ({"maxTextLines": 3, "resolution": {"width": 320}}, Screen(20, 3)),
        ({"maxTextLines": 10**9, "resolution": {"width": 10**9}}, Screen(120, 40)),
        ({"maxTextLines": -1, "resolution": {"width": 1}}, Screen(10, 5)),
        ({"maxTextLines": True, "resolution": "wide"}, Screen(40, 5)),
    ],
)
def test_size_of_custom_device_is_limited(display: object, expected: Screen) -> None:
    assert device_screen({"hasDisplay": True, "display": display}) == expected


def test_device_without_display_has_no_screen() -> None:
    assert device_screen({"hasDisplay": False, "display": {"maxTextLines": 5}}) is None
    assert device_screen(parse_device("Something new").capabilities) is None


def test_wide_characters_take_two_columns() -> None:
    assert draw_layout(messages.text_wall("日本語日本語日"), Screen(10, 2)) == ("日本語日本", "語日")


def test_too_long_word_is_split() -> None:
    assert draw_layout(messages.text_wall(f"so {'x' * 25}"), Screen(10, 4)) == (
        "so",
        "x" * 10,
        "x" * 10,
        "x" * 5,
    )


def test_title_is_cut_to_one_line() -> None:
    title = messages.reference_card("A title that goes on and on", "text")
    assert draw_layout(title, Screen(20, 2)) == ("A title that goes o…", "text")
    assert add_frame(("",), Screen(10, 1), "com.example.reminder")[0] == "┌─ com.exa… ─┐"


def test_control_characters_are_replaced() -> None:
    wall = messages.text_wall("\x1b[2Jgone\x07 a\tb\r\nc\u202e")
    assert draw_layout(wall, Screen(20, 3)) == ("\ufffd[2Jgone\ufffd a b", "c\ufffd", "")


@pytest.mark.parametrize("layout", [{}, {"layoutType": 7}, {"layoutType": "hologram"}])
def test_unsupported_layout_is_named(layout: JsonObject) -> None:
    assert draw_layout(layout, Screen(20, 1)) == (f"[{layout.get('layoutType')}]",)


def test_one_line_display_shows_the_beginning() -> None:
    screen = Screen(20, 1)
    assert draw_layout(messages.double_text_wall("above", "below"), screen) == ("above",)
    assert draw_layout(messages.reference_card("title", "text"), screen) == ("title",)
    assert draw_layout({"layoutType": "text_wall", "text": None}, screen) == ("",)
