"""Every requirement has a test or is listed as open, and tests name only known requirements."""

from tests.gates import ledger
from tests.gates.tree import ROOT, python_files
from tests.requirements import LEDGER

OPEN = ledger.open_ids((ROOT / ledger.OPEN_FILE).read_text())


def test_every_behaviour_has_a_test_or_is_listed_as_open() -> None:
    proofs = ledger.marked(path for path in python_files("tests") if path.name.startswith("test_"))
    found = ledger.faults(LEDGER.keys(), OPEN, proofs.keys())
    assert not found, "\n".join(found)


def test_ledger_entries_are_sentences() -> None:
    assert [one for one, text in LEDGER.items() if not text.endswith(".") or len(text.split()) < 5] == []
