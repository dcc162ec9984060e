"""The voice of the machine: which program speaks, what it is given, in which order, when it falls silent."""

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from tests.waiting import until
from toolcrib.cli.glasses.renderers import SPEECH_PROGRAMS, SpeechProgram, SpeechQueue, find_speech_program


def test_the_first_program_there_is_speaks() -> None:
    there = {"espeak", "espeak-ng"}
    found = find_speech_program(lambda name: name if name in there else None)
    assert found is not None
    assert found.command[0] == "espeak-ng"
    assert find_speech_program(lambda _: None) is None


@pytest.mark.parametrize("voice", SPEECH_PROGRAMS, ids=lambda voice: voice.command[0])
def test_a_text_is_never_taken_for_an_option(voice: SpeechProgram) -> None:
    command, text = voice.asked("--help me", "")
    if text:
        assert text == b"--help me"
        assert "--help me" not in command
    else:
        assert command[command.index("--help me") - 1] == "--"


def test_language_is_passed_to_speech_program() -> None:
    spoken = {voice.command[0]: voice.asked("Guten Tag", "de")[0] for voice in SPEECH_PROGRAMS}
    assert spoken["espeak-ng"] == ("espeak-ng", "-v", "de", "--stdin")
    assert spoken["spd-say"] == ("spd-say", "-l", "de", "--wait", "--", "Guten Tag")
    assert spoken["say"] == ("say", "-f", "-")


@asynccontextmanager
async def speaking(voice: SpeechProgram | None, language: str = "") -> AsyncGenerator[SpeechQueue]:
    with SpeechQueue(voice, language) as mouth:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(mouth.run)
            yield mouth
            tasks.cancel_scope.cancel()


def program(folder: Path, script: str) -> SpeechProgram:
    """A program that speaks to a file."""
    file = folder / "voice"
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)
    return SpeechProgram(command=(str(file),), spoken=("{language}",))


@pytest.mark.slow
async def test_sentences_are_spoken_in_order(tmp_path: Path) -> None:
    heard = tmp_path / "heard"
    voice = program(tmp_path, f'echo "$1 $(cat)" >> {heard}')
    async with speaking(voice, "de-CH") as mouth:
        for text in ("eins", "zwei", "", "drei"):
            mouth.say(text)
        await until(lambda: heard.exists() and heard.read_text().count("\n") == 3)
    assert heard.read_text() == "de eins\nde zwei\nde drei\n"


@pytest.mark.slow
async def test_failing_speech_program_is_not_retried(tmp_path: Path) -> None:
    tried = tmp_path / "tried"
    voice = program(tmp_path, f"echo once >> {tried}; exit 1")
    async with speaking(voice) as mouth:
        mouth.say("one")
        await until(lambda: mouth.silent)
        mouth.say("two")
        await anyio.wait_all_tasks_blocked()
    assert tried.read_text() == "once\n"


@pytest.mark.slow
async def test_speech_stops_on_request(tmp_path: Path) -> None:
    begun, later = tmp_path / "begun", tmp_path / "later"
    waiting = tmp_path / "pipe"
    os.mkfifo(waiting)
    script = f'case "$(cat)" in long) echo > {begun}; exec cat {waiting};; *) echo > {later};; esac'
    async with speaking(program(tmp_path, script)) as mouth:
        mouth.say("long")
        mouth.say("never said")
        await until(begun.exists)
        mouth.hush()
        await until(lambda: not mouth.speaking)
        assert not later.exists()
        mouth.say("said again")
        await until(later.exists)


async def test_without_a_voice_nothing_happens() -> None:
    async with speaking(None) as mouth:
        mouth.say("unheard")
        mouth.hush()
        await anyio.wait_all_tasks_blocked()


async def test_exited_speech_program_is_harmless(tmp_path: Path) -> None:
    async with speaking(SpeechProgram(command=(str(tmp_path / "none"),))) as mouth:
        mouth.say("unheard")
        await until(lambda: mouth.silent)


@pytest.mark.slow
async def test_excess_speech_is_dropped(tmp_path: Path) -> None:
    heard = tmp_path / "heard"
    voice = program(tmp_path, f"cat >> {heard}; echo >> {heard}")
    with SpeechQueue(voice, "") as mouth:
        for number in range(100):
            mouth.say(str(number))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(mouth.run)
            await until(lambda: heard.exists() and heard.read_text().endswith("\n15\n"))
            mouth.say("last")
            await until(lambda: heard.read_text().endswith("\n15\nlast\n"))
            tasks.cancel_scope.cancel()
