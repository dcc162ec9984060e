"""`toolcrib config`: what is in force, and whether it holds."""

from pathlib import Path

import anyio
import pytest

from tests.cli.conftest import Shell
from toolcrib.store import open_store

CONFIG = """
auth: {admin_key: "${MY_SECRET:-from-the-file-itself}"}
contexts: {support: {tools: [get_datetime]}}
"""


def overlay(home: Path, change: dict[str, object]) -> None:
    """Change the config at run time, as a gateway would."""

    async def put() -> None:
        store = await open_store(f"sqlite:///{home / '.toolcrib' / 'toolcrib.db'}")
        await store.overlay.save(change, expected=0)
        await store.close()

    anyio.run(put)


@pytest.mark.requirement("I2", "I7")
def test_export_merges_file_and_overlay_and_covers_secrets(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "toolcrib.yaml").write_text(CONFIG)
    overlay(tmp_path, {"contexts": {"added": {"tools": ["local:*"]}, "support": {"tools": []}}})
    done = shell("config", "export")
    assert done.code == 0
    (tmp_path / "exported.yaml").write_text(done.out)
    monkeypatch.setenv("MY_SECRET", "what-the-export-has-covered")
    merged = shell("config", "export", "-c", "exported.yaml", "--json").json
    assert merged["contexts"] == {"support": {"tools": ["get_datetime"]}, "added": {"tools": ["local:*"]}}
    assert "from-the-file-itself" not in done.out
    assert merged["auth"]["admin_key"].startswith("${MY_SECRET:-***")


def test_export_without_a_file_is_an_empty_config(shell: Shell) -> None:
    assert shell("config", "export").out == "{}\n"


def test_check_lists_every_fault_with_its_line(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "wrong.yaml").write_text("server:\n  port: many\n  hosst: x\n")
    done = shell("config", "check", "-c", "wrong.yaml")
    assert done.code == 1
    assert done.rows == [
        ["fault", "wrong.yaml:2 server.port", "must be a whole number"],
        ["fault", "wrong.yaml:3 server.hosst", "is not a setting; did you mean host?"],
    ]


def test_warnings_do_not_fail_it(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "toolcrib.yaml").write_text("openapi: {petstore: {document: petstore.yaml}}")
    done = shell("config", "check", "--json")
    assert done.code == 0
    assert done.json["ok"] is True
    (found,) = done.json["findings"]
    assert (found["level"], found["line"]) == ("warning", 1)


def test_a_good_config(shell: Shell) -> None:
    assert shell("config", "check").out == "All checks pass.\n"
