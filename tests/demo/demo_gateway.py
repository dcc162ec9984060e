"""A listening gateway with the demo apps and a user with a device session."""

import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio
from anyio.abc import TaskStatus

from tests.gateways import InProcessGateway, Reply, listening, open_gateway
from tests.waiting import until
from toolcrib.demo.apps.serving import APPS, DEMO_USER, DemoApp, serve_demo_apps
from toolcrib.interfaces import AppRecord, InstallRecord
from toolcrib.sdk import AnyTool
from toolcrib.sessions import UserEvent

ACTING = {"x-user-id": DEMO_USER}


@dataclass(frozen=True)
class DemoGateway:
    """The gateway and the events that its user has received."""

    gateway: InProcessGateway
    url: str
    events: list[UserEvent] = field(default_factory=list[UserEvent])

    async def start_session(self, device: str) -> None:
        """Start the user's session with a device."""
        path = f"/api/users/{DEMO_USER}/session"
        assert (await self.gateway.request("PUT", path, body={"device": device})).status == 200

    async def call(self, name: str, **arguments: Any) -> Reply:
        """Call a tool of an app; the name starts with the last part of the package."""
        return await self.gateway.call(f"com.toolcrib.{name}", arguments, headers=ACTING)

    async def data(self, name: str, **arguments: Any) -> Any:
        """Call a tool that must succeed; return its data."""
        reply = await self.call(name, **arguments)
        assert reply.status == 200, reply.body
        return reply.json["data"]

    async def store(self, app: str, **values: Any) -> None:
        """Write stored data of an app."""
        stored = {key: json.dumps(value) for key, value in values.items()}
        assert await self.gateway.runtime.console.store.app_data.put(f"com.toolcrib.{app}", DEMO_USER, stored)

    async def tools(self) -> list[str]:
        """Return the app tools that the user can call."""
        listed = (await self.gateway.request("GET", "/api/tools", headers=ACTING)).json["tools"]
        return [each["name"] for each in listed if each["name"].startswith("com.toolcrib.")]

    async def next_layout(self) -> dict[str, Any]:
        """Wait for the next display event and return its layout; clears all events."""
        await until(lambda: any(each.kind == "display" for each in self.events))
        event = next(each for each in self.events if each.kind == "display")
        self.events.clear()
        return dict(event.data["layout"])

    def spoken_texts(self) -> list[str]:
        """Return the spoken texts."""
        return [each.data["text"] for each in self.events if each.kind == "speak"]


@asynccontextmanager
async def open_demo_gateway(
    device: str = "Simulated Glasses",
    *,
    apps: Sequence[DemoApp] = APPS,
    watched: bool = True,
    config: str = "",
    tools: Sequence[AnyTool] = (),
) -> AsyncGenerator[DemoGateway]:
    """Run the gateway and the demo apps; if `watched`, display and speech are recorded."""
    async with (
        open_gateway(config, tools=tools) as gateway,
        listening(gateway.server) as url,
        anyio.create_task_group() as tasks,
    ):
        runtime = gateway.runtime
        runtime.sessions.address = url

        async def register(app: AppRecord) -> None:
            assert await runtime.console.store.apps.add(app)
            assert await runtime.console.store.users.install(
                DEMO_USER, InstallRecord(package=app.package, at=0.0)
            )
            await runtime.console.apps.refresh()

        await tasks.start(serve_demo_apps, register, apps)
        demo_gateway = DemoGateway(gateway, url)
        await demo_gateway.start_session(device)

        async def watch(*, task_status: TaskStatus[None]) -> None:
            async with runtime.sessions.listen(DEMO_USER, "key") as stream:
                task_status.started()
                async for event in stream:
                    demo_gateway.events.append(event)

        if watched:
            await tasks.start(watch)
        yield demo_gateway
        tasks.cancel_scope.cancel()
