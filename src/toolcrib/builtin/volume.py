"""The `volume` tool: reads and sets the speaker volume through the system's mixer."""

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Annotated, Literal

import anyio
from pydantic import Field

from toolcrib.errors import BusinessRuleError
from toolcrib.sdk import AnyTool, ToolResult, tool

# --- The sound systems of this machine, each as the commands that read and set its speaker volume ---

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


# --- Turns the speaker of this machine up and down, through whichever sound system answers ---

Action = Literal["get", "set", "up", "down", "mute", "unmute"]

_EXAMPLES = [
    {
        "description": "Set the volume to 40 percent",
        "params": {"action": "set", "level": 40},
        "expectedResult": {"level": 40, "muted": False, "mixer": "PulseAudio"},
    },
    {
        "description": "A bit louder",
        "params": {"action": "up"},
        "expectedResult": {"level": 50, "muted": False, "mixer": "PulseAudio"},
    },
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Volume:
    """How loud the speaker is now."""

    level: int
    muted: bool
    mixer: str


class Speaker:
    """The speaker of this machine. Remembers which sound system answered, and does one thing at a time."""

    def __init__(self, mixers: tuple[Mixer, ...] = MIXERS) -> None:
        self._mixers = mixers
        self._turn = anyio.Lock()

    async def act(self, action: Action, level: int | None, step: int) -> Volume:
        """Do it, and say how loud the speaker is then."""
        async with self._turn:
            mixer, now = await self._find()
            if action == "get":
                return _volume(mixer, now)
            if not await _apply(mixer, now, action, _target(action, now, level, step)):
                raise BusinessRuleError("MIXER_REFUSED", f"{mixer.name} did not change the volume")
            mixer, now = await self._find()
            return _volume(mixer, now)

    async def _find(self) -> tuple[Mixer, VolumeLevel]:
        for mixer in self._mixers:
            now = await mixer.loudness()
            if now is not None:
                self._mixers = (mixer, *(each for each in self._mixers if each is not mixer))
                return mixer, now
        said = "this machine has no speaker that PipeWire, PulseAudio or ALSA can reach from here"
        raise BusinessRuleError("NO_MIXER", f"{said}; run the gateway in the session of a user with sound")


async def _apply(mixer: Mixer, now: VolumeLevel, action: Action, level: int) -> bool:
    if action in ("mute", "unmute"):
        return await mixer.set_muted(muted=action == "mute")
    done = await mixer.set_level(level)
    # Who asks for a volume wants to hear it.
    return done and (not now.muted or await mixer.set_muted(muted=False))


def _target(action: Action, now: VolumeLevel, level: int | None, step: int) -> int:
    if action == "set" and level is None:
        raise BusinessRuleError("LEVEL_MISSING", "set needs a level from 0 to 100")
    wanted = {"set": level or 0, "up": now.level + step, "down": now.level - step}.get(action, now.level)
    return max(0, min(100, wanted))


def _volume(mixer: Mixer, now: VolumeLevel) -> Volume:
    return Volume(level=now.level, muted=now.muted, mixer=mixer.name)


def control_volume(speaker: Speaker) -> AnyTool:
    """Make the tool over a speaker."""

    @tool(
        name="control-volume",
        title="Speaker volume",
        category="mutation",
        response_time="medium",
        tags=["audio", "local"],
        examples=_EXAMPLES,
    )
    async def control(
        action: Annotated[
            Action, Field(description="What to do. `set` needs `level`; `up` and `down` take `step`.")
        ],
        level: Annotated[
            int | None, Field(description="The volume to set, in percent.", ge=0, le=100)
        ] = None,
        step: Annotated[int, Field(description="How many percent up or down.", ge=1, le=100)] = 10,
    ) -> ToolResult[Volume]:
        """Read or change the speaker volume of the machine the gateway runs on.

        Use it when someone asks how loud it is, or wants it louder, quieter, at some level, muted or unmuted.
        Returns the volume in percent and whether it is muted, as they are afterwards.
        """
        volume = await speaker.act(action, level, step)
        said = "The speaker is muted." if volume.muted else f"The volume is at {volume.level} percent."
        return ToolResult(data=volume, message=said)

    return control
