"""Definitions and records of the demo apps, and the devices on which they are offered."""

import pytest

from tests.demo.demo_gateway import open_demo_gateway
from toolcrib.apps.definition import tool_faults
from toolcrib.apps.properties import phrases
from toolcrib.apps.signature import key_digest, signing_secret
from toolcrib.demo.apps.serving import APPS
from toolcrib.model import JsonObject

pytestmark = pytest.mark.anyio

REMINDER = ["add_reminder", "list_reminders", "complete_reminder"]
MUSIC = ["play_song", "pause_music", "what_is_playing"]
PHOTO = ["take_photo", "list_photos"]


def definitions() -> list[JsonObject]:
    return [each for app in APPS for each in app.make("key").get_tool_definitions()]


def test_tool_definitions_are_valid() -> None:
    found = definitions()
    assert tool_faults(found) == ()
    assert [each["name"] for each in found] == [*REMINDER, *MUSIC, *PHOTO]


@pytest.mark.requirement("D13")
@pytest.mark.parametrize("language, first", [("de-CH", "erinnere mich an"), ("fr", "remind me to")])
def test_tools_have_phrases_in_two_languages(language: str, first: str) -> None:
    extensions = [each["mentraExtensions"] for each in definitions()]
    assert all(set(each["activationPhrases"]) == {"en", "de"} for each in extensions)
    assert phrases(extensions[0], language)[0] == first


def test_app_record_omits_the_key() -> None:
    music = APPS[1]
    record = music.record(music.make("a key"), "http://127.0.0.1:1", "a key")
    assert (record.package, record.name, record.owner) == ("com.toolcrib.music", "Music", "admin")
    assert [(each.type, each.level) for each in record.hardware] == [
        ("SPEAKER", "REQUIRED"),
        ("DISPLAY", "OPTIONAL"),
    ]
    assert (record.digest, record.signing) == (key_digest("a key"), signing_secret("a key"))
    assert "a key" not in repr(record)


@pytest.mark.slow
@pytest.mark.requirement("D3", "D4")
@pytest.mark.parametrize(
    "device, offered",
    [
        ("Even Realities G1", {"reminder"}),
        ("Simulated Glasses", {"reminder", "music"}),
        ("Mentra Live", {"reminder", "music", "photo"}),
    ],
)
async def test_apps_are_offered_on_suitable_devices(device: str, offered: set[str]) -> None:
    async with open_demo_gateway(device) as demo_gateway:
        apps = {name.split(":")[0].removeprefix("com.toolcrib.") for name in await demo_gateway.tools()}
        assert apps == offered
        called = await demo_gateway.call("music:play_song")
        assert called.status == (200 if "music" in offered else 404)
