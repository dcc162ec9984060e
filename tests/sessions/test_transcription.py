"""Transcriptions reach subscribed apps in their language."""

import anyio
import pytest

from tests.sessions.app_host import PACKAGE, USER, app_host
from toolcrib.apps import messages
from toolcrib.sessions.user_events import matching_stream

pytestmark = pytest.mark.anyio

SESSION = f"{USER}-{PACKAGE}"


@pytest.mark.parametrize(
    "streams, language, expected",
    [
        (["transcription"], "en-US", "transcription"),
        (["transcription"], None, "transcription"),
        (["transcription:en-US"], "en-US", "transcription:en-US"),
        (["transcription:en-US"], "en-us", "transcription:en-US"),
        (["transcription:en-US"], "en-GB", "transcription:en-US"),
        (["transcription:en"], "en-GB", "transcription:en"),
        (["transcription:en-US"], "en", "transcription:en-US"),
        (["transcription:en-US"], None, "transcription:en-US"),
        (["transcription:de-DE"], "en-US", None),
        (["transcription:e"], "en-US", None),
        (["transcription:auto"], "fr-FR", "transcription:auto"),
        (["transcription:en-US?diarize=true"], "en-US", "transcription:en-US?diarize=true"),
        (["transcription", "transcription:en", "transcription:en-GB"], "en-GB", "transcription:en-GB"),
        (["transcription", "transcription:en-US"], "en-GB", "transcription:en-US"),
        (["transcription:de-DE", "transcription"], "en-GB", "transcription"),
        (["all"], "en", "all"),
        (["*"], "en", "*"),
        (["all", "transcription"], "en", "transcription"),
        (["button_press", "translation:en-US-to-de-DE"], "en-US", None),
        ([], "en-US", None),
    ],
)
def test_best_matching_subscription(streams: list[str], language: str | None, expected: str | None) -> None:
    assert matching_stream(streams, language) == expected


async def test_transcription_reaches_each_subscriber_once() -> None:
    async with app_host() as host:
        wishes = {
            PACKAGE: ["transcription", "transcription:en-US"],
            "org.example.german": ["transcription:de-DE"],
            "org.example.deaf": [],
        }
        for package, streams in wishes.items():
            host.add(package)
            await host.ready(package)
            said = messages.subscription_update(f"{USER}-{package}", package, streams)
            host.sockets[-1].says(said)
        await anyio.sleep(0.1)
        assert await host.sessions.transcribe(USER, "Hello", final=True, language="en-US") == 1
        assert await host.sessions.transcribe("nobody", "Hello", final=True, language="en-US") == 0
        heard = [socket.types().count(messages.DATA_STREAM) for socket in host.sockets]
        piece = host.sockets[0].last(messages.DATA_STREAM)
    assert heard == [1, 0, 0]
    assert piece["streamType"] == "transcription:en-US"
    assert piece["sessionId"] == SESSION
    assert piece["data"]["text"] == "Hello"
    assert piece["data"]["isFinal"] is True
    assert piece["data"]["transcribeLanguage"] == "en-US"


async def test_last_subscription_wins() -> None:
    async with app_host() as host:
        await host.ready()
        for streams in ([], ["transcription:en-US"], ["button_press"]):
            host.sockets[0].says(messages.subscription_update(SESSION, PACKAGE, streams))
        await anyio.sleep(0.1)
        assert await host.sessions.transcribe(USER, "Hello", final=False, language="en-US") == 0
