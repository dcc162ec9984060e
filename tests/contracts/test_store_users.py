"""The store contract for users: installs, disabled tools and sessions."""

from collections.abc import AsyncGenerator
from dataclasses import replace

import anyio
import pytest

from tests.contracts.stores import LASTING, STORES, Kind, a_session, an_app, an_install, opened
from toolcrib.interfaces import Store, UserRecord

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("D1")]


@pytest.fixture(params=STORES, ids=lambda kind: kind.__name__)
async def store(request: pytest.FixtureRequest) -> AsyncGenerator[Store]:
    async with opened(request.param(request)) as one:
        for package in ("com.example.notes", "com.example.music"):
            await one.apps.add(an_app(package))
        yield one


async def installed(store: Store, user: str = "u1") -> list[str]:
    found = await store.users.get(user)
    return [each.package for each in found.installs] if found else []


async def off(store: Store, user: str = "u1") -> set[str]:
    found = await store.users.get(user)
    return set(found.disabled) if found else set()


async def test_a_user_is_stored_changed_and_dropped(store: Store) -> None:
    assert await store.users.get("u1") is None
    assert await store.users.put("u1", language="de", time_zone="Europe/Berlin", at=1.5)
    stored = UserRecord(id="u1", language="de", time_zone="Europe/Berlin", created=1.5)
    assert await store.users.get("u1") == stored
    assert not await store.users.put("u1", language=None, time_zone="UTC", at=9.0)
    assert await store.users.get("u1") == UserRecord(id="u1", time_zone="UTC", created=1.5)
    assert await store.users.drop("u1")
    assert not await store.users.drop("u1")
    assert await store.users.get("u1") is None


async def test_user_round_trips(store: Store) -> None:
    notes = an_install(settings={"size": 2, "ü": [None, "\0"]})
    music = an_install("com.example.music", at=7.5)
    await store.users.put("u1", language="en", time_zone=None, at=1.5)
    for install in (notes, music):
        assert await store.users.install("u1", install)
    for name in ("com.example.notes:add", "com.example.music"):
        assert await store.users.disable("u1", name)
    await store.users.begin(a_session())
    assert await store.users.get("u1") == UserRecord(
        id="u1",
        language="en",
        created=1.5,
        installs=(music, notes),
        disabled=frozenset({"com.example.notes:add", "com.example.music"}),
        session=a_session(),
    )


async def test_users_are_paged_by_id(store: Store) -> None:
    ids = ["B", "a", "b", "c-1", "c_1", "é", "🙂"]
    for number, user in enumerate(reversed(ids)):
        await store.users.put(user, language=None, time_zone=None, at=float(number))
        if number % 2:
            await store.users.install(user, an_install())
            await store.users.disable(user, f"com.example.notes:{user}")
        if number % 3 == 0:
            await store.users.begin(a_session(user))
    found: list[UserRecord] = []
    while page := await store.users.page(after=found[-1].id if found else "", limit=3):
        assert len(page) <= 3
        found += page
    assert [user.id for user in found] == ids
    assert found == [await store.users.get(user) for user in ids]
    assert found == await store.users.page()
    assert [user.session for user in found if user.session] == [a_session(ids[at]) for at in (0, 3, 6)]
    assert [user.id for user in found if user.installs] == [ids[at] for at in (1, 3, 5)]


@pytest.mark.requirement("D2")
async def test_app_is_installed_configured_and_removed(store: Store) -> None:
    assert await store.users.install("u1", an_install(settings={"a": 1, "b": 2}))
    assert await store.users.install("u1", an_install(at=99.0, settings={"b": 3})) is False
    user = await store.users.get("u1")
    assert user
    assert user.installs == (an_install(settings={"b": 3}),)
    await store.users.install("u2", an_install())
    assert await store.users.uninstall("u1", "com.example.notes")
    assert not await store.users.uninstall("u1", "com.example.notes")
    assert (await installed(store), await installed(store, "u2")) == ([], ["com.example.notes"])


async def test_unknown_app_cannot_be_installed(store: Store) -> None:
    assert await store.users.install("u1", an_install("com.example.nothing")) is None
    assert await store.users.get("u1") is None


async def test_removed_app_deletes_its_user_data(store: Store) -> None:
    for user in ("u1", "u2"):
        for package in ("com.example.notes", "com.example.music"):
            await store.users.install(user, an_install(package))
            await store.app_data.put(package, user, {"k": "v"})
    await store.users.uninstall("u1", "com.example.notes")
    await store.users.install("u1", an_install())
    assert await store.app_data.all("com.example.notes", "u1") == {}
    assert await store.app_data.all("com.example.notes", "u2") == {"k": "v"}
    assert await store.app_data.all("com.example.music", "u1") == {"k": "v"}


@pytest.mark.requirement("D13")
async def test_tools_and_apps_are_disabled_and_enabled(store: Store) -> None:
    assert await store.users.disable("u1", "com.example.notes:add")
    assert not await store.users.disable("u1", "com.example.notes:add")
    assert await store.users.disable("u1", "com.example.notes")
    assert await off(store) == {"com.example.notes:add", "com.example.notes"}
    assert await store.users.enable("u1", "com.example.notes")
    assert not await store.users.enable("u1", "com.example.notes")
    assert not await store.users.enable("u2", "com.example.notes:add")
    assert await off(store) == {"com.example.notes:add"}
    assert await off(store, "u2") == set()


@pytest.mark.requirement("D16")
async def test_session_keeps_its_id_until_it_ends(store: Store) -> None:
    first = a_session()
    assert await store.users.begin(first) == first
    changed = a_session(id="another", device=None, language=None, time_zone=None, started=9.0)
    bare = await store.users.begin(changed)
    assert bare == replace(changed, id=first.id, started=first.started)
    await store.users.begin(a_session("u2"))
    user = await store.users.get("u1")
    assert user
    assert user.session == bare
    assert await store.users.end("u1") == bare
    assert await store.users.end("u1") is None
    assert [user.session for user in await store.users.page()] == [None, a_session("u2")]


async def test_concurrent_session_starts_are_one_session(store: Store) -> None:
    ids: list[str] = []

    async def begin(number: int) -> None:
        ids.append((await store.users.begin(a_session(id=f"s{number}", started=float(number)))).id)

    async with anyio.create_task_group() as tasks:
        for number in range(8):
            tasks.start_soon(begin, number)
    ended = await store.users.end("u1")
    assert ended
    assert ids == [ended.id] * 8


async def test_first_action_creates_the_user(store: Store) -> None:
    await store.users.begin(a_session("a", started=3.5))
    await store.users.install("b", an_install(at=4.5))
    await store.users.disable("c", "com.example.notes:add")
    people = await store.users.page()
    assert [(user.id, user.language) for user in people] == [("a", None), ("b", None), ("c", None)]
    assert [user.created for user in people[:2]] == [3.5, 4.5]
    assert people[2].created > 4.5
    await store.users.put("a", language="fr", time_zone="UTC", at=9.0)
    await store.users.begin(a_session("a", language="de", started=8.0))
    user = await store.users.get("a")
    assert user
    assert (user.language, user.time_zone, user.created) == ("fr", "UTC", 3.5)


async def test_users_with_an_app_are_listed(store: Store) -> None:
    for user in ("z", "a", "away"):
        await store.users.install(user, an_install())
    await store.users.install("other", an_install("com.example.music"))
    for user in ("z", "a", "other", "none"):
        await store.users.begin(a_session(user))
    assert await store.users.having("com.example.notes") == ["a", "z"]
    await store.users.end("z")
    await store.users.uninstall("a", "com.example.notes")
    assert await store.users.having("com.example.notes") == []
    assert await store.users.having("com.example.nothing") == []


async def test_a_dropped_user_leaves_nothing(store: Store) -> None:
    for user in ("u1", "u2"):
        await store.users.install(user, an_install())
        await store.app_data.put("com.example.notes", user, {"k": "v"})
        await store.users.disable(user, "com.example.notes:add")
        await store.users.begin(a_session(user))
    other = await store.users.get("u2")
    assert await store.users.drop("u1")
    assert await store.users.having("com.example.notes") == ["u2"]
    # The next user with that id is a different user.
    await store.users.put("u1", language=None, time_zone=None, at=2.0)
    assert await store.users.page() == [UserRecord(id="u1", created=2.0), other]
    await store.users.install("u1", an_install())
    assert await store.app_data.all("com.example.notes", "u1") == {}
    assert await store.app_data.all("com.example.notes", "u2") == {"k": "v"}


async def test_invalid_unicode_is_stored_replaced(store: Store) -> None:
    bad = "nul \0 half \ud800"
    good = "nul � half ?"
    assert await store.users.put(bad, language=bad, time_zone=bad, at=1.0)
    assert await store.users.install(bad, an_install())
    assert await store.users.disable(bad, bad)
    await store.users.begin(a_session(bad, id=bad, device={"modelName": bad}, language=bad))
    user = await store.users.get(bad)
    assert user
    assert (user.id, user.language, user.disabled) == (good, good, frozenset({good}))
    assert user.session
    assert user.session.device == {"modelName": bad}
    assert await store.users.page() == [user]
    assert await store.users.having("com.example.notes") == [good]
    assert await store.users.having(bad) == []
    assert await store.users.end(bad) == user.session
    assert await store.users.enable(bad, bad)
    assert await store.users.uninstall(bad, "com.example.notes")
    assert await store.users.drop(bad)


@pytest.mark.check(19)
async def test_names_that_look_like_sql_are_names(store: Store) -> None:
    hostile = "x'); DROP TABLE toolcrib_users; --"
    await store.users.begin(a_session(hostile))
    await store.users.disable(hostile, hostile)
    assert [user.id for user in await store.users.page()] == [hostile]
    assert await off(store, hostile) == {hostile}


@pytest.mark.slow
@pytest.mark.parametrize("kind", LASTING, ids=lambda kind: kind.__name__)
async def test_concurrent_install_and_drop_leave_no_orphans(
    kind: Kind, request: pytest.FixtureRequest
) -> None:
    url = kind(request)

    async def install() -> None:
        async with opened(url) as one:
            for number in range(30):
                await one.users.install(f"u{number % 2}", an_install())
                await one.app_data.put("com.example.notes", f"u{number % 2}", {"k": str(number)})
                await one.users.begin(a_session(f"u{number % 2}"))

    async def drop() -> None:
        async with opened(url) as one:
            for number in range(15):
                await one.users.drop(f"u{number % 2}")
                await one.apps.drop("com.example.notes")
                await one.apps.add(an_app())

    async with opened(url) as store:
        await store.apps.add(an_app())
        async with anyio.create_task_group() as tasks:
            for work in (install, install, drop, drop):
                tasks.start_soon(work)
        await store.apps.drop("com.example.notes")
        await store.apps.add(an_app())
        assert [user.installs for user in await store.users.page() if user.installs] == []
        for user in ("u0", "u1"):
            await store.users.install(user, an_install())
            assert await store.app_data.all("com.example.notes", user) == {}


async def test_last_use_of_a_session_never_decreases(store: Store) -> None:
    for user, used in (("u1", 10.0), ("u2", 20.0), ("u3", 30.0)):
        await store.users.begin(a_session(user, used=used))
    await store.users.used({})
    await store.users.used({"u1": 25.0, "u2": 15.0, "nobody": 99.0})
    assert await store.users.unused_since(10.0) == []
    assert await store.users.unused_since(100.0) == ["u2", "u1", "u3"]
    assert await store.users.unused_since(100.0, limit=1) == ["u2"]
    assert await store.users.unused_since(25.0) == ["u2"]


async def test_a_session_is_ended_only_where_it_is_unused(store: Store) -> None:
    await store.users.begin(a_session(used=10.0))
    assert await store.users.end("u1", unused_since=10.0) is None
    await store.users.begin(a_session(used=20.0))
    assert await store.users.end("u1", unused_since=15.0) is None
    assert await store.users.end("u1", unused_since=20.5) == a_session(used=20.0)
    assert await store.users.end("u1", unused_since=20.5) is None
