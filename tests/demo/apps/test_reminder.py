"""The reminder app, through a gateway: noted, shown, said, kept, ticked off, and heard."""

from collections.abc import AsyncGenerator

import anyio
import pytest

from tests.demo.stage import Stage, stage
from tests.waiting import until

pytestmark = [pytest.mark.anyio, pytest.mark.slow]


@pytest.fixture
async def staged() -> AsyncGenerator[Stage]:
    async with stage("Even Realities G1") as opened:
        yield opened


@pytest.mark.requirement("D7", "D16")
async def test_a_reminder_is_noted_shown_and_said(staged: Stage) -> None:
    reply = await staged.call("reminder:add_reminder", text="Buy milk", when="at six")
    assert reply.json["message"] == "Noted: Buy milk."
    assert reply.json["data"] == {"reminders": [{"number": 1, "text": "Buy milk", "when": "at six"}]}
    assert reply.json["mentraExtensions"]["suppressVoiceResponse"] is True
    await until(lambda: staged.said() == ["Noted: Buy milk."])
    card = await staged.shown()
    assert card == {"layoutType": "reference_card", "title": "Reminders", "text": "1. Buy milk (at six)"}


async def test_where_nobody_listens_the_assistant_is_to_speak() -> None:
    async with stage(watched=False) as staged:
        reply = await staged.call("reminder:add_reminder", text="Buy milk")
        assert reply.json["message"] == "Noted: Buy milk."
        assert reply.json["mentraExtensions"]["suppressVoiceResponse"] is False


async def test_reminders_are_ticked_off_by_number_or_words(staged: Stage) -> None:
    for text in ("Buy milk", "Call Ada", "Water the plants"):
        await staged.data("reminder:add_reminder", text=text)
    await staged.data("reminder:complete_reminder", reminder="2")
    left = await staged.data("reminder:complete_reminder", reminder="MILK")
    assert [each["text"] for each in left["reminders"]] == ["Water the plants"]
    again = await staged.call("reminder:complete_reminder", reminder="milk")
    assert (again.status, again.json["error"]["toolCode"]) == (422, "REMINDER_NOT_FOUND")
    assert "list them first" in again.json["error"]["message"]


async def test_they_are_there_again_in_the_next_session(staged: Stage) -> None:
    await staged.data("reminder:add_reminder", text="Buy milk")
    assert (await staged.gateway.ask("DELETE", "/api/users/demo/session")).status == 200
    await staged.wear("Simulated Glasses")
    listed = await staged.call("reminder:list_reminders")
    assert listed.json["message"] == "You have 1 reminder."
    assert listed.json["data"]["reminders"][0]["text"] == "Buy milk"


async def test_nothing_to_do_is_said_as_well(staged: Stage) -> None:
    assert (await staged.data("reminder:list_reminders"))["reminders"] == []
    assert (await staged.shown())["text"] == "Nothing to do."


async def test_two_at_once_are_both_kept(staged: Stage) -> None:
    async with anyio.create_task_group() as tasks:
        for number in range(5):
            tasks.start_soon(lambda number=number: staged.data("reminder:add_reminder", text=f"No. {number}"))
    listed = await staged.data("reminder:list_reminders")
    assert sorted(each["text"] for each in listed["reminders"]) == [f"No. {each}" for each in range(5)]


async def test_there_is_room_for_a_hundred_that_are_open(staged: Stage) -> None:
    await staged.keep("reminder", reminders=[{"text": "x", "when": None, "done": False}] * 100)
    full = await staged.call("reminder:add_reminder", text="One more")
    assert full.json["error"]["toolCode"] == "TOO_MANY_REMINDERS"
    await staged.data("reminder:complete_reminder", reminder="1")
    added = await staged.data("reminder:add_reminder", text="One more")
    assert [each["text"] for each in added["reminders"]][-1] == "One more"


@pytest.mark.requirement("D13")
@pytest.mark.parametrize(
    "said, noted",
    [
        ("Remind me to call Ada.", "call Ada"),
        ("Erinnere mich an die Milch", "die Milch"),
        ("remind me to", None),
        ("What a day", None),
    ],
)
async def test_while_it_is_open_it_listens(staged: Stage, said: str, noted: str | None) -> None:
    await staged.data("reminder:add_reminder", text="first")
    for final in (False, True):
        body = {"text": said, "isFinal": final}
        heard = await staged.gateway.ask("POST", "/api/users/demo/transcription", body=body)
        assert heard.json == {"delivered": 1}
    if noted is not None:
        await until(lambda: f"Noted: {noted}." in staged.said())
    # What was heard is dealt with before a later call: both go the same way to the app's shelf.
    listed = await staged.data("reminder:list_reminders")
    assert [each["text"] for each in listed["reminders"]] == ["first", *([noted] if noted else [])]
