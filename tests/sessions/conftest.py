"""Time here jumps to whatever happens next: minutes pass at once, in order."""

from typing import Any

import pytest

from tests.supervisor.clockwork import Clockwork


@pytest.fixture(scope="module")
def anyio_backend() -> tuple[str, dict[str, Any]]:
    return ("asyncio", {"loop_factory": Clockwork})
