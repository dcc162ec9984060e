"""Near its limit of memory the gateway refuses new work, says so, and takes it again by itself."""

import json
from pathlib import Path

import anyio
import pytest

from tests.walks.pressure import GatewayUnderPressure, gateway_under_pressure, head, many

pytestmark = [pytest.mark.anyio, pytest.mark.slow, pytest.mark.no_cover, pytest.mark.requirement("I5")]

LIMIT_MB = 400
EXECUTE = "/api/tools/execute"


def call(tool: str, **arguments: float) -> bytes:
    return json.dumps({"name": f"pressed:{tool}", "arguments": arguments}).encode()


async def _becomes(gateway: GatewayUnderPressure, *, short: bool) -> None:
    with anyio.fail_after(30):
        while await gateway.metric("memory_short") != short:  # noqa: ASYNC110 - a metric tells nobody
            await anyio.sleep(0.02)


async def test_work_is_refused_while_memory_is_short(tmp_path: Path) -> None:
    async with gateway_under_pressure(tmp_path, f"memory_mb: {LIMIT_MB}") as gateway:
        (key,) = await gateway.keys(1)
        assert (await gateway.answer(EXECUTE, key, call("pause", seconds=0))).status == 200
        unfinished = head("POST", EXECUTE, key, 3_000_000)
        async with many(gateway, 1) as (uploading,):
            await uploading.send(unfinished + b" " * 100_000)
            hold = call("hold", megabytes=LIMIT_MB - (gateway.resident >> 20) - 20)
            assert (await gateway.answer(EXECUTE, body=hold)).status == 200
            await _becomes(gateway, short=True)
            await uploading.send(b" " * 100_000)
            assert (await uploading.answer()).summary == (503, True)
        refused = [await gateway.answer(EXECUTE, key, call("pause", seconds=0)) for _ in range(3)]
        assert [each.summary for each in refused] == [(503, True)] * 3
        assert json.loads(refused[0].text)["error"]["code"] == "OVERLOADED"
        initialize = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"}).encode()
        assert (await gateway.answer("/mcp", key, initialize)).status == 503
        assert (await gateway.answer("/ready", None)).summary == (503, True)
        assert (await gateway.answer("/health", None)).status == 200
        assert (await gateway.answer("/api/keys")).status == 200
        assert gateway.resident < LIMIT_MB << 20
        assert (await gateway.answer(EXECUTE, body=call("hold", megabytes=0))).status == 200
        await _becomes(gateway, short=False)
        assert (await gateway.answer(EXECUTE, key, call("pause", seconds=0))).status == 200
        assert (await gateway.answer("/ready", None)).status == 200
        assert await gateway.metric("memory_short_total") == 1
    log = [json.loads(line) for line in await _lines(tmp_path / "log")]
    said = [each["level"] for each in log if each.get("logger") == "toolcrib.http.memory"]
    assert said == ["warning", "warning"]


async def _lines(path: Path) -> list[str]:
    return (await anyio.Path(path).read_text()).splitlines()
