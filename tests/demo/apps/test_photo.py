"""The photo app through a gateway: taking, listing and limiting photos; valid PNG files."""

import json
from base64 import b64decode
from collections.abc import AsyncGenerator
from struct import unpack
from zlib import decompress

import pytest

from tests.demo.demo_gateway import ACTING, DemoGateway, open_demo_gateway
from tests.texts import matches
from toolcrib.demo.apps.photo import png

pytestmark = pytest.mark.anyio


@pytest.fixture
async def demo_gateway() -> AsyncGenerator[DemoGateway]:
    async with open_demo_gateway("Mentra Live") as opened:
        yield opened


@pytest.mark.slow
async def test_photo_is_taken_and_listed(demo_gateway: DemoGateway) -> None:
    taken = await demo_gateway.call("photo:take_photo", caption="The gate")
    photo = taken.json["data"]["photo"]
    assert (photo["number"], photo["caption"]) == (1, "The gate")
    kind, _, picture = photo["image"].partition(",")
    assert kind == "data:image/png;base64"
    assert b64decode(picture) == png(1)
    assert (await demo_gateway.next_layout())["text"] == "Photo 1\nThe gate"
    second = await demo_gateway.data("photo:take_photo")
    assert second["photo"]["number"] == 2
    assert (await demo_gateway.next_layout())["text"] == "Photo 2\n"
    listed = await demo_gateway.call("photo:list_photos")
    assert matches("tools", "photo is taken and listed", listed.json["message"])
    assert [each["number"] for each in listed.json["data"]["photos"]] == [2, 1]
    card = await demo_gateway.next_layout()
    assert card["title"] == "Photos"
    assert card["text"].splitlines()[1] == "1. The gate"


@pytest.mark.slow
async def test_oldest_photos_are_removed(demo_gateway: DemoGateway) -> None:
    await demo_gateway.store(
        "photo", photos=[{"number": n, "caption": None, "taken": ""} for n in range(2, 52)]
    )
    await demo_gateway.data("photo:take_photo")
    photos = (await demo_gateway.data("photo:list_photos"))["photos"]
    assert [photos[0]["number"], photos[-1]["number"], len(photos)] == [52, 3, 50]


@pytest.mark.slow
@pytest.mark.requirement("D14")
async def test_photo_reports_progress(demo_gateway: DemoGateway) -> None:
    headers = {**ACTING, "accept": "text/event-stream"}
    reply = await demo_gateway.gateway.call("com.toolcrib.photo:take_photo", {}, headers=headers)
    events = [part.splitlines() for part in reply.body.decode().split("\n\n") if part.startswith("event:")]
    progress = [json.loads(data.partition(": ")[2]) for name, data in events if name == "event: progress"]
    assert [each["message"] for each in progress] == ["Focusing", "Developing"]


def test_picture_depends_only_on_the_number() -> None:
    first, second = png(1), png(2)
    assert first == png(1) != second
    assert first.startswith(b"\x89PNG\r\n\x1a\n")
    assert unpack(">II", first[16:24]) == (32, 24)
    length = unpack(">I", first[33:37])[0]
    assert len(decompress(first[41 : 41 + length])) == 24 * (1 + 3 * 32)
