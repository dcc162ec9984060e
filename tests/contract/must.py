"""One rule for every tool and its tests."""

from dataclasses import dataclass

PERSON = "check:"
"""Begins a proof that is a question of the checklist to a person, such as `check:description`."""


@dataclass(frozen=True, slots=True)
class Must:
    """A rule, its requirement ids, and the tests or review questions that prove it."""

    key: str
    holds: str
    ids: tuple[str, ...]
    proofs: tuple[str, ...]

    @property
    def tests(self) -> tuple[str, ...]:
        """The proofs that are tests, as pytest names them."""
        return tuple(each for each in self.proofs if not each.startswith(PERSON))

    @property
    def questions(self) -> tuple[str, ...]:
        """The items of the checklist that a person answers."""
        return tuple(each.removeprefix(PERSON) for each in self.proofs if each.startswith(PERSON))


def must(key: str, holds: str, ids: str, *proofs: str) -> Must:
    """Write one down; ids are parted by blanks."""
    return Must(key, holds, tuple(ids.split()), proofs)
