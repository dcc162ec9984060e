"""The user API: installs, switches and sessions, and their effect on running apps."""

from typing import Any

import anyio
import anyio.lowlevel
import pytest

from tests.admin.admin_setup import CAMERA, CAMERA_APP, NOTES, AdminSetup, an_actor
from tests.texts import matches
from toolcrib.admin.user_admin import APP_START_RATE
from toolcrib.errors import Refused, ToolcribError

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("D1")]

ANN = an_actor(user="ann")


async def here(admin: AdminSetup, worn: Any = None, user: str = "ann") -> dict[str, Any]:
    """Begin a session."""
    return dict(await admin.users.begin(user, worn=worn, language=None, time_zone=None))


async def test_user_is_created_on_first_use(admin: AdminSetup) -> None:
    await admin.add()
    app, new = await admin.users.install("ann", NOTES, {"size": 2})
    assert new
    assert (app["name"], app["settings"], app["running"]) == ("Notes", {"size": 2}, {"state": "stopped"})
    await here(admin, user="bob")
    assert [each["id"] for each in await admin.users.page()] == ["ann", "bob"]
    assert [each["id"] for each in await admin.users.page(after="ann", limit=1)] == ["bob"]
    assert admin.told()[-2:] == [("users", "ann"), ("users", "bob")]


async def test_all_there_is_to_know_of_a_user(admin: AdminSetup) -> None:
    await admin.add()
    await admin.add(CAMERA, CAMERA_APP)
    await admin.users.put("ann@x.org", language="de", time_zone="Europe/Berlin")
    for package in (NOTES, CAMERA):
        await admin.users.install("ann@x.org", package, None)
    session = await here(admin, "Even Realities G1", "ann@x.org")
    await admin.users.disable("ann@x.org", CAMERA, ANN)
    user = await admin.users.get("ann@x.org")
    assert (user["language"], user["timeZone"], user["disabled"]) == ("de", "Europe/Berlin", [CAMERA])
    assert (user["session"], user["device"]["model"]) == (session, "Even Realities G1")
    assert user["usage"] == "/api/usage?user=ann%40x.org"
    camera, notes = user["apps"]
    assert (camera["disabled"], notes["disabled"]) == (True, False)
    assert notes["compatibility"]["isCompatible"]
    assert camera["compatibility"]["missingRequired"] == [{"type": "CAMERA", "level": "REQUIRED"}]
    assert "camera" in camera["compatibility"]["message"]


async def test_installing_again_changes_settings_and_nothing_else(admin: AdminSetup) -> None:
    await admin.add()
    first, _ = await admin.users.install("ann", NOTES, {"size": 2})
    kept, new = await admin.users.install("ann", NOTES, None)
    assert (kept["settings"], kept["installedAt"], new) == ({"size": 2}, first["installedAt"], False)
    await here(admin)
    await admin.users.start("ann", NOTES)
    changed, _ = await admin.users.install("ann", NOTES, {"size": 3})
    assert changed["settings"] == {"size": 3}
    assert changed["running"]["state"] == "running"
    with anyio.fail_after(5):
        while "settings_update" not in admin.sockets[0].types():
            await anyio.lowlevel.checkpoint()


async def test_uninstalled_or_disabled_app_is_stopped(admin: AdminSetup) -> None:
    await admin.add()
    await admin.users.install("ann", NOTES, None)
    await here(admin)
    assert (await admin.users.start("ann", NOTES))["state"] == "running"
    assert await admin.users.disable("ann", NOTES, ANN) == NOTES
    assert admin.state("ann") == "stopped"
    with pytest.raises(Refused, match="switched"):
        await admin.users.start("ann", NOTES)
    assert await admin.users.enable("ann", NOTES, ANN) == NOTES
    await admin.users.start("ann", NOTES)
    await admin.users.uninstall("ann", NOTES)
    assert admin.state("ann") == "stopped"
    for attempt in (admin.users.uninstall("ann", NOTES), admin.users.start("ann", NOTES)):
        with pytest.raises(Refused, match="not installed"):
            await attempt


async def test_an_app_is_started_and_stopped_by_hand(admin: AdminSetup) -> None:
    await admin.add()
    await admin.users.install("ann", NOTES, None)
    with pytest.raises(Refused) as error:
        await admin.users.start("ann", NOTES)
    assert error.value.problem.code == "NO_SESSION"
    await here(admin)
    started = await admin.users.start("ann", NOTES)
    assert (started["state"], started["foreground"], started["activated"]) == ("running", True, False)
    assert (await admin.users.stop("ann", NOTES))["stopped"] is True
    assert (await admin.users.stop("ann", NOTES))["stopped"] is False


async def test_an_app_the_device_cannot_run_does_not_start(admin: AdminSetup) -> None:
    await admin.add(CAMERA, CAMERA_APP)
    await admin.users.install("ann", CAMERA, None)
    await here(admin, "Even Realities G1")
    with pytest.raises(ToolcribError) as error:
        await admin.users.start("ann", CAMERA)
    assert error.value.problem.stage == "hardware"


@pytest.mark.requirement("D13")
async def test_a_tool_is_switched_off_by_any_of_its_names(admin: AdminSetup) -> None:
    await admin.add()
    await admin.users.install("ann", NOTES, None)
    assert await admin.users.disable("ann", "add", ANN) == f"{NOTES}:add"
    assert await admin.users.disable("ann", f"{NOTES}:add", ANN) == f"{NOTES}:add"
    assert await admin.users.disable("ann", "step", ANN) == "local:step"
    assert (await admin.users.get("ann"))["disabled"] == [f"{NOTES}:add", "local:step"]
    assert await admin.users.enable("ann", "add", ANN) == f"{NOTES}:add"
    await admin.apps.drop(NOTES, an_actor(key="dev", permissions=frozenset({"crib:apps"})))
    assert (await admin.users.get("ann"))["disabled"] == ["local:step"]


async def test_invisible_tools_cannot_be_disabled(admin: AdminSetup) -> None:
    await admin.add()
    for name in ("secret", "local:secret", f"{NOTES}:add", "nothing"):
        with pytest.raises(Refused) as error:
            await admin.users.disable("ann", name, ANN)
        assert error.value.problem.code == "TOOL_NOT_FOUND"


async def test_a_name_of_two_tools_means_the_first_one(admin: AdminSetup) -> None:
    await admin.add()
    await admin.add(CAMERA, CAMERA_APP)
    for package in (NOTES, CAMERA):
        await admin.users.install("ann", package, None)
    assert await admin.users.disable("ann", "add", ANN) == f"{NOTES}:add"
    await admin.users.uninstall("ann", NOTES)
    assert await admin.users.disable("ann", "add", ANN) == f"{CAMERA}:add"


@pytest.mark.requirement("D16")
async def test_a_session_keeps_its_id_until_it_ends(admin: AdminSetup) -> None:
    await admin.users.put("ann", language="de", time_zone="Europe/Berlin")
    first = await here(admin)
    assert (first["language"], first["timeZone"], first["device"]) == ("de", "Europe/Berlin", None)
    said = await admin.users.begin("ann", worn="Mentra Live", language="fr-CH", time_zone="UTC")
    assert (said["sessionId"], said["startedAt"]) == (first["sessionId"], first["startedAt"])
    assert (said["device"]["modelName"], said["language"]) == ("Mentra Live", "fr-CH")
    assert await admin.users.session("ann") == said
    assert await admin.users.end("ann") == first["sessionId"]
    assert (await here(admin))["sessionId"] != first["sessionId"]


async def test_with_the_session_end_the_apps(admin: AdminSetup) -> None:
    await admin.add()
    await admin.users.install("ann", NOTES, None)
    await here(admin)
    await admin.users.start("ann", NOTES)
    await admin.users.end("ann")
    assert admin.state("ann") == "stopped"
    for attempt in (admin.users.session("ann"), admin.users.end("ann")):
        with pytest.raises(Refused, match="no session"):
            await attempt


async def test_removed_user_leaves_no_data(admin: AdminSetup) -> None:
    await admin.add()
    await admin.users.install("ann", NOTES, None)
    await here(admin)
    await admin.users.start("ann", NOTES)
    await admin.users.drop("ann")
    assert admin.state("ann") == "stopped"
    for attempt in (admin.users.get("ann"), admin.users.drop("ann"), admin.users.stop("ann", NOTES)):
        with pytest.raises(Refused, match="no user ann"):
            await attempt


async def test_transcription_needs_a_session(admin: AdminSetup) -> None:
    await admin.users.put("ann", language=None, time_zone=None)
    with pytest.raises(Refused) as error:
        await admin.users.transcribe("ann", "hello", final=True, language=None)
    assert error.value.problem.code == "NO_SESSION"
    await here(admin)
    assert await admin.users.transcribe("ann", "hello", final=True, language=None) == 0


@pytest.mark.parametrize(
    "path, given",
    [
        ("language", {"language": "german!"}),
        ("timeZone", {"time_zone": "Nowhere/Land"}),
        ("timeZone", {"time_zone": "../../etc/passwd"}),
        ("device", {"worn": 3}),
        ("device", {"worn": " "}),
        ("device.hasCamera", {"worn": {"hasCamera": "yes"}}),
    ],
)
async def test_sessions_that_cannot_be(admin: AdminSetup, path: str, given: dict[str, Any]) -> None:
    session: dict[str, Any] = {"worn": None, "language": None, "time_zone": None, **given}
    with pytest.raises(Refused) as error:
        await admin.users.begin("ann", **session)
    assert (error.value.problem.code, error.value.problem.path) == ("INVALID_REQUEST", path)
    assert await admin.store.users.get("ann") is None


@pytest.mark.parametrize("user", ["", "a\nb", "x" * 201, "\x00", "\ud800"])
async def test_users_that_cannot_be(admin: AdminSetup, user: str) -> None:
    with pytest.raises(Refused, match="printable"):
        await here(admin, user=user)


async def test_an_app_that_is_not_there_cannot_be_installed(admin: AdminSetup) -> None:
    with pytest.raises(Refused) as raised:
        await admin.users.install("ann", NOTES, None)
    assert matches("apps", "an app that is not there cannot be installed", str(raised.value), notes=NOTES)


async def test_repeated_app_starts_are_rate_limited(admin: AdminSetup) -> None:
    await admin.add()
    for user in ("ann", "bob"):
        await admin.users.install(user, NOTES, None)
        await admin.users.begin(user, worn=None, language=None, time_zone=None)
    for _ in range(APP_START_RATE[0]):
        await admin.users.start("ann", NOTES)
    with pytest.raises(Refused, match="too many apps") as error:
        await admin.users.start("ann", NOTES)
    assert error.value.problem.code == "RATE_LIMITED"
    assert (await admin.users.start("bob", NOTES))["state"] == "running"
