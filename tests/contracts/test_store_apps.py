"""The store contract for apps: apps and tools round-trip, changes are marked."""

from collections.abc import AsyncGenerator
from dataclasses import replace

import anyio
import pytest

from tests.contracts.stores import LASTING, STORES, Kind, an_app, an_app_tool, an_install, opened
from toolcrib.interfaces import AppRecord, Store

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("D1")]


@pytest.fixture(params=STORES, ids=lambda kind: kind.__name__)
async def store(request: pytest.FixtureRequest) -> AsyncGenerator[Store]:
    async with opened(request.param(request)) as one:
        yield one


async def names(store: Store, package: str = "com.example.notes") -> list[str]:
    app = await store.apps.get(package)
    return [tool.definition["name"] for tool in app.tools] if app else []


async def test_app_round_trips(store: Store) -> None:
    bare = AppRecord(package="com.example.bare", name="Bare", owner="someone", created=1.0, updated=1.0)
    migrated = an_app_tool("play", original={"id": "play", "parameters": {}})
    full = an_app(tools=(migrated, an_app_tool("another")), version=7)
    for app in (full, bare):
        assert await store.apps.add(app)
        assert await store.apps.get(app.package) == app
    assert await store.apps.all() == [bare, full]
    assert await store.apps.get("com.example") is None


async def test_apps_are_listed_by_age_then_package(store: Store) -> None:
    for package, created in (("b", 2.0), ("é", 1.0), ("B", 2.0), ("a", 3.0), ("a-1", 2.0)):
        await store.apps.add(an_app(package, created=created))
    assert [app.package for app in await store.apps.all()] == ["é", "B", "a-1", "b", "a"]
    assert all(app.tools == an_app().tools for app in await store.apps.all())


async def test_package_is_unique(store: Store) -> None:
    assert await store.apps.add(an_app())
    assert not await store.apps.add(an_app(name="Mine now", owner="thief", tools=(an_app_tool("steal"),)))
    assert await store.apps.all() == [an_app()]


async def test_one_concurrent_add_of_a_package_succeeds(store: Store) -> None:
    won: list[int] = []

    async def add(number: int) -> None:
        if await store.apps.add(an_app(name=str(number), tools=(an_app_tool(f"t{number}"),))):
            won.append(number)

    async with anyio.create_task_group() as tasks:
        for number in range(10):
            tasks.start_soon(add, number)
    (app,) = await store.apps.all()
    assert [app.name] == [str(number) for number in won]
    assert await names(store) == [f"t{number}" for number in won]


async def test_app_update_keeps_tools_owner_and_creation(store: Store) -> None:
    await store.apps.add(an_app())
    await store.apps.add(an_app("com.example.other"))
    new = AppRecord(
        package="com.example.notes",
        name="Better notes",
        owner="thief",
        app_type="system_dashboard",
        digest="e" * 64,
        signing="f" * 64,
        tools=(an_app_tool("steal"),),
        version=50,
        created=9.0,
        updated=8.0,
    )
    assert await store.apps.change(new) == 2
    kept = an_app()
    assert await store.apps.get("com.example.notes") == replace(
        new, owner=kept.owner, tools=kept.tools, created=kept.created, version=2
    )
    assert await store.apps.get("com.example.other") == an_app("com.example.other")
    assert await store.apps.change(an_app("com.example.nothing")) is None
    assert len(await store.apps.all()) == 2


@pytest.mark.requirement("D2")
async def test_tools_are_replaced_whole_and_counted(store: Store) -> None:
    await store.apps.add(an_app())
    await store.apps.add(an_app("com.example.other"))
    tools = tuple(an_app_tool(name) for name in ("z", "a", "m"))
    assert await store.apps.define("com.example.notes", tools, 9.5) == 2
    assert await store.apps.get("com.example.notes") == an_app(tools=tools, version=2, updated=9.5)
    assert await store.apps.define("com.example.notes", (), 10.0) == 3
    assert await names(store) == []
    assert await names(store, "com.example.other") == ["add", "clear"]
    assert await store.apps.define("com.example.nothing", tools, 9.5) is None
    assert await store.apps.get("com.example.nothing") is None


async def test_definitions_round_trip(store: Store) -> None:
    definition = {
        "name": "z",
        "a": {"ü": [1.5, None, "\0", "\ud800", "🙂"]},
        "description": "x'); DROP TABLE",
    }
    await store.apps.add(an_app(tools=(an_app_tool(definition=definition, original=definition),)))
    app = await store.apps.get("com.example.notes")
    assert app
    assert app.tools[0].definition == definition == app.tools[0].original
    assert list(app.tools[0].definition) == list(definition)


async def test_dropped_app_deletes_its_data(store: Store) -> None:
    for package in ("com.example.notes", "com.example.other"):
        await store.apps.add(an_app(package))
        for user in ("u1", "u2"):
            await store.users.install(user, an_install(package))
            assert await store.app_data.put(package, user, {"k": "v"})
    assert await store.apps.drop("com.example.notes")
    assert not await store.apps.drop("com.example.notes")
    assert await store.apps.all() == [an_app("com.example.other")]
    # A new app with that name finds no data of the old one.
    await store.apps.add(an_app(tools=()))
    assert await names(store) == []
    people = await store.users.page()
    assert [user.installs for user in people] == [(an_install("com.example.other"),)] * 2
    assert await store.app_data.all("com.example.notes", "u1") == {}
    assert await store.app_data.all("com.example.other", "u2") == {"k": "v"}


async def test_change_mark_differs_after_every_change(store: Store) -> None:
    marks = [await store.apps.mark()]

    async def is_another() -> None:
        marks.append(await store.apps.mark())
        assert marks[-1] == await store.apps.mark()
        assert len(set(marks)) == len(marks)

    await store.apps.add(an_app())
    await is_another()
    await store.apps.change(an_app())
    await is_another()
    await store.apps.define("com.example.notes", an_app().tools, 1.0)
    await is_another()
    await store.apps.drop("com.example.notes")
    await is_another()
    await store.apps.add(an_app())
    await is_another()


async def test_other_changes_keep_the_change_mark(store: Store) -> None:
    await store.apps.add(an_app())
    before = await store.apps.mark()
    assert not await store.apps.add(an_app())
    assert await store.apps.change(an_app("nothing")) is None
    assert await store.apps.define("nothing", (), 1.0) is None
    assert not await store.apps.drop("nothing")
    await store.users.install("u1", an_install())
    assert await store.apps.mark() == before


async def test_invalid_unicode_is_stored_replaced(store: Store) -> None:
    assert await store.apps.add(an_app("nul \0", name="half \ud800", permissions=("\0", "\ud800")))
    (app,) = await store.apps.all()
    assert (app.package, app.name, app.permissions) == ("nul �", "half ?", ("\0", "\ud800"))
    assert await store.apps.get("nul \0") == app
    assert await store.apps.define("nul \0", (an_app_tool("one"),), 1.0) == 2
    assert await names(store, app.package) == ["one"]
    assert await store.apps.drop("nul \0")


@pytest.mark.parametrize("kind", LASTING, ids=lambda kind: kind.__name__)
async def test_concurrent_tool_updates_are_serialized(kind: Kind, request: pytest.FixtureRequest) -> None:
    url = kind(request)
    versions: list[int | None] = []

    async def replica(sign: str) -> None:
        async with opened(url) as one:
            for number in range(10):
                tools = [an_app_tool(f"{sign}{place}") for place in range(1 + number % 3)]
                versions.append(await one.apps.define("com.example.notes", tools, 1.0))

    async with opened(url) as store:
        await store.apps.add(an_app())
        async with anyio.create_task_group() as tasks:
            for sign in ("a", "b"):
                tasks.start_soon(replica, sign)
        assert sorted(version or 0 for version in versions) == list(range(2, 22))
        (app,) = await store.apps.all()
        found = await names(store)
        assert app.version == 21
        assert await store.apps.mark() == "21"
        assert found == [f"{found[0][0]}{place}" for place in range(len(found))]
