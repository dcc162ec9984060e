"""What apps keep for their users is bounded, and belongs to one app and one user."""

import anyio
import pytest

from tests.admin.admin_setup import CAMERA, CAMERA_APP, NOTES, AdminSetup
from toolcrib.admin.app_admin import MAX_DATA_BYTES, MAX_DATA_KEYS, MAX_DATA_VALUE_CHARS, AppStorage
from toolcrib.errors import Refused

pytestmark = pytest.mark.anyio


@pytest.fixture
async def storage(admin: AdminSetup) -> AppStorage:
    await admin.add()
    await admin.add(CAMERA, CAMERA_APP)
    for user in ("ann", "bob"):
        await admin.users.install(user, NOTES, None)
    return AppStorage(admin.store.app_data)


async def test_storage_is_per_app_and_user(storage: AppStorage) -> None:
    await storage.put(NOTES, "ann", {"a": "1", "b": "2"})
    await storage.put(NOTES, "ann", {"b": "3"})
    assert await storage.all(NOTES, "ann") == {"a": "1", "b": "3"}
    assert await storage.all(NOTES, "bob") == {}
    assert await storage.drop(NOTES, "ann", "a") == 1
    assert await storage.drop(NOTES, "ann") == 1
    assert await storage.all(NOTES, "ann") == {}


async def test_storage_needs_an_installed_app(storage: AppStorage) -> None:
    with pytest.raises(Refused, match="not installed") as error:
        await storage.put(CAMERA, "ann", {"a": "1"})
    assert error.value.problem.code == "NOT_FOUND"


@pytest.mark.parametrize("key", ["", "a\nb", "k" * 201])
async def test_keys_that_cannot_be(storage: AppStorage, key: str) -> None:
    with pytest.raises(Refused, match="printable"):
        await storage.put(NOTES, "ann", {key: ""})


async def test_values_are_bounded_alone_and_together(storage: AppStorage) -> None:
    with pytest.raises(Refused) as error:
        await storage.put(NOTES, "ann", {"a": "x" * (MAX_DATA_VALUE_CHARS + 1)})
    assert error.value.problem.code == "PAYLOAD_TOO_LARGE"
    outcomes: list[bool] = []

    async def put(key: str) -> None:
        try:
            await storage.put(NOTES, "ann", {key: "x" * MAX_DATA_VALUE_CHARS})
        except Refused:
            outcomes.append(False)
        else:
            outcomes.append(True)

    async with anyio.create_task_group() as tasks:
        for number in range(12):
            tasks.start_soon(put, f"k{number:02}")
    assert sorted(outcomes) == [False] * 2 + [True] * 10
    kept = await storage.all(NOTES, "ann")
    assert sum(len(key) + len(value) for key, value in kept.items()) <= MAX_DATA_BYTES


async def test_number_of_storage_keys_is_limited(storage: AppStorage) -> None:
    await storage.put(NOTES, "ann", {f"{number:x}": "" for number in range(MAX_DATA_KEYS)})
    with pytest.raises(Refused, match="keys") as error:
        await storage.put(NOTES, "ann", {"more": ""})
    assert error.value.problem.code == "PAYLOAD_TOO_LARGE"
    await storage.put(NOTES, "ann", {"0": "changed"})
