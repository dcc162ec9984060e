"""One card store behind a real gateway, and a separate learner for every test."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from tests.demo.flashcards.learner import MORNING, Learner, Time
from toolcrib.crib import Crib
from toolcrib.demo.flashcards import flashcards


@pytest.fixture
def db(tmp_path: Path) -> Path:
    return tmp_path / "cards" / "flashcards.db"


@pytest.fixture(scope="module")
async def flashcards_gateway(
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncGenerator[tuple[Crib, Time, Path]]:
    """Learners have separate cards, so all tests of a module share one gateway, which is slow to start."""
    time, path = Time(), tmp_path_factory.mktemp("cards") / "flashcards.db"
    async with Crib(tools=flashcards(path, clock=time).get_all(), env={}) as crib:
        yield crib, time, path


@pytest.fixture
def learner(flashcards_gateway: tuple[Crib, Time, Path], request: pytest.FixtureRequest) -> Learner:
    crib, time, path = flashcards_gateway
    time.now = MORNING
    return Learner(crib, time, path, user=request.node.name)
