"""The mutation report reads mutmut's result files; unaccepted survivors fail the run."""

import json
from pathlib import Path

import pytest

from tests.mutation.__main__ import verdict
from tests.mutation.report import Accepted, Mutant, accepted, mutants
from tests.parts.install import ROOT

MUTATED = '''
class Purse:
    def xǁPurseǁtake__mutmut_orig(self, much=1):
        """Take some."""
        if self.left >= much:
            self.left -= much
        return self.left

    def xǁPurseǁtake__mutmut_1(self, much=1):
        """Take some."""
        if self.left > much:
            self.left -= much
        return self.left

    def xǁPurseǁtake__mutmut_2(self, much=2):
        """Take some."""
        if self.left >= much:
            self.left -= much
        return self.left


async def x__count__mutmut_orig(purse):
    return cast('Purse', purse).left


async def x__count__mutmut_1(purse):
    return None


async def x__count__mutmut_2(purse):
    return cast(None, purse).left
'''
CODES = {
    "toolcrib.steps.purse.xǁPurseǁtake__mutmut_1": 1,
    "toolcrib.steps.purse.xǁPurseǁtake__mutmut_2": 0,
    "toolcrib.steps.purse.x__count__mutmut_1": -24,
}
NAMES = tuple(CODES)
MORE, OTHER = "if self.left >= much: => if self.left > much:", "def (self, much=1): => def (self, much=2):"
SPENT = Mutant(NAMES[0], "steps.purse", "Purse.take", MORE, killed=True)
DEFAULT = Mutant(NAMES[1], "steps.purse", "Purse.take", OTHER, killed=False)
COUNTED = Mutant(NAMES[2], "steps.purse", "_count", "return purse.left => return None", killed=True)


def _book(tree: Path, codes: dict[str, int | None]) -> None:
    (tree / "steps").mkdir(parents=True)
    (tree / "steps/purse.py").write_text(MUTATED)
    (tree / "steps/purse.py.meta").write_text(json.dumps({"exit_code_by_key": codes}))


def test_mutant_has_place_change_and_status(tmp_path: Path) -> None:
    _book(tmp_path, {**CODES})
    assert list(mutants(tmp_path)) == [SPENT, DEFAULT, COUNTED]


def test_change_only_in_types_is_reported_as_none(tmp_path: Path) -> None:
    _book(tmp_path, {"toolcrib.steps.purse.x__count__mutmut_2": 0})
    assert [mutant.change for mutant in mutants(tmp_path)] == [" => "]


@pytest.mark.parametrize("code", [0, 5, 33, 34, 35, 2, -11])
def test_mutant_without_failing_test_survived(code: int, tmp_path: Path) -> None:
    _book(tmp_path, {"toolcrib.steps.purse.x__count__mutmut_1": code})
    assert [mutant.killed for mutant in mutants(tmp_path)] == [False]


def test_untested_mutants_are_not_counted(tmp_path: Path) -> None:
    _book(tmp_path, {**CODES, "toolcrib.steps.purse.x__count__mutmut_1": None})
    assert list(mutants(tmp_path)) == [SPENT, DEFAULT]


@pytest.mark.parametrize(
    "entry, covered",
    [
        (Accepted("steps.purse.Purse.take", ("def (self, much=1): => def (self, much=2):",), "…"), True),
        (Accepted("steps.*", ("nothing", "def (*much=1): => *much=2):"), "…"), True),
        (Accepted("steps.purse.Purse.give", ("*",), "…"), False),
        (Accepted("steps.*", ("def (self, much=.): => def (self, much=2):",), "…"), False),
    ],
)
def test_accepted_entry_matches_with_wildcards(entry: Accepted, covered: bool) -> None:
    assert entry.covers(DEFAULT) is covered


def _many(killed: int, survived: int) -> list[Mutant]:
    return [SPENT] * killed + [DEFAULT] * survived


KNOWN = (Accepted("steps.purse.*", ("* => def (self, much=2):",), "nobody asks for the default"),)


def test_score_passes_if_survivors_are_accepted() -> None:
    lines, content = verdict(_many(17, 3), KNOWN)
    assert content
    assert lines == ["  85.0 %     20  steps.purse", "  85.0 %     20  of all, and 3 survived"]


def test_low_score_fails_despite_acceptance() -> None:
    lines, content = verdict(_many(16, 3), KNOWN)
    assert not content
    assert "steps.purse: 85 %" in lines[-1]


def test_unaccepted_survivor_fails() -> None:
    lines, content = verdict(_many(99, 1), ())
    assert not content
    assert lines[-1].endswith(f": steps.purse.Purse.take: {DEFAULT.change}")


def test_unused_entry_is_reported() -> None:
    lines, content = verdict(_many(9, 0), KNOWN)
    assert content
    assert lines[-1].endswith(f": {KNOWN[0].changes[0]}")


def test_no_mutants_fails() -> None:
    assert not verdict((), ())[1]


def test_every_accepted_survivor_has_a_reason() -> None:
    known = accepted((ROOT / "tests/mutation/survivors.toml").read_text())
    assert known
    assert [entry for entry in known if len(entry.reason) < 20 or not entry.changes] == []
