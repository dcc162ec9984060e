"""The crowd the benchmark measures in is what it says: one user is the same in it and alone."""

import json
from pathlib import Path

import pytest

from tests.contracts.stores import LASTING, Kind, opened
from tests.store.large_store import MEASURED, fill, package
from toolcrib.interfaces import AppRecord, UserRecord

pytestmark = pytest.mark.anyio


async def measured(url: str) -> tuple[UserRecord | None, list[AppRecord]]:
    """Read the measured user, and the apps they have."""
    async with opened(url) as store:
        user = await store.users.get(MEASURED)
        assert user
        theirs = {install.package for install in user.installs}
        return user, [app for app in await store.apps.all() if app.package in theirs]


@pytest.mark.parametrize("kind", LASTING, ids=lambda kind: kind.__name__)
async def test_the_measured_user_is_the_same_alone_and_in_a_crowd(
    kind: Kind, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    crowd, alone = kind(request), f"sqlite:///{tmp_path}/alone.db"
    await fill(crowd, apps=30, users=40)
    await fill(alone, apps=20, users=1)
    user, apps = await measured(crowd)
    assert (user, apps) == await measured(alone)
    assert [app.package for app in apps] == [package(number) for number in range(20)]
    assert user
    assert user.session
    assert user.disabled == frozenset()
    assert [len(app.tools) for app in apps] == [5] * 20
    assert 350 < len(json.dumps(apps[0].tools[0].definition)) < 600


async def test_every_user_of_a_large_store_has_equal_apps(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/crowd.db"
    await fill(url, apps=30, users=40, installs=7, tools_per_app=2)
    async with opened(url) as store:
        people = await store.users.page()
        apps = await store.apps.all()
    assert [len(user.installs) for user in people] == [7] * 40
    assert {len(app.tools) for app in apps} == {2}
    assert len([user for user in people if user.session]) == 4
    assert len(apps) == 30
