"""Compares texts that users see with the snapshot file of their frontend: rewording changes one file."""

import os
import re
from pathlib import Path

FOLDER = Path(__file__).parent / "snapshots"
HEADING = "=== "
UPDATE = os.environ.get("TOOLCRIB_SNAPSHOTS") == "update"
"""Read once: some tests clear the environment."""
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


def write(frontend: str, texts: dict[str, str]) -> None:
    FOLDER.mkdir(exist_ok=True)
    sections = (f"{HEADING}{name}\n{texts[name]}\n" for name in sorted(texts))
    (FOLDER / f"{frontend}.txt").write_text("".join(sections))


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
    texts = read(frontend)
    if UPDATE:
        write(frontend, {**texts, name: text})
        return True
    recorded = texts.get(name)
    assert recorded is not None, (
        f"{name} is not in tests/snapshots/{frontend}.txt: run with TOOLCRIB_SNAPSHOTS=update"
    )
    assert text == recorded
    return True
