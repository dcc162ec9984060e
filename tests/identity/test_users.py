"""The user cache: users are read once and invalidated by changes."""

from dataclasses import replace

import anyio
import anyio.lowlevel
import pytest

from toolcrib.errors import Unavailable
from toolcrib.identity import ADMIN, UserCache
from toolcrib.identity.users import FRESH_SECONDS
from toolcrib.interfaces import InstallRecord, SessionRecord, UserRecord
from toolcrib.model import Caller

pytestmark = pytest.mark.anyio

ACTING = replace(ADMIN, id="user:u1", user="u1")
SESSION = SessionRecord(user="u1", id="s1", device={"modelName": "Z", "hasDisplay": True}, language="de")
RECORD = UserRecord(
    id="u1",
    language="fr",
    time_zone="Europe/Paris",
    installs=(
        InstallRecord(package="com.example.one", at=1.0),
        InstallRecord(package="com.example.two", at=2.0),
    ),
    disabled=frozenset({"com.example.one:add"}),
    session=SESSION,
)


class _UserStore:
    """A store of one user that counts how often it is read."""

    def __init__(self, record: UserRecord | None) -> None:
        self.record, self.reads = record, 0

    async def read(self, user: str) -> UserRecord | None:
        self.reads += 1
        await anyio.lowlevel.checkpoint()
        return self.record if user == "u1" else None


@pytest.mark.requirement("D3", "D13")
async def test_a_user_with_a_session_is_filled_in() -> None:
    caller = await UserCache(_UserStore(RECORD).read).present(ACTING)
    assert (caller.id, caller.session, caller.language, caller.time_zone) == (
        "user:u1",
        "s1",
        "de",
        "Europe/Paris",
    )
    assert caller.apps == {"com.example.one", "com.example.two"}
    assert caller.disabled == {"com.example.one:add"}
    assert caller.device is not None
    assert caller.device.has == {"DISPLAY"}


@pytest.mark.requirement("D3")
async def test_without_a_session_there_are_no_apps_and_no_device() -> None:
    caller = await UserCache(_UserStore(replace(RECORD, session=None)).read).present(ACTING)
    assert (caller.session, caller.apps, caller.device, caller.language) == ("", frozenset(), None, "fr")
    assert caller.disabled == RECORD.disabled


async def test_session_without_a_device() -> None:
    caller = await UserCache(_UserStore(replace(RECORD, session=replace(SESSION, device=None))).read).present(
        ACTING
    )
    assert (caller.session, caller.device, len(caller.apps)) == ("s1", None, 2)


async def test_one_read_serves_every_call() -> None:
    store = _UserStore(RECORD)
    cache = UserCache(store.read)
    assert cache.known(ACTING) is None
    first = await cache.present(ACTING)
    assert cache.known(replace(ADMIN, id="user:u1", user="u1")) is first
    assert await cache.present(ACTING) is first
    assert store.reads == 1


async def test_user_record_is_cached_per_caller() -> None:
    store = _UserStore(RECORD)
    cache = UserCache(store.read)
    assert await cache.record("u1") == RECORD
    await cache.present(ACTING)
    assert await cache.record("u1") == RECORD
    assert store.reads == 1
    store.record = None
    cache.forget("u1")
    assert await cache.record("u1") is None


async def test_keys_acting_for_one_user_keep_their_permissions() -> None:
    cache = UserCache(_UserStore(RECORD).read)
    other = Caller(id="user:u1", user="u1", key="other", permissions=frozenset({"a:b"}))
    assert (await cache.present(ACTING)).permissions == {"*"}
    assert (await cache.present(other)).permissions == {"a:b"}
    assert (await cache.present(other)).key == "other"


@pytest.mark.requirement("D2")
async def test_a_change_is_seen_by_the_next_call() -> None:
    store = _UserStore(RECORD)
    cache = UserCache(store.read)
    await cache.present(ACTING)
    store.record = replace(RECORD, installs=())
    cache.forget("u1")
    assert (await cache.present(ACTING)).apps == frozenset()
    store.record = None
    cache.forget("")
    assert await cache.present(ACTING) == ACTING


async def test_change_during_a_read_is_not_missed() -> None:
    store = _UserStore(RECORD)
    cache = UserCache(store.read)

    async def read(user: str) -> UserRecord | None:
        found = await store.read(user)
        if store.reads == 1:
            store.record = replace(RECORD, installs=())
            cache.forget("u1")
        return found

    cache = UserCache(read)
    assert (await cache.present(ACTING)).apps == frozenset()
    assert store.reads == 2


async def test_changes_of_other_users_do_not_delay() -> None:
    store = _UserStore(RECORD)

    async def read(user: str) -> UserRecord | None:
        cache.forget(f"u{2 + store.reads}")
        return await store.read(user)

    cache = UserCache(read)
    assert (await cache.present(ACTING)).session == "s1"
    assert store.reads == 1


async def test_concurrent_readers_see_the_change() -> None:
    store = _UserStore(RECORD)
    cache = UserCache(store.read)
    seen: list[int] = []

    async def ask() -> None:
        seen.append(len((await cache.present(ACTING)).apps))

    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask)
            await anyio.lowlevel.checkpoint()
            store.record = replace(RECORD, installs=())
            cache.forget("u1")
            for _ in range(20):
                tasks.start_soon(ask)
    assert seen == [0] * 21
    assert cache.known(ACTING) is not None


async def test_unannounced_change_is_seen_after_the_ttl() -> None:
    now = [0.0]
    store = _UserStore(RECORD)
    cache = UserCache(store.read, clock=lambda: now[0])
    await cache.present(ACTING)
    now[0] = FRESH_SECONDS + 1
    assert cache.known(ACTING) is None
    await cache.present(ACTING)
    assert store.reads == 2


async def test_caller_without_user_is_unchanged() -> None:
    store = _UserStore(RECORD)
    assert await UserCache(store.read).present(ADMIN) is ADMIN
    assert store.reads == 0


async def test_oldest_users_are_evicted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolcrib.identity.users._MAX_CACHED_USERS", 2)
    store = _UserStore(RECORD)
    cache = UserCache(store.read)
    callers = [replace(ADMIN, id=f"user:{name}", user=name) for name in ("u1", "u2", "u3")]
    for each in callers:
        await cache.present(each)
    assert [cache.known(each) is not None for each in callers] == [False, True, True]


@pytest.mark.requirement("C4")
async def test_concurrent_requests_read_a_user_once() -> None:
    store = _UserStore(RECORD)
    cache = UserCache(store.read)
    async with anyio.create_task_group() as tasks:
        for _ in range(20):
            tasks.start_soon(cache.present, ACTING)
    assert store.reads == 1
    assert cache._reading == {}  # pyright: ignore[reportPrivateUsage]


@pytest.mark.requirement("C4")
async def test_waiters_retry_a_failed_read() -> None:
    reads = 0

    async def fail(_user: str) -> UserRecord | None:
        nonlocal reads
        reads += 1
        await anyio.lowlevel.checkpoint()
        raise Unavailable("SOURCE_DOWN", "the store is away")

    cache = UserCache(fail)

    async def ask() -> None:
        with pytest.raises(Unavailable):
            await cache.present(ACTING)

    async with anyio.create_task_group() as tasks:
        for _ in range(5):
            tasks.start_soon(ask)
    assert (reads, cache._reading) == (5, {})  # pyright: ignore[reportPrivateUsage]


@pytest.mark.requirement("C4")
async def test_reading_a_user_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolcrib.identity.users.MAX_READ_SECONDS", 0.01)

    async def hang(_user: str) -> UserRecord | None:
        await anyio.sleep_forever()

    with pytest.raises(Unavailable) as error:
        await UserCache(hang).present(ACTING)
    assert error.value.problem.code == "SOURCE_DOWN"


@pytest.mark.requirement("I1")
async def test_users_are_accepted_for_a_minute_while_the_store_is_away() -> None:
    now, store = 0.0, _UserStore(RECORD)
    cache = UserCache(store.read, clock=lambda: now)
    await cache.present(ACTING)

    async def away(_user: str) -> UserRecord | None:
        raise Unavailable("SOURCE_DOWN", "the store is away")

    cache._read = away  # pyright: ignore[reportPrivateUsage]
    now = FRESH_SECONDS
    assert (await cache.present(ACTING)).session == "s1"
    now = FRESH_SECONDS + 0.1
    with pytest.raises(Unavailable):
        await cache.present(ACTING)
