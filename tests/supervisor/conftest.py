"""These tests use a simulated clock, so that long timeouts are exact and free."""

from typing import Any

import pytest

from tests.simulated_clock import BACKEND


@pytest.fixture(scope="session")
def anyio_backend() -> tuple[str, dict[str, Any]]:
    return BACKEND
