"""The conformance suite on our fixture: directly, which proves the fixture, and through the gateway."""

import json
import sys
from collections.abc import AsyncGenerator
from functools import cache
from subprocess import DEVNULL, PIPE

import anyio
import anyio.to_thread
import pytest
from anyio.streams.buffered import BufferedByteReceiveStream

from tests.conformance import suite
from tests.conformance.suite import REVISIONS, Report, Verdict
from tests.gateway_process import GatewayProcess, gateway_process
from tests.servers.client import client, until

pytestmark = [pytest.mark.anyio, pytest.mark.slow, pytest.mark.needs("node", "conformance")]

FIXTURE = (sys.executable, "-m", "tests.conformance.fixture")
CLEAN = Verdict(unexpected=[], stale=[], missing=[])
# Without messages before the answer ours is plain JSON; then the suite has no stream to inspect.
STREAMS = {
    "server-sse-streams-functional",
    "server-sse-disconnect-resume",
    "server-sse-priming-event",
    "server-sse-retry-field",
}

once = cache(suite.run)
"""A run takes seconds, and two tests look at each."""


@pytest.fixture(scope="module")
async def fixture_url() -> AsyncGenerator[str]:
    async with await anyio.open_process(FIXTURE, stdin=DEVNULL, stdout=PIPE, stderr=DEVNULL) as process:
        assert process.stdout is not None
        with anyio.fail_after(60):
            line = await BufferedByteReceiveStream(process.stdout).receive_until(b"\n", 4096)
        yield line.decode()
        process.terminate()


@pytest.fixture(scope="module")
async def gateway(
    fixture_url: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncGenerator[GatewayProcess]:
    """A gateway in front of the fixture, without authentication, with unchanged names."""
    settings = {
        "auth": {"anonymous": {"context": "open"}},
        "contexts": {"open": {"tools": ["*"], "style": "flat"}},
        "mcp": {"servers": {"fixture": {"transport": "http", "url": fixture_url}}},
    }
    async with gateway_process(
        tmp_path_factory.mktemp("served"), json.dumps(settings), demo=False
    ) as running:
        async with client(running) as caller:
            await until(caller.all_up)
        yield running


async def report(url: str, revision: str) -> Report:
    return await anyio.to_thread.run_sync(once, url, revision)


def verdict(ran: Report, revision: str) -> Verdict:
    return suite.judged(ran, suite.expected(revision), suite.required(revision))


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.check(41)
async def test_the_fixture_conforms(fixture_url: str, revision: str) -> None:
    assert verdict(await report(fixture_url, revision), revision) == CLEAN


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.check(41)
async def test_the_gateway_conforms(gateway: GatewayProcess, revision: str) -> None:
    assert verdict(await report(f"{gateway.url}/mcp", revision), revision) == CLEAN


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.check(41)
async def test_the_gateway_loses_nothing(fixture_url: str, gateway: GatewayProcess, revision: str) -> None:
    direct, through = await report(fixture_url, revision), await report(f"{gateway.url}/mcp", revision)
    assert suite.lost(direct, through) <= STREAMS
