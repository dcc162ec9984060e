"""The music app through a gateway: playing, pausing and naming songs."""

from collections.abc import AsyncGenerator
from functools import partial

import pytest

from tests.demo.demo_gateway import DemoGateway, open_demo_gateway
from tests.texts import matches
from toolcrib.demo.apps.music import LIBRARY, music_app
from toolcrib.demo.apps.serving import DemoApp

pytestmark = [pytest.mark.anyio, pytest.mark.slow]


class ManualClock:
    """A clock that the test advances."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def demo_gateway(clock: ManualClock) -> AsyncGenerator[DemoGateway]:
    async with open_demo_gateway(
        apps=[DemoApp(name="Music", make=partial(music_app, clock=clock))]
    ) as opened:
        yield opened


async def test_song_is_found_by_words(demo_gateway: DemoGateway) -> None:
    reply = await demo_gateway.call("music:play_song", title="vise")
    assert matches("tools", "song is found by words", reply.json["message"])
    assert await demo_gateway.next_layout() == {
        "layoutType": "double_text_wall",
        "topText": "Playing  0:00 of 2:58",
        "bottomText": "Left-Hand Thread\nMarta Vise",
    }


async def test_unknown_song_lists_available_ones(demo_gateway: DemoGateway) -> None:
    reply = await demo_gateway.call("music:play_song", title="Yesterday")
    assert (reply.status, reply.json["error"]["toolCode"]) == (422, "SONG_NOT_FOUND")
    assert "Slow Glue" in reply.json["error"]["message"]


async def test_paused_song_resumes(demo_gateway: DemoGateway, clock: ManualClock) -> None:
    await demo_gateway.data("music:play_song")
    clock.now += 60
    paused = await demo_gateway.data("music:pause_music")
    assert (paused["playing"], paused["position"]) == (False, 60)
    clock.now += 1000
    assert (await demo_gateway.call("music:what_is_playing")).json["message"].endswith("is paused.")
    assert (await demo_gateway.call("music:pause_music")).json["error"]["toolCode"] == "NOTHING_PLAYING"
    again = await demo_gateway.data("music:play_song")
    assert (again["playing"], again["position"]) == (True, 60)
    clock.now += 5
    named = await demo_gateway.call("music:what_is_playing")
    assert named.json["data"]["position"] == 65
    assert matches(
        "tools",
        "paused song resumes",
        named.json["message"],
        title=LIBRARY[0].title,
        artist=LIBRARY[0].artist,
    )


async def test_next_song_plays_without_a_title(demo_gateway: DemoGateway) -> None:
    titles = [(await demo_gateway.data("music:play_song"))["song"]["title"] for _ in range(len(LIBRARY) + 1)]
    assert titles == [*(song.title for song in LIBRARY), LIBRARY[0].title]


async def test_song_ends_after_its_duration(demo_gateway: DemoGateway, clock: ManualClock) -> None:
    await demo_gateway.data("music:play_song")
    clock.now += LIBRARY[0].seconds
    named = await demo_gateway.call("music:what_is_playing")
    assert named.json["message"] == "Nothing is playing."
    assert named.json["data"] == {"playing": False, "song": None}


async def test_music_stops_with_the_session(demo_gateway: DemoGateway) -> None:
    await demo_gateway.data("music:play_song")
    assert (await demo_gateway.gateway.request("DELETE", "/api/users/demo/session")).status == 200
    await demo_gateway.start_session("Simulated Glasses")
    assert (await demo_gateway.data("music:what_is_playing"))["song"] is None
