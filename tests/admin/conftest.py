"""Desks of apps and users for every test that wants some."""

from collections.abc import AsyncGenerator

import pytest

from tests.admin.desks import Desks, open_desks


@pytest.fixture
async def desks() -> AsyncGenerator[Desks]:
    async with open_desks() as made:
        yield made
