"""No file names one machine's paths or a registry, and no source file opens a known kind of hole."""

from pathlib import Path

import pytest

from tests.gates import words
from tests.gates.tree import ROOT, files, name_of, python_files


@pytest.mark.check(19)
def test_no_file_contains_local_paths() -> None:
    found: list[str] = []
    for path in files():
        text = path.read_bytes().decode(errors="ignore")
        found += [f"{name_of(path)}: {word}" for word in words.machine_words(text)]
    assert found == []


@pytest.mark.check(19)
def test_no_source_file_uses_unsafe_calls() -> None:
    sources = [(path.relative_to(ROOT), path.read_text()) for path in python_files("src")]
    assert [hole for path, text in sources for hole in words.holes(path, text)] == []


@pytest.mark.parametrize("word", words.MACHINE)
@pytest.mark.check(19)
def test_the_machine_gate_can_fail(word: str) -> None:
    assert words.machine_words(f"see {word}x")


@pytest.mark.parametrize(
    "path, text, complaint",
    [
        ("src/x.py", "run('ls', shell=True)", "a shell"),
        ("src/x.py", "yaml.load(text)", "an unsafe YAML loader"),
        ("src/x.py", "from pickle import loads", "pickle"),
        ("src/x.py", "eval(text)", "eval"),
        ("src/identity/x.py", "if request.url.hostname == 'localhost': pass", "the request's address"),
        ("src/x.py", "c.execute(f'select {x}')", "SQL put together"),
        ("src/x.py", "text('select ' + x)", "SQL put together"),
        ("src/x.py", "text('select %s' % x)", "SQL put together"),
        ("src/x.py", "text('select {}'.format(x))", "SQL put together"),
    ],
)
@pytest.mark.check(19)
def test_the_hole_gate_can_fail(path: str, text: str, complaint: str) -> None:
    assert complaint in "\n".join(words.holes(Path(path), text))


@pytest.mark.check(19)
def test_plain_code_passes() -> None:
    text = "c.execute(select(table).where(table.c.id == x))\nretrieval(x)\nyaml.safe_load(t)\nrequest.url\n"
    assert words.holes(Path("src/frontends/x.py"), text) == []
