"""Files that are written over: whole, or as they were."""

from pathlib import Path

import pytest

from toolcrib.cli.migrate import replace_file


def test_a_file_that_cannot_be_written_stays_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "app.json"
    file.write_text("before")

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space left"):
        replace_file(file, b"after")
    assert file.read_text() == "before"
    assert list(tmp_path.iterdir()) == [file]


def test_only_existing_files_are_overwritten(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        replace_file(tmp_path / "gone.json", b"after")
    assert list(tmp_path.iterdir()) == []
