"""The era table with the gateway as a child process of its client: `toolcrib stdio`."""

import os
import sys
from pathlib import Path

import anyio
import pytest
from mcp import StdioServerParameters

from tests.eras.era_gateway import ERAS, QUESTIONS, Era, User, over_http
from tests.eras.walks import WALKS, Cell
from tests.servers.client import until
from tests.servers.settings import config

pytestmark = [pytest.mark.anyio, pytest.mark.slow, pytest.mark.requirement("B2", "D14")]


@pytest.mark.parametrize("client", ERAS, ids="{} client".format)
async def test_the_same_over_our_own_pipes(client: Era, tmp_path: Path) -> None:
    async with over_http(tmp_path) as servers:
        file = tmp_path / "toolcrib.yaml"
        await anyio.Path(file).write_text(config(servers))
        command = StdioServerParameters(
            command=sys.executable,
            args=["-m", "toolcrib", "stdio", "-c", str(file)],
            env={**os.environ, "TOOLCRIB_HOME": str(tmp_path)},
        )
        user = User()
        async with user.client(command, client, *QUESTIONS) as connected:
            for server in ERAS:
                cell = Cell(connected, user, (client, server), tmp_path)
                await until(cell.listed)
                for what in ("call", "progress", "elicit", "cancel"):
                    await WALKS[what](cell)
