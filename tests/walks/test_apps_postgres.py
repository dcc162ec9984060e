"""Apps and users kept in Postgres: one gateway makes them, another that comes later finds and serves them."""

import anyio
import pytest

from tests.walks.app_host import AppHost, app_host, contents
from tests.walks.fake_app import FakeApp

pytestmark = [pytest.mark.anyio, pytest.mark.slow, pytest.mark.needs("postgres")]
PACKAGE = "com.example.notes"
NOTE = f"{PACKAGE}:note"
CAMERA = [{"type": "CAMERA", "level": "REQUIRED"}]


@pytest.mark.requirement("D1", "D2", "D4", "D13")
async def test_apps_on_two_gateways(fresh_database: str) -> None:
    async with FakeApp(PACKAGE).running() as fake_app:
        async with app_host(store=fresh_database) as host:
            await host.admit(fake_app, hardware=CAMERA)
            sessions: list[str] = []

            async def begin() -> None:
                sessions.append((await host.session(device="Mentra Live"))["sessionId"])

            async with anyio.create_task_group() as tasks:
                for _ in range(5):
                    tasks.start_soon(begin)
            assert len(set(sessions)) == 1
            assert contents(await host.call(NOTE, {"text": "milk"})) == {"arguments": {"text": "milk"}}
            assert await _stored(host, fake_app) == {"page": "7"}
        async with app_host(store=fresh_database) as host:
            assert (await host.made("GET", "/api/users/ann/session"))["sessionId"] == sessions[0]
            assert await host.names() == {NOTE}
            assert (await host.call(NOTE)).status == 200
            assert [each["context"]["activatedForTool"] for each in fake_app.calls] == [True, True]
            assert await _stored(host, fake_app) == {"page": "7"}
            await host.session()
            assert await host.names() == set(), "a G1 has no camera"
            await host.session(device="Mentra Live")
            await host.made("PUT", f"/api/users/ann/tools/{NOTE}/disabled")
            assert (await host.call(NOTE)).code == "TOOL_NOT_FOUND"
            await host.made("DELETE", f"/api/users/ann/tools/{NOTE}/disabled")
            used = await host.made("GET", f"/api/usage?app={PACKAGE}&user=ann")
            assert used["tools"][NOTE]["calls"] == 2
            await host.made("DELETE", f"/api/apps/{PACKAGE}")
            found = await host.made("GET", "/api/users/ann")
            assert (found["apps"], found["session"]["sessionId"]) == ([], sessions[0])


async def _stored(host: AppHost, fake_app: FakeApp) -> object:
    """Put something into the app's own storage, and return all there is."""
    place, key = "/api/sdk/simple-storage/ann", f"{PACKAGE}:{fake_app.key}"
    await host.made("PUT", place, {"data": {"page": "7"}}, key=key)
    return (await host.made("GET", place, key=key))["data"]
