"""The app and user administration as a fixture."""

from collections.abc import AsyncGenerator

import pytest

from tests.admin.admin_setup import AdminSetup, open_admin


@pytest.fixture
async def admin() -> AsyncGenerator[AdminSetup]:
    async with open_admin() as made:
        yield made
