"""No file contains local paths or registry hosts, and no source file uses unsafe calls."""

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
