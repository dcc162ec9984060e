"""Resource subscriptions: every client gets updates of its own under the URIs it used."""

import anyio
import pytest

from tests.gateway.resource_host import ResourceHost, materials
from toolcrib.catalog import Overrides, ToolOverride
from toolcrib.errors import Refused, Unavailable
from toolcrib.gateway import resources as module
from toolcrib.model import Call, Result
from toolcrib.policy import Context
from toolcrib.testing import a_caller

pytestmark = pytest.mark.anyio

DOCS = materials(["x://1", "x://dir"], tells=True)
NOTES = materials(["x://1"], tells=True)
CONTEXTS = {"notes": Context(tools=("notes:*",))}


async def test_subscribers_get_only_their_updates() -> None:
    host = ResourceHost(docs=DOCS, notes=NOTES, contexts=CONTEXTS)
    subscriptions = host.library.subscriptions
    heard: list[tuple[str, str]] = []
    first = subscriptions.subscriber(a_caller(), lambda uri: heard.append(("first", uri)))
    second = subscriptions.subscriber(a_caller(), lambda uri: heard.append(("second", uri)))
    third = subscriptions.subscriber(a_caller(context="notes"), lambda uri: heard.append(("third", uri)))
    await first.add("x://1")
    await second.add("x://1")
    await second.add("toolcrib://notes/x://1")
    await third.add("x://1")
    assert subscriptions.wanted("docs") == subscriptions.wanted("notes") == {"x://1"}
    subscriptions.updated("docs", "x://1")
    assert sorted(heard) == [("first", "x://1"), ("second", "x://1")]
    heard.clear()
    subscriptions.updated("notes", "x://1")
    assert sorted(heard) == [("second", "toolcrib://notes/x://1"), ("third", "x://1")]
    heard.clear()
    subscriptions.updated("docs", "x://2")
    subscriptions.updated("nobody", "x://1")
    assert heard == []


async def test_last_unsubscribe_reaches_the_source() -> None:
    host, spared = ResourceHost(docs=DOCS, notes=NOTES), list[str]()
    subscriptions = host.library.subscriptions
    subscriptions.on_unused = spared.append
    one, other = (subscriptions.subscriber(a_caller(), print) for _ in range(2))
    await one.add("x://1")
    await one.add("toolcrib://docs/x://1")
    await other.add("x://1")
    one.drop("x://1")
    other.close()
    other.close()
    assert (spared, subscriptions.wanted("docs")) == ([], {"x://1"})
    one.close()
    assert (spared, subscriptions.wanted("docs")) == (["docs"], frozenset())
    one.drop("x://1")
    subscriptions.updated("docs", "x://1")


@pytest.mark.parametrize(
    "uri, told",
    [
        ("x://dir/a", True),
        ("x://dir/a/b/c", True),
        ("x://dir/", True),
        ("x://dir?v=2", True),
        ("x://dir#top", True),
        ("x://dirt", False),
        ("x://di", False),
        (f"x://dir/{'a' * 5_000}", False),
        (f"x://dir{'/' * 4_000}", True),
        (f"{'/' * 4_000}x://dir/a", False),
    ],
)
async def test_update_of_a_part_updates_the_parent(uri: str, *, told: bool) -> None:
    host, heard = ResourceHost(docs=DOCS, notes=NOTES), list[str]()
    follower = host.library.subscriptions.subscriber(a_caller(), heard.append)
    await follower.add("x://dir")
    await follower.add("toolcrib://docs/x://dir")
    host.library.subscriptions.updated("docs", uri)
    assert heard == (["x://dir", "toolcrib://docs/x://dir"] if told else [])


async def test_source_is_subscribed_once() -> None:
    asked: list[str] = []

    async def agree(call: Call) -> Result:
        asked.append(call.arguments["uri"])
        return Result(data={})

    host = ResourceHost(docs=DOCS, answer=agree)
    one, other = (host.library.subscriptions.subscriber(a_caller(), print) for _ in range(2))
    await one.add("x://1")
    await other.add("toolcrib://docs/x://1")
    assert asked == ["x://1"]
    one.close()
    other.close()
    await one.add("x://1")
    assert asked == ["x://1", "x://1"]


async def test_refused_subscription_is_dropped() -> None:
    async def refuse(call: Call) -> Result:
        if call.arguments["uri"] == "x://1":
            raise Unavailable("SOURCE_DOWN", "not now", retry_after=2.0)
        return Result(data={})

    host = ResourceHost(docs=DOCS, answer=refuse)
    follower = host.library.subscriptions.subscriber(a_caller(), print)
    with pytest.raises(Refused) as caught:
        await follower.add("x://1")
    assert (caught.value.problem.code, caught.value.problem.retry_after) == ("SOURCE_DOWN", 2.0)
    assert host.library.subscriptions.wanted("docs") == frozenset()
    await follower.add("x://dir")
    assert host.library.subscriptions.wanted("docs") == {"x://dir"}


async def test_disconnect_during_subscribe_leaves_nothing() -> None:
    asked = anyio.Event()

    async def think(_: Call) -> Result:
        asked.set()
        await anyio.sleep_forever()
        raise AssertionError

    host = ResourceHost(docs=DOCS, answer=think)
    follower = host.library.subscriptions.subscriber(a_caller(), print)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(follower.add, "x://1")
        await asked.wait()
        assert host.library.subscriptions.wanted("docs") == {"x://1"}
        tasks.cancel_scope.cancel()
    assert host.library.subscriptions.wanted("docs") == frozenset()


@pytest.mark.requirement("I5")
async def test_subscriptions_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    host = ResourceHost(docs=materials(["x://1"], ["x://t/{n}"], tells=True), quiet=materials(["y://1"]))
    subscriptions = host.library.subscriptions
    follower = subscriptions.subscriber(a_caller(), print)
    for uri, said in (
        ("y://1", r"^quiet\b"),
        ("z://1", "resource"),
        (f"x://t/{'a' * 3_000}", "resource"),
    ):
        with pytest.raises(Refused, match=said):
            await follower.add(uri)
    with pytest.raises(Refused, match="subscribe"):
        await follower.add(f"toolcrib://docs/{'a' * 3_000}")
    for number in range(module.MAX_CLIENT_SUBSCRIPTIONS):
        await follower.add(f"x://t/{number}")
    await follower.add("x://t/0")
    with pytest.raises(Refused, match="200 subscriptions"):
        await follower.add("x://1")
    monkeypatch.setattr(subscriptions.slots, "total", module.MAX_CLIENT_SUBSCRIPTIONS)
    other = subscriptions.subscriber(a_caller(id="key:other"), print)
    with pytest.raises(Refused) as full:
        await other.add("x://1")
    assert full.value.problem.code == "OVERLOADED"
    follower.close()
    await other.add("x://1")


@pytest.mark.requirement("I10")
async def test_subscriptions_per_key_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_SUBSCRIPTIONS", 4)
    subscriptions = ResourceHost(docs=materials(["x://1"], ["x://t/{n}"], tells=True)).library.subscriptions
    mine = subscriptions.subscriber(a_caller(key="a"), print)
    for number in range(3):
        await mine.add(f"x://t/{number}")
    with pytest.raises(Refused):
        await mine.add("x://1")
    await subscriptions.subscriber(a_caller(key="b"), print).add("x://1")


async def test_updates_stop_without_read_permission() -> None:
    host, heard = ResourceHost(docs=DOCS), list[str]()
    follower = host.library.subscriptions.subscriber(a_caller(), heard.append)
    await follower.add("x://1")
    host.catalog.override(Overrides({"docs:*": ToolOverride(hidden=True)}))
    host.library.subscriptions.updated("docs", "x://1")
    assert heard == []
