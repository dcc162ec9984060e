"""The flashcard tools pass the complete checklist, and their published definitions are current."""

from pathlib import Path

import pytest

from toolcrib.demo import flashcards
from toolcrib.testing import check_tools


@pytest.mark.slow
@pytest.mark.requirement("E15", "E16")
def test_flashcards_pass_the_whole_checklist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLCRIB_HOME", str(tmp_path))
    check_tools("toolcrib.demo.flashcards", run_mutations=True)
    assert (tmp_path / "flashcards.db").exists()


def test_published_definitions_are_current() -> None:
    folder = Path(flashcards.__file__).parent
    assert folder.with_name("flashcards.published.json").exists()
