"""Apps and users kept in Postgres: one gateway makes them, another that comes later finds and serves them."""

import anyio
import pytest

from tests.walks.app_house import AppHouse, app_house, contents
from tests.walks.puppet import Puppet

pytestmark = [pytest.mark.anyio, pytest.mark.slow, pytest.mark.needs("postgres")]
PACKAGE = "com.example.notes"
NOTE = f"{PACKAGE}:note"
CAMERA = [{"type": "CAMERA", "level": "REQUIRED"}]


@pytest.mark.requirement("D1", "D2", "D4", "D13")
async def test_a_walk_through_two_gateways(fresh_database: str) -> None:
    async with Puppet(PACKAGE).running() as puppet:
        async with app_house(store=fresh_database) as house:
            await house.admit(puppet, hardware=CAMERA)
            sessions: list[str] = []

            async def begin() -> None:
                sessions.append((await house.session(device="Mentra Live"))["sessionId"])

            async with anyio.create_task_group() as tasks:
                for _ in range(5):
                    tasks.start_soon(begin)
            assert len(set(sessions)) == 1
            assert contents(await house.call(NOTE, {"text": "milk"})) == {"arguments": {"text": "milk"}}
            assert await _stored(house, puppet) == {"page": "7"}
        async with app_house(store=fresh_database) as house:
            assert (await house.made("GET", "/api/users/ann/session"))["sessionId"] == sessions[0]
            assert await house.names() == {NOTE}
            assert (await house.call(NOTE)).status == 200
            assert [each["context"]["activatedForTool"] for each in puppet.calls] == [True, True]
            assert await _stored(house, puppet) == {"page": "7"}
            await house.session()
            assert await house.names() == set(), "a G1 has no camera"
            await house.session(device="Mentra Live")
            await house.made("PUT", f"/api/users/ann/tools/{NOTE}/disabled")
            assert (await house.call(NOTE)).code == "TOOL_NOT_FOUND"
            await house.made("DELETE", f"/api/users/ann/tools/{NOTE}/disabled")
            used = await house.made("GET", f"/api/usage?app={PACKAGE}&user=ann")
            assert used["tools"][NOTE]["calls"] == 2
            await house.made("DELETE", f"/api/apps/{PACKAGE}")
            found = await house.made("GET", "/api/users/ann")
            assert (found["apps"], found["session"]["sessionId"]) == ([], sessions[0])


async def _stored(house: AppHouse, puppet: Puppet) -> object:
    """Put something into the app's own storage, and return all there is."""
    place, key = "/api/sdk/simple-storage/ann", f"{PACKAGE}:{puppet.key}"
    await house.made("PUT", place, {"data": {"page": "7"}}, key=key)
    return (await house.made("GET", place, key=key))["data"]
