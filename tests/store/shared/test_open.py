"""Shared state by its address: what is known, and what is said about the rest."""

import pytest

from tests.texts import matches
from toolcrib.errors import Refused
from toolcrib.store.shared import open_shared
from toolcrib.store.shared.memory import MemoryShared


def test_memory_is_there() -> None:
    assert isinstance(open_shared("memory"), MemoryShared)


def test_unknown_backend_lists_known_ones() -> None:
    with pytest.raises(Refused) as refused:
        open_shared("rabbit://:hunter2@example.com/0")
    assert matches("store", "unknown backend lists known ones", str(refused.value))
