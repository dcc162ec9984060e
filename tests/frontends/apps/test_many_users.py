"""Two hundred users of one app at once: each has its own socket, and no messages are mixed up."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial

import anyio
import pytest

from tests.http.sockets import sockets
from toolcrib.apps.signature import key_digest, signing_secret
from toolcrib.egress import AddressRules, Egress
from toolcrib.egress.json_post import JsonPoster
from toolcrib.frontends.apps import AppSockets
from toolcrib.interfaces import AppRecord, InstallRecord, SessionRecord, UserRecord
from toolcrib.sdk import AppServer, AppSession, Transcription
from toolcrib.sessions import AppTimeouts, UserSessions

pytestmark = [pytest.mark.anyio, pytest.mark.slow, pytest.mark.requirement("D7")]

PACKAGE, KEY = "org.example.echo", "the key of an app in a test"
MANY = 200


def echo() -> AppServer:
    """An app that displays the transcription."""
    app = AppServer(package=PACKAGE, api_key=KEY)

    @app.on_transcription
    async def show(session: AppSession, heard: Transcription) -> None:
        await session.layouts.show_text_wall(f"{session.user_id}: {heard.text}")

    return app


async def user(id: str) -> UserRecord:
    """All users have installed it and have a session."""
    installs = (InstallRecord(package=PACKAGE, at=0.0),)
    return UserRecord(id=id, installs=installs, session=SessionRecord(user=id, id=f"session of {id}"))


@asynccontextmanager
async def running(address: str) -> AsyncGenerator[tuple[UserSessions, AppSockets]]:
    """Sessions with their sockets, and an app that listens at an address."""
    record = AppRecord(
        package=PACKAGE,
        name="Echo",
        owner="test",
        public_url=address,
        digest=key_digest(KEY),
        signing=signing_secret(KEY),
    )
    post = JsonPoster(AddressRules.same(Egress(guarded=False)))
    sessions = UserSessions(AppTimeouts(activation=300.0), find={PACKAGE: record}.get, user=user, post=post)
    counted = AppSockets(sessions.accept)
    (route,) = counted.routes()
    async with sockets(sessions.accept, route=route) as server, anyio.create_task_group() as tasks:
        sessions.address = server.url
        await tasks.start(sessions.run)
        yield sessions, counted
        tasks.cancel_scope.cancel()
    await post.close()


async def live(sessions: UserSessions, id: str) -> None:
    """Start the app, send speech, and read the display."""
    await sessions.start(id, PACKAGE)
    async with sessions.listen(id, "key") as events:
        # The app subscribes once it is connected, a moment later.
        said = partial(sessions.transcribe, id, "good day", final=True, language=None)
        while not await said():  # noqa: ASYNC110 - it tells nobody when it has
            await anyio.sleep(0.005)
        async for event in events:
            if event.kind == "display":
                assert event.data["layout"]["text"] == f"{id}: good day"
                return


async def test_two_hundred_users_of_one_app() -> None:
    async with echo().serving(port=0) as address, running(address) as (sessions, counted):
        with anyio.fail_after(300):
            async with anyio.create_task_group() as tasks:
                for number in range(MANY):
                    tasks.start_soon(live, sessions, f"user{number}")
        assert (counted.open, sessions.running()) == (MANY, MANY)
