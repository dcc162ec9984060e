"""Time is made up in these tests, so that a minute of patience costs nothing and is exact."""

from typing import Any

import pytest

from tests.supervisor.clockwork import Clockwork


@pytest.fixture(scope="session")
def anyio_backend() -> tuple[str, dict[str, Any]]:
    return ("asyncio", {"loop_factory": Clockwork})
