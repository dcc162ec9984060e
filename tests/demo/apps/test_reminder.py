"""The reminder app through a gateway: storage, display, speech output and speech input."""

from collections.abc import AsyncGenerator

import anyio
import pytest

from tests.demo.demo_gateway import DemoGateway, open_demo_gateway
from tests.texts import matches
from tests.waiting import until

pytestmark = [pytest.mark.anyio, pytest.mark.slow]


@pytest.fixture
async def demo_gateway() -> AsyncGenerator[DemoGateway]:
    async with open_demo_gateway("Even Realities G1") as opened:
        yield opened


@pytest.mark.requirement("D7", "D16")
async def test_reminder_is_stored_shown_and_spoken(demo_gateway: DemoGateway) -> None:
    reply = await demo_gateway.call("reminder:add_reminder", text="Buy milk", when="at six")
    assert reply.json["message"] == "Noted: Buy milk."
    assert reply.json["data"] == {"reminders": [{"number": 1, "text": "Buy milk", "when": "at six"}]}
    assert reply.json["mentraExtensions"]["suppressVoiceResponse"] is True
    await until(lambda: demo_gateway.spoken_texts() == ["Noted: Buy milk."])
    card = await demo_gateway.next_layout()
    assert card == {"layoutType": "reference_card", "title": "Reminders", "text": "1. Buy milk (at six)"}


async def test_without_device_the_assistant_speaks() -> None:
    async with open_demo_gateway(watched=False) as demo_gateway:
        reply = await demo_gateway.call("reminder:add_reminder", text="Buy milk")
        assert reply.json["message"] == "Noted: Buy milk."
        assert reply.json["mentraExtensions"]["suppressVoiceResponse"] is False


async def test_reminders_are_completed_by_number_or_text(demo_gateway: DemoGateway) -> None:
    for text in ("Buy milk", "Call Ada", "Water the plants"):
        await demo_gateway.data("reminder:add_reminder", text=text)
    await demo_gateway.data("reminder:complete_reminder", reminder="2")
    left = await demo_gateway.data("reminder:complete_reminder", reminder="MILK")
    assert [each["text"] for each in left["reminders"]] == ["Water the plants"]
    again = await demo_gateway.call("reminder:complete_reminder", reminder="milk")
    assert (again.status, again.json["error"]["toolCode"]) == (422, "REMINDER_NOT_FOUND")
    assert matches("tools", "reminders are completed by number or text", again.json["error"]["message"])


async def test_reminders_last_beyond_the_session(demo_gateway: DemoGateway) -> None:
    await demo_gateway.data("reminder:add_reminder", text="Buy milk")
    assert (await demo_gateway.gateway.request("DELETE", "/api/users/demo/session")).status == 200
    await demo_gateway.start_session("Simulated Glasses")
    listed = await demo_gateway.call("reminder:list_reminders")
    assert matches("tools", "reminders last beyond the session", listed.json["message"])
    assert listed.json["data"]["reminders"][0]["text"] == "Buy milk"


async def test_empty_reminder_list_is_spoken(demo_gateway: DemoGateway) -> None:
    assert (await demo_gateway.data("reminder:list_reminders"))["reminders"] == []
    assert (await demo_gateway.next_layout())["text"] == "Nothing to do."


async def test_concurrent_reminders_are_all_stored(demo_gateway: DemoGateway) -> None:
    async with anyio.create_task_group() as tasks:
        for number in range(5):
            tasks.start_soon(
                lambda number=number: demo_gateway.data("reminder:add_reminder", text=f"No. {number}")
            )
    listed = await demo_gateway.data("reminder:list_reminders")
    assert sorted(each["text"] for each in listed["reminders"]) == [f"No. {each}" for each in range(5)]


async def test_open_reminders_are_limited_to_a_hundred(demo_gateway: DemoGateway) -> None:
    await demo_gateway.store("reminder", reminders=[{"text": "x", "when": None, "done": False}] * 100)
    full = await demo_gateway.call("reminder:add_reminder", text="One more")
    assert full.json["error"]["toolCode"] == "TOO_MANY_REMINDERS"
    await demo_gateway.data("reminder:complete_reminder", reminder="1")
    added = await demo_gateway.data("reminder:add_reminder", text="One more")
    assert [each["text"] for each in added["reminders"]][-1] == "One more"


@pytest.mark.requirement("D13")
@pytest.mark.parametrize(
    "speech, noted",
    [
        ("Remind me to call Ada.", "call Ada"),
        ("Erinnere mich an die Milch", "die Milch"),
        ("remind me to", None),
        ("What a day", None),
    ],
)
async def test_spoken_phrases_add_reminders(
    demo_gateway: DemoGateway, speech: str, noted: str | None
) -> None:
    await demo_gateway.data("reminder:add_reminder", text="first")
    for final in (False, True):
        body = {"text": speech, "isFinal": final}
        reply = await demo_gateway.gateway.request("POST", "/api/users/demo/transcription", body=body)
        assert reply.json == {"delivered": 1}
    if noted is not None:
        await until(lambda: f"Noted: {noted}." in demo_gateway.spoken_texts())
    # Speech is handled before a later call: both use the same queue of the app.
    listed = await demo_gateway.data("reminder:list_reminders")
    assert [each["text"] for each in listed["reminders"]] == ["first", *([noted] if noted else [])]
