"""What the sound systems' programs print is understood; recorded from the real ones."""

import pytest

from toolcrib.builtin.volume import VolumeLevel, parse_amixer, parse_pactl, parse_wpctl

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
        ("Volume: 0.40\n", VolumeLevel(40, muted=False)),
        ("Volume: 0.40 [MUTED]\n", VolumeLevel(40, muted=True)),
        ("Volume: 1.50\n", VolumeLevel(150, muted=False)),
        ("Volume: 0.29\n", VolumeLevel(29, muted=False)),
        ("", None),
        ("Could not connect to PipeWire\n", None),
    ],
)
def test_wpctl(said: str, expected: VolumeLevel | None) -> None:
    assert parse_wpctl(said) == expected


@pytest.mark.parametrize(
    "said,expected",
    [
        (PACTL.format(muted="no"), VolumeLevel(40, muted=False)),
        (PACTL.format(muted="yes"), VolumeLevel(40, muted=True)),
        ("Mute: no\n", None),
        ("", None),
    ],
)
def test_pactl(said: str, expected: VolumeLevel | None) -> None:
    assert parse_pactl(said) == expected


@pytest.mark.parametrize(
    "said,expected",
    [
        (AMIXER.format(left="on", right="on"), VolumeLevel(40, muted=False)),
        (AMIXER.format(left="off", right="off"), VolumeLevel(40, muted=True)),
        (AMIXER.format(left="off", right="on"), VolumeLevel(40, muted=False)),
        (AMIXER_MONO, VolumeLevel(77, muted=False)),
        (AMIXER_CAPTURE, None),
        ("", None),
    ],
)
def test_amixer(said: str, expected: VolumeLevel | None) -> None:
    assert parse_amixer(said) == expected
