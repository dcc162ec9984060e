"""Speech output: selection of the program, its command line, order, stop and failure."""

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from tests.waiting import until
from toolcrib.cli.glasses.renderers import SPEECH_PROGRAMS, SpeechProgram, SpeechQueue, find_speech_program


def test_first_installed_program_is_selected() -> None:
    installed = {"espeak", "espeak-ng"}
    found = find_speech_program(lambda name: name if name in installed else None)
    assert found is not None
    assert found.command[0] == "espeak-ng"
    assert find_speech_program(lambda _: None) is None


@pytest.mark.parametrize("speech_program", SPEECH_PROGRAMS, ids=lambda each: each.command[0])
def test_text_is_not_passed_as_an_option(speech_program: SpeechProgram) -> None:
    command, text = speech_program.command_for("--help me", "")
    if text:
        assert text == b"--help me"
        assert "--help me" not in command
    else:
        assert command[command.index("--help me") - 1] == "--"


def test_language_is_passed_to_speech_program() -> None:
    commands = {each.command[0]: each.command_for("Guten Tag", "de")[0] for each in SPEECH_PROGRAMS}
    assert commands["espeak-ng"] == ("espeak-ng", "-v", "de", "--stdin")
    assert commands["spd-say"] == ("spd-say", "-l", "de", "--wait", "--", "Guten Tag")
    assert commands["say"] == ("say", "-f", "-")


@asynccontextmanager
async def speaking(speech_program: SpeechProgram | None, language: str = "") -> AsyncGenerator[SpeechQueue]:
    with SpeechQueue(speech_program, language) as queue:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(queue.run)
            yield queue
            tasks.cancel_scope.cancel()


def program(folder: Path, script: str) -> SpeechProgram:
    """Return a speech program that runs a shell script."""
    file = folder / "speech"
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)
    return SpeechProgram(command=(str(file),), language_options=("{language}",))


@pytest.mark.slow
async def test_sentences_are_spoken_in_order(tmp_path: Path) -> None:
    output = tmp_path / "heard"
    speech_program = program(tmp_path, f'echo "$1 $(cat)" >> {output}')
    async with speaking(speech_program, "de-CH") as queue:
        for text in ("eins", "zwei", "", "drei"):
            queue.say(text)
        await until(lambda: output.exists() and output.read_text().count("\n") == 3)
    assert output.read_text() == "de eins\nde zwei\nde drei\n"


@pytest.mark.slow
async def test_failing_speech_program_is_not_retried(tmp_path: Path) -> None:
    attempts = tmp_path / "tried"
    speech_program = program(tmp_path, f"echo once >> {attempts}; exit 1")
    async with speaking(speech_program) as queue:
        queue.say("one")
        await until(lambda: queue.unavailable)
        queue.say("two")
        await anyio.wait_all_tasks_blocked()
    assert attempts.read_text() == "once\n"


@pytest.mark.slow
async def test_speech_stops_on_request(tmp_path: Path) -> None:
    started, later = tmp_path / "begun", tmp_path / "later"
    waiting = tmp_path / "pipe"
    os.mkfifo(waiting)
    script = f'case "$(cat)" in long) echo > {started}; exec cat {waiting};; *) echo > {later};; esac'
    async with speaking(program(tmp_path, script)) as queue:
        queue.say("long")
        queue.say("never said")
        await until(started.exists)
        queue.stop()
        await until(lambda: not queue.speaking)
        assert not later.exists()
        queue.say("said again")
        await until(later.exists)


async def test_queue_without_program_ignores_texts() -> None:
    async with speaking(None) as queue:
        queue.say("unheard")
        queue.stop()
        await anyio.wait_all_tasks_blocked()


async def test_exited_speech_program_is_harmless(tmp_path: Path) -> None:
    async with speaking(SpeechProgram(command=(str(tmp_path / "none"),))) as queue:
        queue.say("unheard")
        await until(lambda: queue.unavailable)


@pytest.mark.slow
async def test_excess_speech_is_dropped(tmp_path: Path) -> None:
    output = tmp_path / "heard"
    speech_program = program(tmp_path, f"cat >> {output}; echo >> {output}")
    with SpeechQueue(speech_program, "") as queue:
        for number in range(100):
            queue.say(str(number))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(queue.run)
            await until(lambda: output.exists() and output.read_text().endswith("\n15\n"))
            queue.say("last")
            await until(lambda: output.read_text().endswith("\n15\nlast\n"))
            tasks.cancel_scope.cancel()
