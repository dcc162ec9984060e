"""These tests use a simulated clock, so that long timeouts are exact and free."""

from typing import Any

import pytest

from tests.supervisor.clockwork import Clockwork


@pytest.fixture(scope="session")
def anyio_backend() -> tuple[str, dict[str, Any]]:
    return ("asyncio", {"loop_factory": Clockwork})
