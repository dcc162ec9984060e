"""Serves the demo apps next to the gateway, each on a free local port."""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from secrets import token_hex
from time import time

import anyio
from anyio.abc import TaskStatus

from toolcrib.apps.signature import key_digest, signing_secret
from toolcrib.demo.apps.music import music_app
from toolcrib.demo.apps.photo import photo_app
from toolcrib.demo.apps.reminder import reminder_app
from toolcrib.interfaces import AppRecord, AppTool
from toolcrib.interfaces.apps import AppType
from toolcrib.model import Requirement
from toolcrib.sdk import AppServer

DEMO_USER = "demo"
"""The user for whom all demo apps are installed."""
OWNER = "admin"

Register = Callable[[AppRecord], Awaitable[None]]
"""Stores or updates an app and installs it for the demo user."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoApp:
    """A demo app with the data that its developer would register."""

    name: str
    make: Callable[[str], AppServer]
    app_type: AppType = "standard"
    hardware: tuple[Requirement, ...] = ()

    def record(self, server: AppServer, address: str, key: str) -> AppRecord:
        """Return the record of the running app."""
        now = time()
        return AppRecord(
            package=server.package,
            name=self.name,
            owner=OWNER,
            public_url=address,
            url_giver="operator",
            app_type=self.app_type,
            hardware=self.hardware,
            digest=key_digest(key),
            signing=signing_secret(key),
            tools=tuple(AppTool(definition=each) for each in server.get_tool_definitions()),
            created=now,
            updated=now,
        )


APPS = (
    DemoApp(name="Reminders", make=reminder_app, app_type="background"),
    DemoApp(
        name="Music",
        make=music_app,
        hardware=(
            Requirement(type="SPEAKER", description="to play songs"),
            Requirement(type="DISPLAY", level="OPTIONAL", description="to show what plays"),
        ),
    ),
    DemoApp(
        name="Photos",
        make=photo_app,
        hardware=(
            Requirement(type="CAMERA", description="to take photos"),
            Requirement(type="DISPLAY", level="OPTIONAL", description="to show which was taken"),
        ),
    ),
)


async def serve_demo_apps(
    register: Register,
    apps: Sequence[DemoApp] = APPS,
    *,
    task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
) -> None:
    """Serve all apps until cancelled; reports as started once all listen and are registered.

    Every start generates new API keys, so that none is stored in a file.
    """
    async with AsyncExitStack() as stack:
        for app in apps:
            key = token_hex(32)
            server = app.make(key)
            address = await stack.enter_async_context(server.serving())
            await register(app.record(server, address, key))
        task_status.started()
        await anyio.sleep_forever()
