"""Compares texts that users see with the snapshot file of their frontend: rewording changes one file."""

import os
from pathlib import Path

FOLDER = Path(__file__).parent / "snapshots"
HEADING = "=== "


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


def matches(frontend: str, name: str, text: str) -> bool:
    """Return whether the text is the one on record; TOOLCRIB_SNAPSHOTS=update records it instead."""
    text = "\n".join(line.rstrip() for line in text.strip("\n").splitlines())
    texts = read(frontend)
    if os.environ.get("TOOLCRIB_SNAPSHOTS") == "update":
        write(frontend, {**texts, name: text})
        return True
    recorded = texts.get(name)
    assert recorded is not None, (
        f"{name} is not in tests/snapshots/{frontend}.txt: run with TOOLCRIB_SNAPSHOTS=update"
    )
    assert text == recorded
    return True
