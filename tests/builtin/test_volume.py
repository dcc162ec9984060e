"""The volume of a real mixer changes; without a mixer the tool reports an error."""

import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.parts import sound
from tests.texts import matches
from toolcrib.builtin.volume import (
    MIXERS,
    PIPEWIRE,
    PULSEAUDIO,
    Mixer,
    Speaker,
    Volume,
    VolumeLevel,
    control_volume,
    parse_wpctl,
)
from toolcrib.errors import BusinessRuleError
from toolcrib.sdk import ToolResult

pytestmark = pytest.mark.slow

ALSA = tuple(mixer for mixer in MIXERS if mixer.name == "ALSA")


@pytest.fixture
def pulse(monkeypatch: pytest.MonkeyPatch) -> Generator[None]:
    with sound.pulseaudio() as found:
        for name, value in found.items():
            monkeypatch.setenv(name, value)
        yield


@pytest.fixture
def pipewire(monkeypatch: pytest.MonkeyPatch) -> Generator[None]:
    with sound.pipewire() as found:
        for name, value in found.items():
            monkeypatch.setenv(name, value)
        yield


@pytest.fixture
def silence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with no sound system at all."""
    monkeypatch.setenv("PATH", str(tmp_path))


async def said(speaker: Speaker, action: Any, level: int | None = None, step: int = 10) -> str:
    result: ToolResult[Volume] = await control_volume(speaker)(action, level, step)
    return result.message


async def walk(mixers: tuple[Mixer, ...], name: str) -> None:
    """Take the volume through everything the tool can do, and read it back each time."""
    speaker = Speaker(mixers)

    async def at(action: Any, level: int | None = None, step: int = 10) -> tuple[int, bool]:
        volume = await speaker.act(action, level, step)
        assert volume.mixer == name
        return volume.level, volume.muted

    assert await at("set", 40) == (40, False)
    assert await at("get") == (40, False)
    assert await at("up") == (50, False)
    assert await at("down", step=25) == (25, False)
    assert await at("mute") == (25, True)
    assert await at("get") == (25, True)
    assert await at("unmute") == (25, False)
    assert await at("up", step=100) == (100, False)
    assert await at("down", step=100) == (0, False)
    assert await at("mute") == (0, True)
    assert await at("set", 30) == (30, False), "who asks for a volume wants to hear it"
    assert matches("tools", "volume as a sentence", await said(speaker, "get"))
    assert matches("tools", "muted volume as a sentence", await said(speaker, "mute"))


@pytest.mark.requirement("F6")
@pytest.mark.needs("pulseaudio")
@pytest.mark.usefixtures("pulse")
async def test_pulseaudio_really_moves() -> None:
    await walk((PULSEAUDIO,), "PulseAudio")
    shown = await anyio.run_process(["pactl", "get-sink-volume", "@DEFAULT_SINK@"])
    assert b" 30%" in shown.stdout


@pytest.mark.requirement("F6")
@pytest.mark.needs("pulseaudio")
@pytest.mark.usefixtures("pulse")
async def test_alsa_really_moves() -> None:
    await walk(ALSA, "ALSA")


@pytest.mark.requirement("F6")
@pytest.mark.needs("pipewire")
@pytest.mark.usefixtures("pipewire")
async def test_pipewire_really_moves() -> None:
    await walk((PIPEWIRE,), "PipeWire")


@pytest.mark.needs("pulseaudio")
@pytest.mark.usefixtures("pulse")
async def test_whichever_answers_is_used() -> None:
    assert (await Speaker().act("get", None, 10)).mixer == "PulseAudio"


async def test_working_mixer_is_tried_first(tmp_path: Path) -> None:
    asked = tmp_path / "asked"
    mute = a_mixer("mute", f"open({str(asked)!r}, 'a').write('x')")
    works = a_mixer("works", "print('Volume: 0.33')")
    speaker = Speaker((mute, works))
    for _ in range(3):
        assert (await speaker.act("get", None, 10)).mixer == "works"
    assert asked.read_text() == "x"


@pytest.mark.needs("pulseaudio")
@pytest.mark.usefixtures("pulse")
async def test_steps_taken_at_once_all_count() -> None:
    speaker = Speaker((PULSEAUDIO,))
    await speaker.act("set", 20, 10)
    async with anyio.create_task_group() as tasks:
        for _ in range(4):
            tasks.start_soon(speaker.act, "up", None, 5)
    assert (await speaker.act("get", None, 10)).level == 40


@pytest.mark.requirement("F6")
@pytest.mark.usefixtures("silence")
async def test_machine_without_sound_is_an_error() -> None:
    with pytest.raises(BusinessRuleError) as caught:
        await control_volume(Speaker())("get")
    assert matches("tools", "machine without sound is an error", str(caught.value))
    assert caught.value.problem.tool_code == "NO_MIXER"


def a_mixer(name: str, reads: str, **commands: tuple[str, ...]) -> Mixer:
    """A mixer whose programs are Python lines, so that they can behave in any way."""
    python = (sys.executable, "-c")
    silent = (*python, "")
    given = {"level": silent, "mute": silent, "unmute": silent, **commands}
    return Mixer(name=name, read=((*python, reads),), parse=parse_wpctl, **given)


async def test_a_program_that_fails_hangs_or_babbles_is_no_mixer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolcrib.builtin.volume._SECONDS", 0.5)
    fails = a_mixer("fails", "print('Volume: 0.10'); raise SystemExit(1)")
    hangs = a_mixer("hangs", "import time; time.sleep(60)")
    babbles = a_mixer("babbles", "import sys; sys.stdout.buffer.write(bytes(range(256)))")
    works = a_mixer("works", "print('Volume: 0.33')")
    with anyio.fail_after(30):
        assert await hangs.loudness() is None
        monkeypatch.undo()
        assert await Speaker((fails, babbles, works)).act("get", None, 10) == Volume(
            level=33, muted=False, mixer="works"
        )


async def test_a_mixer_that_does_not_obey_is_named() -> None:
    stubborn = a_mixer(
        "Stubborn", "print('Volume: 0.50')", level=(sys.executable, "-c", "raise SystemExit(1)")
    )
    with pytest.raises(BusinessRuleError) as caught:
        await Speaker((stubborn,)).act("set", 10, 10)
    assert matches("tools", "a mixer that does not obey is named", str(caught.value))
    assert caught.value.problem.tool_code == "MIXER_REFUSED"


async def test_set_needs_a_level() -> None:
    mixer = a_mixer("any", "print('Volume: 0.50')")
    assert await mixer.loudness() == VolumeLevel(50, muted=False)
    with pytest.raises(BusinessRuleError) as raised:
        await Speaker((mixer,)).act("set", None, 10)
    assert matches("tools", "set needs a level", str(raised.value))
