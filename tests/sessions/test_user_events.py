"""User events: every listener gets all, slow ones lose the oldest, listeners are bounded."""

from contextlib import AsyncExitStack

import pytest

from toolcrib.errors import Refused
from toolcrib.sessions import UserEvent
from toolcrib.sessions.user_events import (
    MAX_QUEUED_EVENT_BYTES,
    MAX_QUEUED_EVENTS,
    MAX_USER_LISTENERS,
    EventHub,
)

pytestmark = pytest.mark.anyio


async def test_listeners_get_events_from_their_start() -> None:
    hub = EventHub()
    hub.publish("u", UserEvent("app", {"n": 0}))
    async with hub.listen("u", "key") as first:
        hub.publish("u", UserEvent("app", {"n": 1}))
        async with hub.listen("u", "key") as second:
            hub.publish("u", UserEvent("speak", {"n": 2}))
            hub.publish("v", UserEvent("speak", {"n": 3}))
            assert await anext(second) == UserEvent("speak", {"n": 2})
        assert [await anext(first), await anext(first)] == [
            UserEvent("app", {"n": 1}),
            UserEvent("speak", {"n": 2}),
        ]


async def test_slow_listener_loses_the_oldest_events() -> None:
    hub = EventHub()
    async with hub.listen("u", "key") as events:
        for n in range(MAX_QUEUED_EVENTS + 3):
            hub.publish("u", UserEvent("display", {"n": n}))
        assert await anext(events) == UserEvent("app", {"lost": 3})
        heard = [(await anext(events)).data["n"] for _ in range(MAX_QUEUED_EVENTS)]
        assert heard == list(range(3, MAX_QUEUED_EVENTS + 3))
        hub.publish("u", UserEvent("display", {"n": "next"}))
        assert (await anext(events)).data == {"n": "next"}


@pytest.mark.requirement("D16")
async def test_closed_listener_is_removed() -> None:
    hub = EventHub()
    async with hub.listen("u", "key"), hub.listen("u", "key"):
        assert hub.has_listeners("u")
    assert not hub.has_listeners("u")
    assert len(hub) == 0


async def test_listeners_per_user_are_bounded() -> None:
    hub = EventHub()
    async with AsyncExitStack() as stack:
        for _ in range(MAX_USER_LISTENERS * 3 // 4):
            await stack.enter_async_context(hub.listen("u", "key"))
        with pytest.raises(Refused):
            await stack.enter_async_context(hub.listen("u", "key"))
        for _ in range(MAX_USER_LISTENERS // 4):
            await stack.enter_async_context(hub.listen("u", "other"))
        with pytest.raises(Refused) as caught:
            await stack.enter_async_context(hub.listen("u", "third"))
        await stack.enter_async_context(hub.listen("v", "key"))
    assert caught.value.problem.code == "OVERLOADED"
    assert len(hub) == 0


async def test_queued_event_bytes_are_bounded() -> None:
    hub, picture, sent = EventHub(), "x" * (1 << 19), 100
    async with hub.listen("u", "key") as events:
        for n in range(sent):
            hub.publish("u", UserEvent("display", {"n": n, "data": picture}))
        lost = (await anext(events)).data["lost"]
        assert lost >= sent - MAX_QUEUED_EVENT_BYTES // len(picture)
        heard = [(await anext(events)).data["n"] for _ in range(sent - lost)]
        assert heard == list(range(lost, sent))
        hub.publish("u", UserEvent("display", {"n": "next", "data": picture}))
        assert (await anext(events)).data["n"] == "next"
