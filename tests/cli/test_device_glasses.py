"""Simulated glasses: events change displays, transcript and status, which are drawn as text."""

import pytest

from toolcrib.apps import messages
from toolcrib.apps.hardware import parse_device
from toolcrib.cli.glasses.glasses import Glasses, device_screen
from toolcrib.cli.glasses.renderers import draw_glasses
from toolcrib.model import JsonObject

PACKAGE = "com.example.reminder"


def make_glasses(model: str = "Even Realities G1") -> Glasses:
    chosen = parse_device(model)
    return Glasses(chosen, "ada", device_screen(chosen.capabilities))


def show(glasses: Glasses, text: str, *, now: float = 0, **more: object) -> list[str]:
    data = {"packageName": PACKAGE, "view": "main", "layout": messages.text_wall(text), **more}
    return glasses.apply_event("display", data, now)


@pytest.mark.parametrize(
    "model, expected",
    [
        ("Even Realities G1", "ada wears Even Realities G1: 5 lines of 40 characters, phone speaks"),
        ("Simulated Glasses", "ada wears Simulated Glasses: 7 lines of 40 characters, glasses speak"),
        ("Mentra Live", "ada wears Mentra Live: no display, glasses speak"),
    ],
)
def test_glasses_describe_their_profile(model: str, expected: str) -> None:
    assert make_glasses(model).describe() == expected


def test_layout_stays_until_replaced() -> None:
    glasses = make_glasses()
    lines = show(glasses, "first")
    assert lines[0] == "┌─ main · com.example.reminder ────────────┐"
    assert lines[1] == "│ first                                    │"
    assert len(lines) == 7
    show(glasses, "second")
    assert glasses.views["main"].rows == ("second", "", "", "", "")
    assert glasses.next_expiry() is None
    assert glasses.expired_views(1e9) == []


def test_timed_layout_expires() -> None:
    glasses = make_glasses()
    show(glasses, "for two seconds", now=10, durationMs=2000)
    show(glasses, "on and on", now=10, view="dashboard")
    assert glasses.next_expiry() == 12
    assert glasses.expired_views(11.9) == []
    assert glasses.expired_views(12) == ["main"]
    cleared = glasses.apply_event("display", {"view": "main", "layout": messages.clear_view()}, 12)
    assert cleared == ["display main: clear"]
    assert list(glasses.views) == ["dashboard"]
    assert glasses.next_expiry() is None


@pytest.mark.parametrize("duration", [None, 0, -5, True, "2000", {}])
def test_invalid_duration_never_expires(duration: object) -> None:
    glasses = make_glasses()
    show(glasses, "stays", durationMs=duration)
    assert glasses.next_expiry() is None


def test_glasses_without_display_report_layouts() -> None:
    glasses = make_glasses("Mentra Live")
    assert show(glasses, "unseen") == ["no display: com.example.reminder shows a text_wall"]
    assert glasses.views == {}


@pytest.mark.parametrize(
    "kind, data, line",
    [
        ("speak", {"packageName": PACKAGE, "text": "Milk\nis added."}, "phone speaks: Milk is added."),
        ("speak", {}, "phone speaks: "),
        ("speak", {"text": "", "stop": True}, "phone speaks: (stopped)"),
        ("heard", {"text": "remind me"}, "you: remind me"),
        (
            "tool",
            {"tool": f"{PACKAGE}:add", "callId": "c1", "state": "started"},
            f"tool: {PACKAGE}:add, started",
        ),
        (
            "tool",
            {"tool": f"{PACKAGE}:add", "state": "progress", "done": 1, "total": 3, "message": "one"},
            f"tool: {PACKAGE}:add, progress, 1 of 3, one",
        ),
        (
            "app",
            {"packageName": PACKAGE, "state": "stopped", "reason": "idle"},
            f"app: {PACKAGE}, stopped, idle",
        ),
        (
            "tool",
            {"tool": "local:x", "state": "ended", "success": False, "code": "TIMEOUT"},
            "tool: local:x, ended, TIMEOUT",
        ),
        ("app", {"lost": 4}, "app: 4 events were dropped because this terminal is too slow"),
        ("connection", {"state": "lost", "message": "no gateway"}, "connection: lost, no gateway"),
        ("tool", {"tool": "\x1b[2J"}, "tool: \ufffd[2J"),
    ],
)
def test_event_is_described_in_one_line(kind: str, data: JsonObject, line: str) -> None:
    assert make_glasses().apply_event(kind, data, 0) == [line]


def test_drawing_contains_displays_transcript_and_input() -> None:
    glasses = make_glasses()
    show(glasses, "Buy milk")
    card = messages.dashboard_card("10:41", "Rain")
    glasses.apply_event("display", {"view": "dashboard", "layout": card}, 0)
    for text in ("one", "two", "three", "four"):
        glasses.apply_event("speak", {"text": text}, 0)
    glasses.apply_event("app", {"packageName": PACKAGE, "state": "running"}, 0)
    drawn = [line for line, _ in draw_glasses(glasses, "remind me to call", 20)]
    assert drawn == [
        "ada wears Even Realities G1: 5 lines of 40 characters, phone speaks",
        "┌─ main · com.example.reminder ────────────┐",
        "│ Buy milk                                 │",
        *["│                                          │"] * 4,
        "└──────────────────────────────────────────┘",
        "┌─ dashboard ──────────────────────────────┐",
        "│ 10:41                               Rain │",
        *["│                                          │"] * 4,
        "└──────────────────────────────────────────┘",
        "phone speaks: two",
        "phone speaks: three",
        "phone speaks: four",
        "app: com.example.reminder, running",
        "> emind me to call▏",
    ]


def test_drawing_without_display_has_no_frame() -> None:
    assert [line for line, _ in draw_glasses(make_glasses("Mentra Live"), "", 80)] == [
        "ada wears Mentra Live: no display, glasses speak",
        "",
        "> ▏",
    ]
