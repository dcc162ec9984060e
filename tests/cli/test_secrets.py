"""`toolcrib secrets`, the key file, and the modes of the state folder, from the command line."""

import json
import os
from pathlib import Path
from stat import S_IMODE
from typing import Any

import anyio
import pytest

from tests.cli.conftest import Outcome, Shell
from tests.store.sql.secret_rows import OVERLAY, clear_text
from toolcrib.store import open_store

pytestmark = pytest.mark.requirement("I2", "I5")

KEY = "a-key-in-a-file-of-which-nobody-knows"
OTHER = "another-key-in-a-file-that-nobody-knows"
STORE = "sqlite:///.toolcrib/toolcrib.db"


def put(name: str, text: str, mode: int = 0o600) -> str:
    path = Path(name)
    path.write_text(text)
    path.chmod(mode)
    return name


def configured(**secrets: str) -> None:
    lines = [f"  {name}: {value}\n" for name, value in secrets.items()]
    Path("toolcrib.yaml").write_text("secrets:\n" + "".join(lines) if lines else "")


def fill() -> None:
    """Store a server as an earlier version did."""

    async def work() -> None:
        store = await open_store(STORE)
        await store.overlay.save(OVERLAY, expected=0)
        await store.close()

    anyio.run(work)


def servers(done: Outcome) -> set[str]:
    assert done.code == 0, done.err
    exported: dict[str, Any] = done.json
    return set(exported["mcp"]["servers"])


def test_a_store_goes_from_key_to_file_to_file_to_key(shell: Shell) -> None:
    configured()
    fill()
    both = {"web", "program"}
    assert servers(shell("config", "export", "--json")) == both
    assert clear_text(Path(".toolcrib")) == []
    configured(key_file=put("one.key", KEY))
    assert servers(shell("config", "export", "--json")) == both
    configured(key_file=put("two.key", OTHER))
    assert shell("config", "export").code == 2
    configured(key_file="two.key", key_file_old="one.key")
    assert servers(shell("config", "export", "--json")) == both
    configured()
    assert shell("config", "export").code == 2
    configured(key_file_old="two.key")
    assert servers(shell("config", "export", "--json")) == both
    configured()
    assert servers(shell("config", "export", "--json")) == both


@pytest.mark.parametrize(
    "text, mode",
    [(KEY, 0o640), (KEY, 0o604), ("too short", 0o600), ("ab" * 40, 0o600), ("", 0o600), ("x" * 5000, 0o600)],
)
def test_an_unfit_key_file_is_refused_by_its_setting(shell: Shell, text: str, mode: int) -> None:
    configured(key_file=put("one.key", text, mode))
    fill()
    for words in (("config", "export"), ("tools",)):
        done = shell(*words, "--json")
        assert done.code == 2, done.out
        assert [fault["path"] for fault in done.json["error"]["details"]["faults"]] == ["secrets.key_file"]
        assert KEY not in done.out


def test_a_key_file_that_is_not_there_is_named(shell: Shell) -> None:
    configured(key_file="nowhere.key")
    done = shell("keys", "create", "x", "--json")
    assert (done.code, "No such file" in done.json["error"]["message"]) == (2, True)


def test_lost_secrets_are_named_and_then_removed(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLCRIB_ADMIN_KEY", KEY)
    fill()
    assert shell("config", "export").code == 0
    monkeypatch.setenv("TOOLCRIB_ADMIN_KEY", OTHER)
    assert shell("secrets", "rotate").code == 2
    named = shell("secrets", "remove", "--json").json
    assert (named["removed"], named["servers"]) == (False, ["web", "program"])
    assert shell("config", "export").code == 2
    assert shell("secrets", "remove", "--yes").out.splitlines() == [
        "server web: removed",
        "server program: removed",
    ]
    assert servers(shell("config", "export", "--json")) == set()
    (record,) = [
        each for each in shell("audit", "--json").json["records"] if each["action"] == "secrets.remove"
    ]
    assert record["after"] == {"servers": ["web", "program"], "apps": []}


def test_looking_makes_no_admin_key_for_a_store_that_has_one(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOLCRIB_ADMIN_KEY", KEY)
    fill()
    assert shell("config", "export").code == 0
    monkeypatch.delenv("TOOLCRIB_ADMIN_KEY")
    assert shell("tools").code == 2
    assert not Path(".toolcrib/admin.key").exists()


def test_an_open_state_folder_is_closed(shell: Shell) -> None:
    assert shell("keys", "create", "x").code == 0
    home = Path(".toolcrib")
    home.chmod(0o755)
    (home / "toolcrib.db").chmod(0o644)
    assert shell("keys", "list").code == 0
    assert S_IMODE(home.stat().st_mode) == 0o700
    assert S_IMODE((home / "toolcrib.db").stat().st_mode) == 0o600


@pytest.mark.skipif(os.geteuid() != 0, reason="giving a folder away takes root")
def test_an_open_state_folder_of_others_is_refused(shell: Shell) -> None:
    assert shell("keys", "create", "x").code == 0
    Path(".toolcrib").chmod(0o755)
    os.chown(".toolcrib", 12345, 12345)
    done = shell("keys", "list", "--json")
    assert (done.code, "chmod 700 .toolcrib" in done.json["error"]["message"]) == (1, True)


def test_a_log_file_is_for_its_owner_alone(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    from toolcrib.observe import Redactor
    from toolcrib.observe.log import setup

    setup("info", Path("new.log"), Redactor()).close()
    assert S_IMODE(Path("new.log").stat().st_mode) == 0o600


def test_an_open_log_of_an_earlier_version_is_closed(shell: Shell) -> None:
    from toolcrib.observe import Redactor
    from toolcrib.observe.log import setup

    path = Path("old.log")
    path.touch()
    path.chmod(0o644)
    setup("info", path, Redactor()).close()
    assert S_IMODE(path.stat().st_mode) == 0o640
    assert [json.loads(line)["message"] for line in path.read_text().splitlines()] == [
        "old.log was open to other users: its mode was 644 and is 640 now"
    ]
