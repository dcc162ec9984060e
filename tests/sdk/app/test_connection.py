"""The socket of a session: final closes, reconnects, and refused apps."""

from collections.abc import Callable
from time import time

import anyio
import pytest
from websockets.asyncio.server import ServerConnection, serve
from websockets.datastructures import Headers
from websockets.http11 import Request, Response

from tests.sdk.app.fake_gateway import PACKAGE, USER, FakeGateway, an_app, fake_gateway
from tests.waiting import until
from toolcrib.apps import messages
from toolcrib.model import JsonObject
from toolcrib.sdk import AppServer, AppSession, Transcription
from toolcrib.sdk.app import connection

pytestmark = [pytest.mark.anyio, pytest.mark.slow]


def noted() -> tuple[AppServer, list[str]]:
    """An app that notes why its sessions ended, and listens."""
    app = an_app()
    ended: list[str] = []

    @app.on_stop
    def stopped(session: AppSession, reason: str) -> None:
        ended.append(reason)

    @app.on_transcription
    def listen(session: AppSession, words: Transcription) -> None:
        pass

    return app, ended


def refusing(code: str) -> Callable[[JsonObject], JsonObject]:
    """Answers of a gateway that refuse an app."""
    return lambda _: messages.connection_error(code, "go away", now=time())


async def test_broken_connection_reconnects() -> None:
    app, ended = noted()
    async with fake_gateway(app) as gateway:
        await gateway.begin()
        session = app.session(USER)
        assert session is not None
        await gateway.heard("subscription_update")
        for code in (1011, 1012):
            before = len(gateway.of("subscription_update"))
            await gateway.sockets[-1].close(code)
            await gateway.heard("subscription_update", before + 1)
        await session.layouts.show_text_wall("still here")
        await gateway.heard("display_event")
        assert len(gateway.of("tpa_connection_init")) == 3
        assert (app.session(USER), ended) == (session, [])


@pytest.mark.parametrize("code", [1000, 1001, 1008])
async def test_a_connection_that_was_meant_to_end_stays_so(code: int) -> None:
    app, ended = noted()
    async with fake_gateway(app) as gateway:
        await gateway.begin()
        await gateway.say(messages.app_stopped(f"{USER}-{PACKAGE}", reason="idle", now=time()))
        await gateway.sockets[-1].close(code)
        await until(lambda: ended == ["idle"])
        assert len(gateway.sockets) == 1
        assert app.session(USER) is None


async def test_it_gives_up_after_three_attempts() -> None:
    app, ended = noted()
    async with fake_gateway(app) as gateway:
        await gateway.begin()
        gateway.welcome = lambda _: None
        session = app.session(USER)
        assert session is not None
        with pytest.MonkeyPatch.context() as patch:
            # Long enough for each attempt to authenticate on a slow machine.
            patch.setattr(connection, "CONNECT_SECONDS", 0.5)
            await gateway.sockets[-1].close(1011)
            with pytest.raises(ConnectionError):
                await session.layouts.show_text_wall("waits for it, in vain")
            await until(lambda: ended == ["disconnected"])
        assert len(gateway.of("tpa_connection_init")) == 4


async def test_it_gives_up_at_once_where_it_is_not_let_in_again() -> None:
    app, ended = noted()
    async with fake_gateway(app) as gateway:
        await gateway.begin()
        gateway.welcome = refusing("APP_NOT_STARTED")
        await gateway.sockets[-1].close(1011)
        await until(lambda: ended == ["disconnected"])
        assert len(gateway.of("tpa_connection_init")) == 2


async def test_a_gateway_that_does_not_let_it_in() -> None:
    app, ended = noted()
    async with fake_gateway(app) as gateway:
        gateway.welcome = refusing("INVALID_API_KEY")
        answer = await gateway.begin()
        assert (answer.status, answer.json["status"]) == (500, "error")
        assert "INVALID_API_KEY, go away" in answer.json["message"]
        nobody = await gateway.begin(url="ws://127.0.0.1:9/app-ws")
        assert (nobody.status, nobody.json["status"]) == (500, "error")
        for url in ("http://127.0.0.1/app-ws", "ws://", "ws://[", "ftp://x/", "ws://user@host/"):
            assert (await gateway.begin(url=url)).status == 400
        assert (app.session(USER), ended) == (None, [])


async def test_new_session_replaces_the_old() -> None:
    app, ended = noted()
    async with fake_gateway(app) as gateway:
        await gateway.begin()
        first = app.session(USER)
        await gateway.begin()
        assert ended == ["replaced"]
        assert (await gateway.heard("ownership_release"))["reason"] == "switching_clouds"
        second = app.session(USER)
        assert second is not first
        assert second is not None
        assert second.connected


async def test_all_sessions_are_given_up_at_the_end() -> None:
    app, ended = noted()
    async with fake_gateway(app) as gateway:
        for user in ("ada", "bob"):
            await gateway.begin(user)
    assert [each["reason"] for each in gateway.of("ownership_release")] == ["clean_shutdown"] * 2
    assert ended == ["shutdown"] * 2


async def test_an_app_that_fails_to_begin(caplog: pytest.LogCaptureFixture) -> None:
    app, ended = noted()

    @app.on_session
    async def begin(session: AppSession) -> None:
        raise LookupError("kaput")

    async with fake_gateway(app) as gateway:
        answer = await gateway.begin()
        assert (answer.status, answer.json["status"]) == (500, "error")
        assert "kaput" not in str(answer.json)
        await until(lambda: ended == ["error"])
        assert app.session(USER) is None
    assert "kaput" in caplog.text


async def test_two_users_at_once() -> None:
    app = an_app()
    here: set[str] = set()
    both = anyio.Event()

    @app.on_session
    async def begin(session: AppSession) -> None:
        here.add(session.user_id)
        if len(here) == 2:
            both.set()
        await both.wait()
        await session.layouts.show_text_wall(session.user_id)

    async with fake_gateway(app) as gateway:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(gateway.begin, "ada")
            tasks.start_soon(gateway.begin, "bob")
        await gateway.heard("display_event", 2)
        shown = {each["sessionId"]: each["layout"]["text"] for each in gateway.of("display_event")}
        assert shown == {f"ada-{PACKAGE}": "ada", f"bob-{PACKAGE}": "bob"}
        await gateway.stop("ada")
        assert app.session("ada") is None
        other = app.session("bob")
        assert other is not None
        assert other.connected


async def test_an_app_that_never_gets_ready_holds_nothing_up() -> None:
    app, ended = noted()
    begun = anyio.Event()
    answers: list[int] = []

    @app.on_session
    async def begin(session: AppSession) -> None:
        if not begun.is_set():
            begun.set()
            await anyio.sleep_forever()

    async def ask(gateway: FakeGateway) -> None:
        answers.append((await gateway.begin()).status)

    async with fake_gateway(app) as gateway, anyio.create_task_group() as tasks:
        tasks.start_soon(ask, gateway)
        await begun.wait()
        assert (await gateway.begin()).status == 200
        await until(lambda: answers == [500])
        assert ended == ["replaced"]
        await gateway.stop()
        assert ended == ["replaced", "user_disabled"]


async def test_no_redirect_leads_the_apps_key_elsewhere() -> None:
    app, _ = noted()
    shown: list[str] = []

    async def elsewhere(socket: ServerConnection) -> None:
        shown.extend([str(frame) async for frame in socket])

    async with fake_gateway(app) as gateway, serve(elsewhere, "127.0.0.1", 0) as stranger:
        port = next(iter(stranger.sockets)).getsockname()[1]

        def redirects(socket: ServerConnection, request: Request) -> Response:
            return Response(302, "Found", Headers({"Location": f"ws://127.0.0.1:{port}/app-ws"}))

        async with serve(elsewhere, "127.0.0.1", 0, process_request=redirects) as crooked:
            at = next(iter(crooked.sockets)).getsockname()[1]
            answer = await gateway.begin(url=f"ws://127.0.0.1:{at}/app-ws")
    assert answer.status == 500
    assert shown == []
