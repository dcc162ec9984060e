"""`toolcrib migrate`: over a file and over the store, there and back."""

import json
import stat
from collections.abc import Sequence
from pathlib import Path

import anyio
import pytest

from tests.apps.old_tools import MIGRATED, REMINDER
from tests.cli.conftest import Shell
from tests.texts import matches
from toolcrib.apps.migration import ORIGINAL_FIELD
from toolcrib.interfaces import AppRecord, AppTool
from toolcrib.store import open_store

OTHER = {"id": "list_reminders", "description": "Lists them."}
TEXT = json.dumps({"packageName": "com.example", "tools": [REMINDER, OTHER]}, indent=4) + "\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "app.json"
    path.write_bytes(TEXT.encode())
    return path


@pytest.mark.requirement("D12")
def test_dry_run_shows_changes_without_writing(shell: Shell, file: Path) -> None:
    done = shell("migrate", "app.json", "--dry-run")
    assert done.code == 0
    assert matches("cli", "dry run shows changes without writing", done.out)
    assert matches("cli", "dry run shows changes without writing 3", done.err)
    assert file.read_text() == TEXT


@pytest.mark.requirement("D12")
def test_a_file_is_migrated_once_and_put_back_to_the_last_byte(shell: Shell, file: Path) -> None:
    file.chmod(0o640)
    done = shell("migrate", "app.json")
    assert (done.code, done.out) == (
        0,
        "tools[0] add_reminder: migrated\ntools[1] list_reminders: migrated\n",
    )
    once = file.read_bytes()
    first = json.loads(once)["tools"][0]
    assert json.loads(first.pop(ORIGINAL_FIELD)) == REMINDER
    assert first == MIGRATED
    again = shell("migrate", "app.json")
    assert (again.code, again.out, again.err) == (0, "", "All tools have the new format.\n")
    assert file.read_bytes() == once
    back = shell("migrate", "app.json", "--undo")
    assert (back.code, back.out.splitlines()[0]) == (0, "tools[0] add_reminder: restored")
    assert file.read_text() == TEXT
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert list(file.parent.iterdir()) == [file]
    assert matches(
        "cli",
        "a file is migrated once and put back to the last byte",
        shell("migrate", "app.json", "--undo").err,
    )


@pytest.mark.requirement("D12")
def test_an_array_stays_an_array_and_a_link_a_link(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "real.json").write_text(json.dumps([REMINDER]))
    (tmp_path / "link.json").symlink_to("real.json")
    assert shell("migrate", "link.json").code == 0
    assert (tmp_path / "link.json").is_symlink()
    assert json.loads((tmp_path / "real.json").read_text())[0]["name"] == "add_reminder"


@pytest.mark.requirement("D12")
def test_programs_get_json(shell: Shell, file: Path) -> None:
    done = shell("migrate", "app.json", "--dry-run", "--json")
    assert done.json["changed"][0] == {"path": "tools[0]", "before": REMINDER, "after": MIGRATED}
    assert (done.code, done.json["success"], done.json["dryRun"], done.json["undo"]) == (0, True, True, False)


@pytest.mark.requirement("D12")
def test_faulty_migration_changes_nothing_and_lists_faults(shell: Shell, file: Path) -> None:
    broken = json.dumps([REMINDER, {"id": "a:b", "description": ""}])
    file.write_text(broken)
    done = shell("migrate", "app.json")
    assert (done.code, done.out) == (1, "")
    assert done.err.splitlines()[0].startswith("toolcrib: tools[1].id: must hold no colon")
    assert done.err.splitlines()[1:] == [
        "toolcrib: tools[1].description: must not be empty",
        "Nothing was changed.",
    ]
    assert file.read_text() == broken
    told = shell("migrate", "app.json", "--json")
    assert (told.code, told.json["success"]) == (1, False)
    assert [each["path"] for each in told.json["faults"]] == ["tools[1].id", "tools[1].description"]


def test_file_without_tools_fails(shell: Shell, file: Path) -> None:
    file.write_bytes(b"\xff")
    assert shell("migrate", "app.json").code == 1
    gone = shell("migrate", "gone.json")
    assert (gone.code, gone.err) == (1, "toolcrib: gone.json: No such file or directory\n")


@pytest.mark.parametrize("arguments", [(), ("app.json", "--store"), ("a.json", "b.json")])
def test_wrong_use(shell: Shell, arguments: tuple[str, ...]) -> None:
    assert shell("migrate", *arguments).code == 2


# --- the store


def _app(package: str, *tools: AppTool) -> AppRecord:
    return AppRecord(package=package, name=package, owner="dev", tools=tools)


def _put(*apps: AppRecord) -> None:
    async def work() -> None:
        store = await open_store("sqlite:///.toolcrib/toolcrib.db")
        for app in apps:
            assert await store.apps.add(app)
        await store.close()

    Path(".toolcrib").mkdir(exist_ok=True)
    anyio.run(work)


def _stored() -> Sequence[AppRecord]:
    async def work() -> Sequence[AppRecord]:
        store = await open_store("sqlite:///.toolcrib/toolcrib.db")
        try:
            return await store.apps.all()
        finally:
            await store.close()

    return anyio.run(work)


OLD, NEW = AppTool(definition=REMINDER), AppTool(definition={**MIGRATED, "name": "new"})


@pytest.mark.slow
@pytest.mark.requirement("D12")
def test_the_store_is_migrated_once_and_put_back(shell: Shell) -> None:
    _put(_app("com.a", OLD, NEW), _app("com.b", NEW))
    before = _stored()
    dry = shell("migrate", "--store", "--dry-run")
    assert (dry.code, dry.out.splitlines()[0]) == (0, "com.a.tools[0] add_reminder: would be migrated")
    assert _stored() == before
    assert shell("migrate", "--store").out == "com.a.tools[0] add_reminder: migrated\n"
    changed, same = _stored()
    assert changed.tools == (AppTool(definition=MIGRATED, original=REMINDER), NEW)
    assert (changed.version, same) == (2, before[1])
    assert shell("migrate", "--store").out == ""
    assert _stored() == [changed, same]
    assert matches(
        "cli", "the store is migrated once and put back", shell("migrate", "--store", "--undo").out
    )
    assert [app.tools for app in _stored()] == [app.tools for app in before]
    assert shell("migrate", "--store", "--undo").out == ""


@pytest.mark.slow
@pytest.mark.requirement("D12")
def test_with_a_fault_in_one_app_no_app_of_the_store_is_changed(shell: Shell) -> None:
    _put(_app("com.a", OLD), _app("com.b", AppTool(definition={"id": "x"})))
    before = _stored()
    done = shell("migrate", "--store", "--json")
    assert done.code == 1
    assert [each["path"] for each in done.json["faults"]] == ["com.b.tools[0].description"]
    assert _stored() == before


@pytest.mark.requirement("D12")
def test_where_there_is_no_store_none_is_made(shell: Shell) -> None:
    assert shell("migrate", "--store").code == 0
    assert not Path(".toolcrib").exists()
