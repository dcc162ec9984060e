"""Compares texts that users see with the snapshot file of their frontend: rewording changes one file."""

import fcntl
import os
import re
from pathlib import Path

FOLDER = Path(__file__).parent / "snapshots"
HEADING = "=== "
UPDATE = os.environ.get("TOOLCRIB_SNAPSHOTS") == "update"
"""Read once: some tests clear the environment."""
_RECORDED: dict[tuple[str, str], str] = {}
"""The texts that this run has recorded: two different ones under one name would replace each other."""
PORT = re.compile(r"(?<=://127\.0\.0\.1:)\d{5}\b")
TEMPORARY = re.compile(r"/\S*/pytest-of-\w+/pytest-\d+/[^/\s]+")


def read(frontend: str) -> dict[str, str]:
    """Return the texts of a frontend by name."""
    file = FOLDER / f"{frontend}.txt"
    texts: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in file.read_text().splitlines() if file.exists() else []:
        if line.startswith(HEADING):
            lines = texts.setdefault(line.removeprefix(HEADING), [])
        else:
            lines.append(line)
    return {name: "\n".join(lines) for name, lines in texts.items()}


def record(frontend: str, name: str, text: str) -> None:
    """Add a text to the file of its frontend; the lock is for test processes that run side by side."""
    FOLDER.mkdir(exist_ok=True)
    with (FOLDER / f"{frontend}.txt").open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        texts = {**read(frontend), name: text}
        file.truncate(0)
        file.writelines(f"{HEADING}{each}\n{texts[each]}\n" for each in sorted(texts))


def matches(frontend: str, name: str, text: str | None, /, **variable: object) -> bool:
    """Return whether the text is the one on record; TOOLCRIB_SNAPSHOTS=update records it instead.

    Parts that vary are given by name and stand in the record as `{name}`; free ports of this machine and
    temporary folders need not be given.
    """
    assert text is not None, f"{name}: there is no text"
    for part, value in variable.items():
        text = text.replace(str(value), f"{{{part}}}")
    text = TEMPORARY.sub("{folder}", PORT.sub("{port}", text))
    text = "\n".join(line.rstrip() for line in text.strip("\n").splitlines())
    if UPDATE:
        assert _RECORDED.setdefault((frontend, name), text) == text, f"two texts are called {name!r}"
        record(frontend, name, text)
        return True
    recorded = read(frontend).get(name)
    assert recorded is not None, (
        f"{name} is not in tests/snapshots/{frontend}.txt: run with TOOLCRIB_SNAPSHOTS=update"
    )
    assert text == recorded
    return True
