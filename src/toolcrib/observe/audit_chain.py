"""Verifies the hash chain of audit records, from the newest to the first."""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any

from toolcrib.interfaces import FIRST_PREVIOUS, digest_of
from toolcrib.model import JsonObject


@dataclass(slots=True)
class ChainCheck:
    """State of one verification of the chain."""

    head: str = ""
    """Hash of the newest record; empty if there is none."""
    records: int = 0
    broken: int | None = None
    """Lowest number of a record that is modified, missing or out of order."""
    reason: str = ""
    head_found: bool = False
    """Whether the expected hash is in the chain."""
    _number: int | None = None
    _previous: str = ""

    @property
    def intact(self) -> bool:
        """Whether no record is modified and none is missing up to the head."""
        return self.broken is None

    def add(self, record: Mapping[str, Any], head: str | None) -> None:
        """Check the next older record."""
        number, digest = int(record["number"]), str(record["hash"])
        content: JsonObject = {name: value for name, value in record.items() if name != "hash"}
        if self._number is None:
            self.head = digest
        elif number != self._number - 1:
            self._found(number + 1, "is missing" if number < self._number - 1 else "has a number twice")
        elif digest != self._previous:
            self._found(self._number, "does not follow the record before it")
        if digest_of(content) != digest:
            self._found(number, "has been changed")
        self.records += 1
        self.head_found = self.head_found or digest == head
        self._number, self._previous = number, str(record["previous"])

    def end(self) -> None:
        """Check that the oldest record is the first."""
        if self._number is None:
            return
        if self._number != 1:
            self._found(1, "is missing")
        elif self._previous != FIRST_PREVIOUS:
            self._found(1, "is not the first of its chain")

    def _found(self, number: int, reason: str) -> None:
        # The iteration goes from the newest to the oldest, so the last finding is the first broken record.
        self.broken, self.reason = number, reason


async def check_chain(records: AsyncIterator[JsonObject], head: str | None = None) -> ChainCheck:
    """Verify records, the newest first; `head` is a hash to look for among them."""
    check = ChainCheck()
    async for record in records:
        check.add(record, head)
    check.end()
    return check
