"""Ledger and tests prove each other: no behaviour without a test, no test for what nobody asked for."""

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


def test_the_ledger_gate_can_fail() -> None:
    assert ledger.faults({"A1"}, [], {"A1"}) == []
    assert ledger.faults({"A1"}, ["A1"], set()) == []
    assert ledger.faults({"A1"}, [], set()) == ["A1: no test proves it, and it is not in the open list"]
    assert ledger.faults(set(), [], {"Z1"}) == ["Z1: a test names it, the ledger does not"]
    assert ledger.faults(set(), ["Z1"], set()) == ["Z1: in the open list, not in the ledger"]
    assert ledger.faults({"A1"}, ["A1", "A1"], set()) == ["A1: twice in the open list"]


def test_requirement_marks_are_found() -> None:
    text = (
        'pytestmark = [pytest.mark.requirement("Y1", "Y2")]\n'
        '@pytest.mark.requirement("Y3")\ndef test(): ...\n'
        'rows = [pytest.param(1, marks=pytest.mark.requirement("Y4"))]\n'
    )
    assert ledger.marks(text) == {"Y1", "Y2", "Y3", "Y4"}
