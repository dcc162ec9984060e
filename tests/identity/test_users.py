"""Users are read once, kept until something about them changes, and never shown as they were before."""

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


class _Shelf:
    """A store of one user that counts how often it is read."""

    def __init__(self, record: UserRecord | None) -> None:
        self.record, self.reads = record, 0

    async def read(self, user: str) -> UserRecord | None:
        self.reads += 1
        await anyio.lowlevel.checkpoint()
        return self.record if user == "u1" else None


@pytest.mark.requirement("D3", "D13")
async def test_a_user_with_a_session_is_filled_in() -> None:
    caller = await UserCache(_Shelf(RECORD).read).present(ACTING)
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
    caller = await UserCache(_Shelf(replace(RECORD, session=None)).read).present(ACTING)
    assert (caller.session, caller.apps, caller.device, caller.language) == ("", frozenset(), None, "fr")
    assert caller.disabled == RECORD.disabled


async def test_session_without_a_device() -> None:
    caller = await UserCache(_Shelf(replace(RECORD, session=replace(SESSION, device=None))).read).present(
        ACTING
    )
    assert (caller.session, caller.device, len(caller.apps)) == ("s1", None, 2)


async def test_one_read_serves_every_call() -> None:
    shelf = _Shelf(RECORD)
    people = UserCache(shelf.read)
    assert people.known(ACTING) is None
    first = await people.present(ACTING)
    assert people.known(replace(ADMIN, id="user:u1", user="u1")) is first
    assert await people.present(ACTING) is first
    assert shelf.reads == 1


async def test_user_record_is_cached_per_caller() -> None:
    shelf = _Shelf(RECORD)
    people = UserCache(shelf.read)
    assert await people.record("u1") == RECORD
    await people.present(ACTING)
    assert await people.record("u1") == RECORD
    assert shelf.reads == 1
    shelf.record = None
    people.forget("u1")
    assert await people.record("u1") is None


async def test_keys_acting_for_one_user_keep_their_permissions() -> None:
    people = UserCache(_Shelf(RECORD).read)
    other = Caller(id="user:u1", user="u1", key="other", permissions=frozenset({"a:b"}))
    assert (await people.present(ACTING)).permissions == {"*"}
    assert (await people.present(other)).permissions == {"a:b"}
    assert (await people.present(other)).key == "other"


@pytest.mark.requirement("D2")
async def test_a_change_is_seen_by_the_next_call() -> None:
    shelf = _Shelf(RECORD)
    people = UserCache(shelf.read)
    await people.present(ACTING)
    shelf.record = replace(RECORD, installs=())
    people.forget("u1")
    assert (await people.present(ACTING)).apps == frozenset()
    shelf.record = None
    people.forget("")
    assert await people.present(ACTING) == ACTING


async def test_change_during_a_read_is_not_missed() -> None:
    shelf = _Shelf(RECORD)
    people = UserCache(shelf.read)

    async def read(user: str) -> UserRecord | None:
        found = await shelf.read(user)
        if shelf.reads == 1:
            shelf.record = replace(RECORD, installs=())
            people.forget("u1")
        return found

    people = UserCache(read)
    assert (await people.present(ACTING)).apps == frozenset()
    assert shelf.reads == 2


async def test_changes_of_other_users_do_not_delay() -> None:
    shelf = _Shelf(RECORD)

    async def read(user: str) -> UserRecord | None:
        people.forget(f"u{2 + shelf.reads}")
        return await shelf.read(user)

    people = UserCache(read)
    assert (await people.present(ACTING)).session == "s1"
    assert shelf.reads == 1


async def test_concurrent_readers_see_the_change() -> None:
    shelf = _Shelf(RECORD)
    people = UserCache(shelf.read)
    seen: list[int] = []

    async def ask() -> None:
        seen.append(len((await people.present(ACTING)).apps))

    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask)
            await anyio.lowlevel.checkpoint()
            shelf.record = replace(RECORD, installs=())
            people.forget("u1")
            for _ in range(20):
                tasks.start_soon(ask)
    assert seen == [0] * 21
    assert people.known(ACTING) is not None


async def test_unannounced_change_is_seen_after_the_ttl() -> None:
    now = [0.0]
    shelf = _Shelf(RECORD)
    people = UserCache(shelf.read, clock=lambda: now[0])
    await people.present(ACTING)
    now[0] = FRESH_SECONDS + 1
    assert people.known(ACTING) is None
    await people.present(ACTING)
    assert shelf.reads == 2


async def test_caller_without_user_is_unchanged() -> None:
    shelf = _Shelf(RECORD)
    assert await UserCache(shelf.read).present(ADMIN) is ADMIN
    assert shelf.reads == 0


async def test_oldest_users_are_evicted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolcrib.identity.users._MOST", 2)
    shelf = _Shelf(RECORD)
    people = UserCache(shelf.read)
    callers = [replace(ADMIN, id=f"user:{name}", user=name) for name in ("u1", "u2", "u3")]
    for each in callers:
        await people.present(each)
    assert [people.known(each) is not None for each in callers] == [False, True, True]


@pytest.mark.requirement("C4")
async def test_concurrent_requests_read_a_user_once() -> None:
    shelf = _Shelf(RECORD)
    people = UserCache(shelf.read)
    async with anyio.create_task_group() as tasks:
        for _ in range(20):
            tasks.start_soon(people.present, ACTING)
    assert shelf.reads == 1
    assert people._reading == {}  # pyright: ignore[reportPrivateUsage]


@pytest.mark.requirement("C4")
async def test_waiters_retry_a_failed_read() -> None:
    reads = 0

    async def fail(_user: str) -> UserRecord | None:
        nonlocal reads
        reads += 1
        await anyio.lowlevel.checkpoint()
        raise Unavailable("SOURCE_DOWN", "the store is away")

    people = UserCache(fail)

    async def ask() -> None:
        with pytest.raises(Unavailable):
            await people.present(ACTING)

    async with anyio.create_task_group() as tasks:
        for _ in range(5):
            tasks.start_soon(ask)
    assert (reads, people._reading) == (5, {})  # pyright: ignore[reportPrivateUsage]


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
    now, shelf = 0.0, _Shelf(RECORD)
    people = UserCache(shelf.read, clock=lambda: now)
    await people.present(ACTING)

    async def away(_user: str) -> UserRecord | None:
        raise Unavailable("SOURCE_DOWN", "the store is away")

    people._read = away  # pyright: ignore[reportPrivateUsage]
    now = FRESH_SECONDS
    assert (await people.present(ACTING)).session == "s1"
    now = FRESH_SECONDS + 0.1
    with pytest.raises(Unavailable):
        await people.present(ACTING)
