"""The coverage limit never falls and requirements are never reopened, compared with the git history."""

import tomllib

from tests.gates import ledger
from tests.gates.tree import ROOT, earlier

# The ids of a ledger, and those of them that are open.
State = tuple[set[str], set[str]]


def coverage_bar(text: str) -> float:
    return float(tomllib.loads(text)["tool"]["coverage"]["report"]["fail_under"])


def state(ledger_text: str, open_text: str) -> State:
    return ledger.ledger_ids(ledger_text), set(ledger.open_ids(open_text))


def slack(then: State, now: State) -> list[str]:
    """Requirements that were removed or reopened between two states."""
    (ledger_then, open_then), (ledger_now, open_now) = then, now
    found = [f"{one} left the ledger" for one in ledger_then - ledger_now]
    # A new requirement may start open; an implemented one must not be reopened.
    found += [f"{one} was built and is open again" for one in (open_now & ledger_then) - open_then]
    return sorted(found)


def test_the_coverage_bar_never_falls() -> None:
    bar = coverage_bar((ROOT / "pyproject.toml").read_text())
    assert bar >= 90
    assert [text for (text,) in earlier("pyproject.toml") if coverage_bar(text) > bar] == []


def test_open_requirements_only_shrink() -> None:
    files = (ledger.LEDGER_FILE, ledger.OPEN_FILE)
    now = state(*((ROOT / file).read_text() for file in files))
    assert [fault for then in earlier(*files) for fault in slack(state(*then), now)] == []
