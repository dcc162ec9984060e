"""kill -9 in the middle of a change: afterwards its key says that nobody knows, and it is not made again."""

from contextlib import suppress
from pathlib import Path
from typing import Any

import aiohttp
import anyio
import pytest

from tests.gateway_process import GatewayProcess, gateway_process
from tests.waiting import until

pytestmark = [pytest.mark.slow, pytest.mark.requirement("E12")]

TOOLS = '''
from pathlib import Path

import anyio
from toolcrib import create_tool

LEDGER = Path(__file__).with_name("ledger.txt")
GATE = Path(__file__).with_name("gate")


@create_tool(category="mutation", timeout=120)
async def pay(amount: int) -> dict[str, int]:
    """Write a payment into the ledger, then wait until the gate is open."""
    with LEDGER.open("a") as ledger:
        ledger.write(f"{amount}\\n")
    while not await anyio.Path(GATE).exists():
        await anyio.sleep(0.01)
    return {"paid": amount}
'''
PAYMENT = {"name": "pay", "arguments": {"amount": 5}}


class Payer:
    """Pays at a gateway under a key, and remembers what it was told."""

    def __init__(self, gateway: GatewayProcess, session: aiohttp.ClientSession) -> None:
        self._url, self._session = f"{gateway.url}/api/tools/execute", session

    async def pay(self, key: str, **changes: Any) -> tuple[int, dict[str, Any]]:
        """Pay once; the status, and the result."""
        body = {**PAYMENT, "idempotencyKey": key, **changes}
        async with self._session.post(self._url, json=body) as answer:
            return answer.status, await answer.json()

    async def pay_in_vain(self, key: str) -> None:
        """Pay, and live with a gateway that dies meanwhile."""
        with suppress(aiohttp.ClientError):
            await self.pay(key)


def lines(ledger: Path) -> int:
    """How many payments were made."""
    return len(ledger.read_text().splitlines()) if ledger.exists() else 0


@pytest.mark.no_cover
@pytest.mark.parametrize("store", ["sqlite", "postgres"])
@pytest.mark.check(21, 25)
async def test_a_change_is_never_made_twice(
    tmp_path: Path, store: str, request: pytest.FixtureRequest
) -> None:
    (tmp_path / "till.py").write_text(TOOLS)
    ledger = tmp_path / "ledger.txt"
    config = "functions: [till]\n"
    if store == "postgres":
        config += f"store: {request.getfixturevalue('fresh_database')}\n"
    async with gateway_process(tmp_path, config, demo=False) as gateway:
        headers = gateway.admin
        async with aiohttp.ClientSession(headers=headers) as session, anyio.create_task_group() as tasks:
            payer = Payer(gateway, session)
            tasks.start_soon(payer.pay_in_vain, "in-the-middle")
            await until(lambda: lines(ledger) == 1)
            status, early = await payer.pay("in-the-middle")
            assert (status, early["error"]["code"]) == (409, "IN_PROGRESS")
            await gateway.kill()
    (tmp_path / "gate").touch()
    for _ in range(2):
        async with gateway_process(tmp_path, config, demo=False) as gateway:
            async with aiohttp.ClientSession(headers=gateway.admin) as session:
                payer = Payer(gateway, session)
                status, late = await payer.pay("in-the-middle")
                assert (status, late["error"]["code"]) == (504, "OUTCOME_UNKNOWN")
                assert late["error"]["retryable"] is False
                status, other = await payer.pay("in-the-middle", arguments={"amount": 6})
                assert (status, other["error"]["code"]) == (422, "IDEMPOTENCY_MISMATCH")
                status, done = await payer.pay("afterwards")
                assert (status, done["data"]) == (200, {"paid": 5})
            await gateway.kill()
    assert lines(ledger) == 2
