"""Turns the speaker of this machine up and down, through whichever sound system answers."""

from dataclasses import dataclass
from typing import Annotated, Literal

import anyio
from pydantic import Field

from toolcrib.builtin.mixers import MIXERS, Mixer, VolumeLevel
from toolcrib.errors import BusinessRuleError
from toolcrib.sdk import AnyTool, ToolResult, tool

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
