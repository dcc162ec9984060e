"""The music app, through a gateway: played, paused, named; only where there is a speaker."""

from collections.abc import AsyncGenerator
from functools import partial

import pytest

from tests.demo.demo_gateway import DemoGateway, open_demo_gateway
from tests.texts import matches
from toolcrib.demo.apps.music import LIBRARY, music_app
from toolcrib.demo.apps.serving import DemoApp

pytestmark = [pytest.mark.anyio, pytest.mark.slow]


class Hands:
    """The hands of a clock."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def hands() -> Hands:
    return Hands()


@pytest.fixture
async def demo_gateway(hands: Hands) -> AsyncGenerator[DemoGateway]:
    async with open_demo_gateway(
        apps=[DemoApp(name="Music", make=partial(music_app, clock=hands))]
    ) as opened:
        yield opened


async def test_song_is_found_by_words(demo_gateway: DemoGateway) -> None:
    reply = await demo_gateway.call("music:play_song", title="vise")
    assert matches("tools", "song is found by words", reply.json["message"])
    assert await demo_gateway.shown() == {
        "layoutType": "double_text_wall",
        "topText": "Playing  0:00 of 2:58",
        "bottomText": "Left-Hand Thread\nMarta Vise",
    }


async def test_unknown_song_lists_available_ones(demo_gateway: DemoGateway) -> None:
    reply = await demo_gateway.call("music:play_song", title="Yesterday")
    assert (reply.status, reply.json["error"]["toolCode"]) == (422, "SONG_NOT_FOUND")
    assert "Slow Glue" in reply.json["error"]["message"]


async def test_paused_song_resumes(demo_gateway: DemoGateway, hands: Hands) -> None:
    await demo_gateway.data("music:play_song")
    hands.now += 60
    paused = await demo_gateway.data("music:pause_music")
    assert (paused["playing"], paused["position"]) == (False, 60)
    hands.now += 1000
    assert (await demo_gateway.call("music:what_is_playing")).json["message"].endswith("is paused.")
    assert (await demo_gateway.call("music:pause_music")).json["error"]["toolCode"] == "NOTHING_PLAYING"
    again = await demo_gateway.data("music:play_song")
    assert (again["playing"], again["position"]) == (True, 60)
    hands.now += 5
    named = await demo_gateway.call("music:what_is_playing")
    assert named.json["data"]["position"] == 65
    assert matches(
        "tools",
        "paused song resumes",
        named.json["message"],
        title=LIBRARY[0].title,
        artist=LIBRARY[0].artist,
    )


async def test_without_a_wish_the_next_one_plays(demo_gateway: DemoGateway) -> None:
    titles = [(await demo_gateway.data("music:play_song"))["song"]["title"] for _ in range(len(LIBRARY) + 1)]
    assert titles == [*(song.title for song in LIBRARY), LIBRARY[0].title]


async def test_a_song_that_is_over_plays_no_more(demo_gateway: DemoGateway, hands: Hands) -> None:
    await demo_gateway.data("music:play_song")
    hands.now += LIBRARY[0].seconds
    named = await demo_gateway.call("music:what_is_playing")
    assert named.json["message"] == "Nothing is playing."
    assert named.json["data"] == {"playing": False, "song": None}


async def test_the_music_stops_with_the_session(demo_gateway: DemoGateway) -> None:
    await demo_gateway.data("music:play_song")
    assert (await demo_gateway.gateway.request("DELETE", "/api/users/demo/session")).status == 200
    await demo_gateway.wear("Simulated Glasses")
    assert (await demo_gateway.data("music:what_is_playing"))["song"] is None
