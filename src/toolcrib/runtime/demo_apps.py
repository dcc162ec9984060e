"""Starts the demo apps and installs them for the demo user."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from time import time

from anyio.abc import TaskGroup

from toolcrib.interfaces import AppRecord, ChangeSignal, InstallRecord, Shared, Store
from toolcrib.runtime.app_runtime import AppRuntime


@dataclass(frozen=True, kw_only=True)
class DemoApps:
    """The parts of the runtime in which the demo apps are registered."""

    room: AppRuntime
    store: Store
    shared: Shared
    tasks: TaskGroup

    async def start(self) -> None:
        """Serve the demo apps on this machine while the gateway runs, and install them for the demo user."""
        # Lazy import: only the demo needs these apps and their server.
        from toolcrib.demo.apps import DEMO_USER, serve_demo_apps

        await self.tasks.start(serve_demo_apps, self._registering(DEMO_USER))
        await self.room.source.refresh()
        self.shared.publish(ChangeSignal("users", DEMO_USER))

    def _registering(self, user: str) -> Callable[[AppRecord], Awaitable[None]]:
        async def register(app: AppRecord) -> None:
            apps = self.store.apps
            if not await apps.add(app):
                await apps.change(app)
                await apps.define(app.package, app.tools, app.updated)
            known = await self.store.users.get(user)
            if known is None or app.package not in {each.package for each in known.installs}:
                await self.store.users.install(user, InstallRecord(package=app.package, at=time()))

        return register
