"""The sound systems of this machine, each as the commands that read and set its speaker volume."""

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import anyio

Command = tuple[str, ...]

_SECONDS = 2.0
_PULSE_SINK = "@DEFAULT_SINK@"
_PIPEWIRE_SINK = "@DEFAULT_AUDIO_SINK@"
_ALSA_CONTROLS = ("Master", "PCM", "Speaker", "Headphone")
"""What cards call the volume of their main output, the likeliest first."""


@dataclass(frozen=True, slots=True)
class VolumeLevel:
    """How loud the speaker is, in percent, and whether it is muted."""

    level: int
    muted: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Mixer:
    """One sound system. `read` commands say together how loud it is; the others set it."""

    name: str
    read: tuple[Command, ...]
    parse: Callable[[str], VolumeLevel | None]
    level: Command
    """Sets the volume; the percentage follows it, as in `40%`."""
    mute: Command
    unmute: Command

    async def loudness(self) -> VolumeLevel | None:
        """How loud it is; None where this sound system does not answer or has no speaker."""
        said = [await _say(command) for command in self.read]
        return self.parse("\n".join(each for each in said if each is not None))

    async def set_level(self, percent: int) -> bool:
        """Set the volume; whether it was done."""
        return await _say((*self.level, f"{percent}%")) is not None

    async def set_muted(self, *, muted: bool) -> bool:
        """Mute or unmute; whether it was done."""
        return await _say(self.mute if muted else self.unmute) is not None


async def _say(command: Command) -> str | None:
    """What a command prints; None where it is not there, fails, or takes too long."""
    # Its words must be English to be understood.
    words = {**os.environ, "LC_ALL": "C"}
    try:
        with anyio.fail_after(_SECONDS):
            done = await anyio.run_process(command, check=False, env=words)
    except (OSError, TimeoutError):
        return None
    return done.stdout.decode(errors="replace") if done.returncode == 0 else None


def parse_wpctl(said: str) -> VolumeLevel | None:
    """Read `Volume: 0.40 [MUTED]`. Without a speaker wpctl prints nothing, and still ends well."""
    found = re.search(r"^Volume: (\d+(?:\.\d+)?)(.*)$", said, re.MULTILINE)
    return VolumeLevel(round(float(found[1]) * 100), "MUTED" in found[2]) if found else None


def parse_pactl(said: str) -> VolumeLevel | None:
    """Read `Volume: front-left: 26214 /  40% / -23.88 dB, …` and `Mute: no`; the loudest channel counts."""
    line = re.search(r"^Volume: (.*)$", said, re.MULTILINE)
    levels = re.findall(r"(\d+)%", line[1]) if line else []
    return VolumeLevel(max(map(int, levels)), "Mute: yes" in said) if levels else None


def parse_amixer(said: str) -> VolumeLevel | None:
    """Read `Front Left: Playback 26214 [40%] [on]`; it is muted where every channel is off."""
    channels = re.findall(r"Playback.*?\[(\d+)%\](.*)", said)
    if not channels:
        return None
    return VolumeLevel(max(int(level) for level, _ in channels), all("[off]" in rest for _, rest in channels))


def _alsa() -> Iterator[Mixer]:
    for control in _ALSA_CONTROLS:
        setting = ("amixer", "sset", control)
        yield Mixer(
            name="ALSA",
            read=(("amixer", "sget", control),),
            parse=parse_amixer,
            level=setting,
            mute=(*setting, "mute"),
            unmute=(*setting, "unmute"),
        )


PIPEWIRE = Mixer(
    name="PipeWire",
    read=(("wpctl", "get-volume", _PIPEWIRE_SINK),),
    parse=parse_wpctl,
    level=("wpctl", "set-volume", _PIPEWIRE_SINK),
    mute=("wpctl", "set-mute", _PIPEWIRE_SINK, "1"),
    unmute=("wpctl", "set-mute", _PIPEWIRE_SINK, "0"),
)
PULSEAUDIO = Mixer(
    name="PulseAudio",
    read=(("pactl", "get-sink-volume", _PULSE_SINK), ("pactl", "get-sink-mute", _PULSE_SINK)),
    parse=parse_pactl,
    level=("pactl", "set-sink-volume", _PULSE_SINK),
    mute=("pactl", "set-sink-mute", _PULSE_SINK, "1"),
    unmute=("pactl", "set-sink-mute", _PULSE_SINK, "0"),
)
MIXERS: tuple[Mixer, ...] = (PIPEWIRE, PULSEAUDIO, *_alsa())
"""In the order they are asked: the newest sound system serves the older ones' commands as well."""
