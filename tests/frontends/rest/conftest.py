"""One house for all that asks and changes nothing, and a fresh one for what does."""

from collections.abc import AsyncGenerator

import pytest

from tests.doors import Doors, doors
from tests.frontends.rest.bench import CONFIG, TOOLS


@pytest.fixture
async def crib() -> AsyncGenerator[Doors]:
    async with doors(CONFIG, tools=TOOLS) as opened:
        yield opened
