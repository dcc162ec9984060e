"""What may be held for clients is bounded by the configured bytes and by a part of the memory limit."""

import pytest

from toolcrib.config.sections import LimitsSection
from toolcrib.http import ClientAddresses
from toolcrib.http.memory import BLOCK_BYTES, LargeResults, MemoryWatch
from toolcrib.runtime.pressure import make_intake


@pytest.mark.requirement("I5")
@pytest.mark.parametrize(
    "limit_mb, unfinished_mb, unread_mb",
    [(None, 64, 128), (4096, 64, 128), (400, 50, 100), (200, 25, 50)],
)
def test_held_bytes_are_a_part_of_the_memory_limit(
    limit_mb: int | None, unfinished_mb: int, unread_mb: int
) -> None:
    watch = MemoryWatch(None if limit_mb is None else limit_mb << 20)
    intake = make_intake(LimitsSection(), ClientAddresses(), watch, LargeResults())
    held = intake.blocks.total * BLOCK_BYTES >> 20, intake.unread_blocks.total * BLOCK_BYTES >> 20
    assert held == (unfinished_mb, unread_mb)
