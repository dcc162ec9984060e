"""What the sound systems' programs print is understood; recorded from the real ones."""

import pytest

from toolcrib.builtin.mixers import Loudness, parse_amixer, parse_pactl, parse_wpctl

PACTL = """Volume: front-left: 26214 /  40% / -23.88 dB,   front-right: 19661 /  30% / -31.37 dB
        balance -0.25
Mute: {muted}
"""
AMIXER = """Simple mixer control 'Master',0
  Capabilities: pvolume pswitch pswitch-joined
  Playback channels: Front Left - Front Right
  Limits: Playback 0 - 65536
  Mono:
  Front Left: Playback 19661 [30%] [{left}]
  Front Right: Playback 26214 [40%] [-23.88dB] [{right}]
"""
AMIXER_MONO = """Simple mixer control 'PCM',0
  Capabilities: pvolume pvolume-joined
  Playback channels: Mono
  Limits: Playback -10239 - 400
  Mono: Playback -2000 [77%] [-20.00dB]
"""
AMIXER_CAPTURE = """Simple mixer control 'Capture',0
  Capabilities: cvolume cswitch
  Capture channels: Front Left
  Front Left: Capture 65536 [100%] [on]
"""


@pytest.mark.parametrize(
    "said,expected",
    [
        ("Volume: 0.40\n", Loudness(40, muted=False)),
        ("Volume: 0.40 [MUTED]\n", Loudness(40, muted=True)),
        ("Volume: 1.50\n", Loudness(150, muted=False)),
        ("Volume: 0.29\n", Loudness(29, muted=False)),
        ("", None),
        ("Could not connect to PipeWire\n", None),
    ],
)
def test_wpctl(said: str, expected: Loudness | None) -> None:
    assert parse_wpctl(said) == expected


@pytest.mark.parametrize(
    "said,expected",
    [
        (PACTL.format(muted="no"), Loudness(40, muted=False)),
        (PACTL.format(muted="yes"), Loudness(40, muted=True)),
        ("Mute: no\n", None),
        ("", None),
    ],
)
def test_pactl(said: str, expected: Loudness | None) -> None:
    assert parse_pactl(said) == expected


@pytest.mark.parametrize(
    "said,expected",
    [
        (AMIXER.format(left="on", right="on"), Loudness(40, muted=False)),
        (AMIXER.format(left="off", right="off"), Loudness(40, muted=True)),
        (AMIXER.format(left="off", right="on"), Loudness(40, muted=False)),
        (AMIXER_MONO, Loudness(77, muted=False)),
        (AMIXER_CAPTURE, None),
        ("", None),
    ],
)
def test_amixer(said: str, expected: Loudness | None) -> None:
    assert parse_amixer(said) == expected
