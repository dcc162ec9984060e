"""A gateway with the tools of these tests."""

from collections.abc import AsyncGenerator

import pytest

from tests.frontends.rest.tools import CONFIG, TOOLS
from tests.gateways import InProcessGateway, open_gateway


@pytest.fixture
async def gateway() -> AsyncGenerator[InProcessGateway]:
    async with open_gateway(CONFIG, tools=TOOLS) as opened:
        yield opened
