"""Time here jumps to whatever happens next: minutes pass at once, in order."""

from typing import Any

import pytest

from tests.simulated_clock import BACKEND


@pytest.fixture(scope="module")
def anyio_backend() -> tuple[str, dict[str, Any]]:
    return BACKEND
