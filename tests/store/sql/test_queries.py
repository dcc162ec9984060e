"""How many queries reads of apps and users take, and that none of them looks at what it is not about."""

import re
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import event

from tests.contracts.stores import LASTING, Kind, a_session, an_app, an_install
from tests.store.sql.conftest import Opened
from toolcrib.store.sql.store import SqlStore

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("D3")]

Query = tuple[str, Any]


@pytest.fixture(params=LASTING, ids=lambda kind: kind.__name__)
async def store(request: pytest.FixtureRequest, opened: Opened) -> SqlStore:
    kind: Kind = request.param
    one = await opened(kind(request))
    for number in range(4):
        package = f"com.example.app{number}"
        await one.apps.add(an_app(package))
        for user in range(number):
            await one.users.install(f"u{user}", an_install(package))
            await one.users.disable(f"u{user}", f"{package}:add")
        await one.users.begin(a_session(f"u{number}"))
    return one


@contextmanager
def watched(store: SqlStore) -> Generator[list[Query]]:
    """Note every query, and that all of them went over one connection."""
    queries: list[Query] = []
    connections: set[int] = set()

    def note(connection: Any, _cursor: Any, statement: str, parameters: Any, *_: object) -> None:
        connections.add(id(connection.connection.dbapi_connection))
        queries.append((statement, parameters))

    engine = store.database.engine.sync_engine
    event.listen(engine, "before_cursor_execute", note)
    try:
        yield queries
    finally:
        event.remove(engine, "before_cursor_execute", note)
    queries[:] = [query for query in queries if query[0].startswith("SELECT")]
    assert len(connections) == 1


async def plan(store: SqlStore, query: Query) -> str:
    """Say how the database would find what a query asks for."""
    is_sqlite = store.database.engine.dialect.name == "sqlite"
    async with store.database.read() as connection:
        if not is_sqlite:
            # It reads small tables whole, whatever there is; without that it has to show what there is.
            await connection.exec_driver_sql("SET LOCAL enable_seqscan = off")
        explain = "EXPLAIN QUERY PLAN" if is_sqlite else "EXPLAIN"
        found = await connection.exec_driver_sql(f"{explain} {query[0]}", query[1])
        return "\n".join(str(row[-1]) for row in found)


async def check_all_are_searches(store: SqlStore, queries: list[Query]) -> None:
    for query in queries:
        found = await plan(store, query)
        assert "SCAN" not in found, found
        assert "Seq Scan" not in found, found
        # Postgres calls reading an index from end to end a scan of it too.
        assert found.count("Index Cond") >= len(re.findall("Index (Only )?Scan", found)), found


async def test_user_lookup_takes_three_queries(store: SqlStore) -> None:
    for user, apps in (("u0", 3), ("u2", 1)):
        with watched(store) as queries:
            found = await store.users.get(user)
        assert found
        assert len(found.installs) == apps
        assert len(queries) == 3
        await check_all_are_searches(store, queries)


async def test_a_page_takes_as_many_as_one_user(store: SqlStore) -> None:
    with watched(store) as queries:
        assert len(await store.users.page(after="u0", limit=3)) == 3
    assert len(queries) == 3
    await check_all_are_searches(store, queries)


async def test_users_of_an_app_are_found_by_index(store: SqlStore) -> None:
    with watched(store) as queries:
        assert await store.users.having("com.example.app2") == ["u0", "u1"]
    assert len(queries) == 1
    await check_all_are_searches(store, queries)


async def test_all_apps_take_two_queries_and_one_app_as_many(store: SqlStore) -> None:
    with watched(store) as queries:
        assert len(await store.apps.all()) == 4
    assert len(queries) == 2
    with watched(store) as queries:
        assert await store.apps.get("com.example.app2") == an_app("com.example.app2")
    assert len(queries) == 2
    await check_all_are_searches(store, queries)


async def test_the_mark_is_one_row(store: SqlStore) -> None:
    with watched(store) as queries:
        assert await store.apps.mark() == "4"
    assert len(queries) == 1
    await check_all_are_searches(store, queries)


async def test_a_read_sees_one_state_while_others_write(store: SqlStore) -> None:
    async with store.database.read() as connection:
        before = await connection.exec_driver_sql("SELECT count(*) FROM toolcrib_users")
        first = before.scalar_one()
        await store.users.put("another", language=None, time_zone=None, at=1.0)
        after = await connection.exec_driver_sql("SELECT count(*) FROM toolcrib_users")
        assert after.scalar_one() == first
    assert len(await store.users.page()) == first + 1
