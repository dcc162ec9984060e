"""The developer API: apps are stored, changed, defined and removed only by their owners."""

from typing import Any

import pytest

from tests.admin.admin_setup import (
    ADMIN,
    DEVELOPER,
    NOTES,
    NOTES_APP,
    OTHER,
    AdminSetup,
    a_definition,
    an_actor,
)
from tests.texts import matches
from toolcrib.admin import app_admin as desk
from toolcrib.admin.app_admin import spell_app
from toolcrib.apps.signature import key_digest
from toolcrib.errors import Refused
from toolcrib.model import Actor
from toolcrib.observe import Redactor

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("D1")]


def faults(error: pytest.ExceptionInfo[Refused]) -> list[str]:
    """The paths of every fault."""
    problem = error.value.problem
    assert problem.code == "INVALID_REQUEST"
    return [each["path"] for each in problem.details["faults"]]


async def test_new_app_gets_key_once_and_only_hash_is_stored(admin: AdminSetup) -> None:
    app, key = await admin.apps.put(NOTES, NOTES_APP, DEVELOPER)
    assert key is not None
    assert (app.owner, app.public_url, app.version) == ("dev", "https://notes.example/app", 1)
    assert (await admin.store.apps.get(NOTES)) == app
    assert app.digest == key_digest(key)
    assert Redactor().text(f"made {key}, then") == "made [redacted], then", "the log knows it by its shape"
    again, none = await admin.apps.put(NOTES, {**NOTES_APP, "name": "New"}, DEVELOPER)
    assert (none, again.name, again.version, again.digest) == (None, "New", 2, app.digest)
    assert admin.told() == [("apps", NOTES), ("apps", NOTES)]
    assert admin.served[NOTES].name == "New"


@pytest.mark.requirement("I1")
async def test_an_app_is_its_developers_alone_and_the_admins(admin: AdminSetup) -> None:
    await admin.add()
    for attempt in (
        admin.apps.put(NOTES, NOTES_APP, OTHER),
        admin.apps.define(NOTES, [], OTHER),
        admin.apps.rotate(NOTES, OTHER),
        admin.apps.drop(NOTES, OTHER),
        admin.apps.drop(NOTES, an_actor(key="dev")),
    ):
        with pytest.raises(Refused, match="crib:admin") as error:
            await attempt
        assert error.value.problem.code == "SCOPE_DENIED"
    await admin.apps.put(NOTES, NOTES_APP, ADMIN)
    assert (await admin.apps.get(NOTES)).owner == "dev"


async def test_public_app_fields_omit_url_and_owner(admin: AdminSetup) -> None:
    await admin.add()
    app = await admin.apps.get(NOTES)
    inside = {"owner", "publicUrl", "created", "updated", "warnings"}
    assert set(spell_app(app, DEVELOPER.caller)) - set(spell_app(app, OTHER.caller)) == inside
    assert app.digest is not None
    assert app.digest not in str(spell_app(app, ADMIN.caller))


@pytest.mark.parametrize(
    "package, body, wrong",
    [
        ("notes", NOTES_APP, ["package"]),
        ("Com.Example", NOTES_APP, ["package"]),
        (f"com.{'x' * 128}", NOTES_APP, ["package"]),
        (f"{NOTES}.", NOTES_APP, ["package"]),
        ("com..example.notes", NOTES_APP, ["package"]),
        (NOTES, [], ["body"]),
        (NOTES, {}, ["name"]),
        (NOTES, {"name": "", "appType": "big", "url": "x"}, ["url", "name", "appType"]),
        (NOTES, {"name": "N", "publicUrl": "notes.example"}, ["publicUrl"]),
        (
            NOTES,
            {"name": "N", "hardwareRequirements": [{"type": "CAMERA", "level": "SOME"}]},
            ["hardwareRequirements[0].level"],
        ),
    ],
)
async def test_an_app_with_faults_is_not_stored(
    admin: AdminSetup, package: str, body: Any, wrong: list[str]
) -> None:
    with pytest.raises(Refused) as error:
        await admin.apps.put(package, body, DEVELOPER)
    assert faults(error) == wrong
    assert await admin.store.apps.all() == []
    assert admin.told() == []


@pytest.mark.requirement("I5")
@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:9000",
        "http://localhost",
        "http://169.254.169.254/latest",
        "http://[::1]:80",
        "http://0x7f000001",
        "http://10.1.2.3",
    ],
)
async def test_an_app_cannot_send_the_gateway_to_places_inside(admin: AdminSetup, url: str) -> None:
    for exists in (False, True):
        with pytest.raises(Refused) as error:
            await admin.apps.put(NOTES, {**NOTES_APP, "publicUrl": url}, DEVELOPER)
        assert "publicUrl cannot be used" in str(error.value)
        assert faults(error) == ["publicUrl"]
        if not exists:
            await admin.add()


@pytest.mark.requirement("I5")
async def test_address_giver_is_recorded(admin: AdminSetup) -> None:
    public, local = "https://notes.example", "http://127.0.0.1:9000"

    async def put(url: str | None, actor: Actor) -> str | None:
        app, _ = await admin.apps.put(NOTES, {"name": "Notes", "publicUrl": url}, actor)
        return app.url_giver

    assert await put(public, DEVELOPER) == "other"
    assert await put(public, ADMIN) == "other", "a name is still its developer's"
    assert await put(local, ADMIN) == "operator"
    assert await put(f"{local}/", DEVELOPER) == "operator", "it is the same address"
    assert await put(None, DEVELOPER) is None
    with pytest.raises(Refused):
        await put(local, DEVELOPER)
    assert await put("https://other.example", ADMIN) == "operator"


async def test_a_name_that_another_source_has_is_refused(admin: AdminSetup) -> None:
    with pytest.raises(Refused) as error:
        await admin.apps.put("taken.by.another", NOTES_APP, DEVELOPER)
    assert error.value.problem.code == "ALREADY_EXISTS"


@pytest.mark.requirement("D2")
async def test_tools_are_stored_whole_or_not_at_all(admin: AdminSetup) -> None:
    await admin.add()
    good, bad = a_definition("new"), a_definition("a:b", inputSchema={"type": "array"})
    with pytest.raises(Refused) as error:
        await admin.apps.define(NOTES, [good, bad, 3], DEVELOPER)
    assert {"tools[1].name", "tools[1].inputSchema.type", "tools[2]"} <= set(faults(error))
    assert spell_app(await admin.apps.get(NOTES), DEVELOPER.caller)["tools"] == ["add", "list"]
    stored = await admin.apps.define(NOTES, [good], DEVELOPER)
    assert stored == {"packageName": NOTES, "version": 3, "tools": ["new"], "warnings": []}
    assert [each.definition for each in admin.served[NOTES].tools] == [good]


@pytest.mark.requirement("D4")
async def test_unknown_hardware_is_stored_with_warning(admin: AdminSetup) -> None:
    await admin.add(NOTES, {**NOTES_APP, "hardwareRequirements": [{"type": "GPS", "level": "REQUIRED"}]})
    stored = await admin.apps.define(NOTES, [a_definition()], DEVELOPER)
    assert "GPS" in stored["warnings"][0]
    assert spell_app(admin.served[NOTES], DEVELOPER.caller)["warnings"] == stored["warnings"]


async def test_new_key_ends_old_key_and_its_connections(admin: AdminSetup) -> None:
    old = await admin.add()
    await admin.users.install("ann", NOTES, None)
    await admin.users.begin("ann", worn=None, language=None, time_zone=None)
    await admin.users.start("ann", NOTES)
    new = await admin.apps.rotate(NOTES, DEVELOPER)
    assert admin.sockets[0].closed is not None
    assert admin.state("ann") == "stopped"
    assert admin.apps.holder(NOTES, old) is None
    app = admin.apps.holder(NOTES, new)
    assert app is not None
    assert app.package == NOTES
    assert admin.apps.holder("com.example.other", new) is None


async def test_changed_url_disconnects_app_unchanged_url_does_not(admin: AdminSetup) -> None:
    await admin.add()
    await admin.users.install("ann", NOTES, None)
    await admin.users.begin("ann", worn=None, language=None, time_zone=None)
    await admin.users.start("ann", NOTES)
    await admin.apps.put(NOTES, {**NOTES_APP, "name": "Other"}, DEVELOPER)
    assert admin.state("ann") == "running"
    await admin.apps.put(NOTES, {**NOTES_APP, "publicUrl": "https://moved.example"}, DEVELOPER)
    assert admin.state("ann") == "stopped"


async def test_removed_app_is_gone_for_all_users(admin: AdminSetup) -> None:
    await admin.add()
    await admin.users.install("ann", NOTES, None)
    admin.told()
    await admin.apps.drop(NOTES, DEVELOPER)
    assert admin.told() == [("apps", NOTES), ("users", "")]
    assert (await admin.users.get("ann"))["apps"] == []
    for attempt in (admin.apps.get(NOTES), admin.apps.drop(NOTES, DEVELOPER)):
        with pytest.raises(Refused) as error:
            await attempt
        assert error.value.problem.code == "NOT_FOUND"


async def test_pages_of_apps(admin: AdminSetup) -> None:
    for name in ("c.c", "a.a", "b.b"):
        await admin.apps.put(name, NOTES_APP, DEVELOPER)
    assert [app.package for app in admin.apps.page(limit=2)] == ["a.a", "b.b"]
    assert [app.package for app in admin.apps.page(after="b.b")] == ["c.c"]


async def test_one_developer_does_not_fill_the_catalog(
    admin: AdminSetup, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(desk, "MAX_DEVELOPER_APPS", 2)
    monkeypatch.setattr(desk, "MAX_DEVELOPER_TOOLS", 3)
    await admin.add()
    await admin.apps.put("a.a", NOTES_APP, DEVELOPER)
    with pytest.raises(Refused) as error:
        await admin.apps.put("b.b", NOTES_APP, DEVELOPER)
    assert matches("apps", "one developer does not fill the catalog", str(error.value))
    assert faults(error) == ["package"]
    await admin.apps.put("b.b", NOTES_APP, OTHER)
    with pytest.raises(Refused, match="3 at most") as error:
        await admin.apps.define("a.a", [a_definition("one"), a_definition("two")], DEVELOPER)
    assert faults(error) == ["tools"]
    for actor, names in ((DEVELOPER, ("one",)), (ADMIN, ("one", "two"))):
        await admin.apps.define("a.a", [a_definition(name) for name in names], actor)
    await admin.apps.define("a.a", [a_definition("three"), a_definition("two")], DEVELOPER)


async def test_tools_beyond_catalog_limit_are_refused_on_upload(
    admin: AdminSetup,
) -> None:
    await admin.add()
    admin.room = 1
    for actor in (DEVELOPER, ADMIN):
        with pytest.raises(Refused) as error:
            await admin.apps.define(NOTES, [a_definition(name) for name in "abcd"], actor)
        assert matches("apps", "tools beyond catalog limit are refused on upload", str(error.value))
        assert faults(error) == ["tools"]
    await admin.apps.define(NOTES, [a_definition(name) for name in "abc"], DEVELOPER)
    admin.room = -5
    await admin.apps.define(NOTES, [a_definition(name) for name in "ab"], DEVELOPER)


async def test_developer_changes_are_rate_limited(admin: AdminSetup) -> None:
    await admin.add()
    for _ in range(desk.DEVELOPER_CHANGE_RATE[0] - 2):
        await admin.apps.define(NOTES, [], DEVELOPER)
    for attempt in (
        admin.apps.put(NOTES, NOTES_APP, DEVELOPER),
        admin.apps.define(NOTES, [], DEVELOPER),
        admin.apps.rotate(NOTES, DEVELOPER),
        admin.apps.drop(NOTES, DEVELOPER),
    ):
        with pytest.raises(Refused, match="too many changes") as error:
            await attempt
        assert error.value.problem.code == "RATE_LIMITED"
    await admin.apps.put("a.a", NOTES_APP, OTHER)
    await admin.apps.drop(NOTES, ADMIN)
