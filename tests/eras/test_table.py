"""The era table: four combinations of client and server, eight things to do, each cell on its own."""

from collections.abc import AsyncGenerator

import anyio
import pytest
from mcp import MCPError
from mcp.client.context import ClientRequestContext
from mcp_types import ElicitRequestParams, ElicitResult

from tests.eras.era_gateway import ERAS, QUESTIONS, Era, EraGateway, User, gateway, over_http
from tests.eras.walks import WALKS, Cell
from tests.waiting import until

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("B2", "D14"), pytest.mark.slow]


@pytest.fixture(scope="module")
async def era_gateway(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[EraGateway]:
    folder = tmp_path_factory.mktemp("notes")
    async with over_http(folder) as servers, gateway(servers, folder) as opened:
        yield opened


@pytest.mark.parametrize("client", ERAS, ids="{} client".format)
@pytest.mark.parametrize("server", ERAS, ids="{} server".format)
@pytest.mark.parametrize("what", WALKS)
async def test_cell(era_gateway: EraGateway, what: str, client: Era, server: Era) -> None:
    user = User()
    asked = QUESTIONS if what in QUESTIONS else ()
    async with user.client(era_gateway.url, client, *asked) as connected:
        await WALKS[what](Cell(connected, user, (client, server), era_gateway.folder))
    assert era_gateway.parked == 0


@pytest.mark.parametrize("client", ERAS, ids="{} client".format)
@pytest.mark.parametrize("server", ERAS, ids="{} server".format)
async def test_undeclared_questions_are_not_asked(era_gateway: EraGateway, client: Era, server: Era) -> None:
    user = User()
    async with user.client(era_gateway.url, client, "elicit") as connected:
        cell = Cell(connected, user, (client, server), era_gateway.folder)
        if server == "legacy":
            # The server is told that it may not ask, and passes that on.
            with pytest.raises(MCPError, match="sampling"):
                await cell.call("sample")
        else:
            assert (await cell.call("sample")).is_error
    assert user.asked == []


async def test_a_call_is_taken_back_while_its_question_waits(era_gateway: EraGateway) -> None:
    class Slow(User):
        async def elicited(self, context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
            del context
            self.asked.append(params)
            await anyio.sleep_forever()
            raise AssertionError

    user, text = Slow(), "Are you still there?"
    async with user.client(era_gateway.url, "legacy", "elicit") as connected:
        cell = Cell(connected, user, ("legacy", "legacy"), era_gateway.folder)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(cell.call, "elicit", text)
            await until(lambda: bool(user.asked))
            tasks.cancel_scope.cancel()
        await cell.noted(f"{text} over")
