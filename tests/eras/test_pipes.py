"""The cells of the era table in which a server's pipe makes a difference: asking, and taking a call back."""

from collections.abc import AsyncGenerator

import pytest

from tests.eras.era_gateway import ERAS, QUESTIONS, Era, EraGateway, User, gateway, over_pipes
from tests.eras.walks import WALKS, Cell

pytestmark = [pytest.mark.anyio, pytest.mark.slow, pytest.mark.requirement("B2", "D14")]


@pytest.fixture(scope="module")
async def era_gateway(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[EraGateway]:
    folder = tmp_path_factory.mktemp("notes")
    async with gateway(over_pipes(folder), folder) as opened:
        yield opened


@pytest.mark.parametrize("client", ERAS, ids="{} client".format)
@pytest.mark.parametrize("server", ERAS, ids="{} server".format)
async def test_stdio_server_cancellation_and_questions(
    era_gateway: EraGateway, client: Era, server: Era
) -> None:
    user = User()
    # A caller with capabilities has its own connection to the server, any other shares one.
    async with user.client(era_gateway.url, client) as connected:
        await WALKS["cancel"](Cell(connected, user, (client, server), era_gateway.folder))
    async with user.client(era_gateway.url, client, *QUESTIONS) as connected:
        for what in ("elicit", "sample", "cancel"):
            await WALKS[what](Cell(connected, user, (client, server), era_gateway.folder))
    assert era_gateway.parked == 0
