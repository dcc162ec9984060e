"""Sessions of users from before their use was recorded have their whole idle time left after an upgrade."""

from pathlib import Path
from time import time

import pytest
from sqlalchemy import text

from tests.store.sql.conftest import Opened
from tests.store.sql.test_upgrade import an_old_database

pytestmark = pytest.mark.anyio

USER = "INSERT INTO toolcrib_users (id, created) VALUES ('u1', 1.0)"
SESSION = "INSERT INTO toolcrib_sessions (\"user\", id, started) VALUES ('u1', 's', 6.5)"


@pytest.mark.parametrize("kind", ["sqlite", pytest.param("postgres", marks=pytest.mark.slow)])
async def test_old_sessions_are_idle_from_the_upgrade_on(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path, opened: Opened
) -> None:
    fresh = f"sqlite:///{tmp_path}/x.db"
    url: str = request.getfixturevalue("fresh_database") if kind == "postgres" else fresh
    before = time()
    async with an_old_database(url, "0007") as database, database.write() as connection:
        await connection.execute(text(USER))
        await connection.execute(text(SESSION))
    store = await opened(url)
    assert await store.users.unused_since(before) == []
    assert await store.users.unused_since(time() + 1) == ["u1"]
