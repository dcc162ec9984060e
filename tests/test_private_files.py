"""Files and folders are made for their owner alone, closed where they are ours, and refused where not."""

import logging
import os
from collections.abc import Generator
from errno import EPERM
from pathlib import Path
from stat import S_IMODE

import pytest

from tests.texts import matches
from toolcrib.private_files import (
    check_folder,
    close_log,
    open_to_append,
    private_file,
    private_folder,
    read_secret,
)

pytestmark = pytest.mark.requirement("I5")

SOMEBODY_ELSE = 12345


def mode(path: Path) -> int:
    return S_IMODE(path.stat().st_mode)


def append(path: Path) -> None:
    """Open and close a log as the gateway does."""
    descriptor = open_to_append(path)
    close_log(descriptor, path)
    os.close(descriptor)


@pytest.fixture(params=[0o000, 0o077, 0o377], ids=["lax", "usual", "strict"])
def umask(request: pytest.FixtureRequest) -> Generator[None]:
    before = os.umask(request.param)
    yield
    os.umask(before)


@pytest.mark.usefixtures("umask")
def test_files_are_private_despite_umask(tmp_path: Path) -> None:
    private_folder(tmp_path / "state")
    os.close(open_to_append(tmp_path / "state" / "log"))
    assert (mode(tmp_path / "state"), mode(tmp_path / "state" / "log")) == (0o700, 0o600)


def test_own_readable_file_is_restricted_and_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder, file = tmp_path / "state", tmp_path / "state" / "x.db"
    folder.mkdir(mode=0o755)
    file.touch()
    for path, lax in ((folder, 0o755), (file, 0o640)):
        path.chmod(lax)
    with caplog.at_level(logging.WARNING):
        private_folder(folder)
        private_file(file)
        private_folder(folder)
        private_file(file)
    assert (mode(folder), mode(file)) == (0o700, 0o600)
    assert [record.args for record in caplog.records] == [(folder, 0o755, 0o700), (file, 0o640, 0o600)]


@pytest.mark.skipif(os.geteuid() != 0, reason="giving a file away takes root")
def test_foreign_readable_file_is_refused_unchanged(tmp_path: Path) -> None:
    folder, file = tmp_path / "state", tmp_path / "x.db"
    folder.mkdir()
    file.touch()
    for path, lax in ((folder, 0o755), (file, 0o644)):
        path.chmod(lax)
        os.chown(path, SOMEBODY_ELSE, SOMEBODY_ELSE)
    with pytest.raises(PermissionError, match="chmod 700"):
        private_folder(folder)
    with pytest.raises(PermissionError, match="chmod 600"):
        private_file(file)
    assert (mode(folder), mode(file)) == (0o755, 0o644)


def test_a_log_that_is_there_keeps_its_mode(tmp_path: Path) -> None:
    (tmp_path / "log").touch()
    (tmp_path / "log").chmod(0o640)
    os.close(open_to_append(tmp_path / "log"))
    assert mode(tmp_path / "log") == 0o640


@pytest.mark.parametrize("before, after", [(0o644, 0o640), (0o666, 0o640), (0o660, 0o640), (0o602, 0o600)])
def test_an_open_log_is_closed_to_others_and_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, before: int, after: int
) -> None:
    path = tmp_path / "log"
    path.touch()
    path.chmod(before)
    for _ in range(2):
        append(path)
    assert mode(path) == after
    assert [record.args for record in caplog.records] == [(path, before, after)]


@pytest.mark.parametrize("before", [0o600, 0o640, 0o440])
def test_a_log_for_owner_and_group_keeps_its_mode(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, before: int
) -> None:
    path = tmp_path / "log"
    path.touch()
    path.chmod(before)
    with path.open("rb") as file:
        close_log(file.fileno(), path)
    assert (mode(path), caplog.records) == (before, [])


def test_a_log_of_another_user_is_reported_and_written(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "log"
    path.touch()
    path.chmod(0o644)

    def refuse(*_: object) -> None:
        raise PermissionError(EPERM, os.strerror(EPERM))

    monkeypatch.setattr(os, "fchmod", refuse)
    append(path)
    assert mode(path) == 0o644
    (record,) = caplog.records
    assert f"run `chmod 640 {path}` as its owner" in record.getMessage()


def test_a_log_that_is_a_device_keeps_its_mode(monkeypatch: pytest.MonkeyPatch) -> None:
    changed: list[int] = []

    def record(_descriptor: int, to: int) -> None:
        changed.append(to)

    monkeypatch.setattr(os, "fchmod", record)
    append(Path(os.devnull))
    assert changed == []


@pytest.mark.parametrize("lax", [0o777, 0o757, 0o702])
def test_a_folder_every_user_can_write_is_refused(tmp_path: Path, lax: int) -> None:
    tmp_path.chmod(lax)
    with pytest.raises(PermissionError) as raised:
        check_folder(tmp_path)
    assert matches(
        "server",
        "a folder every user can write is refused",
        str(raised.value),
        tmp_path=tmp_path,
        mode=f"{lax:o}",
    )
    assert mode(tmp_path) == lax


@pytest.mark.parametrize("fit", [0o700, 0o755, 0o775, 0o1777])
def test_a_folder_others_cannot_replace_files_in_is_accepted(tmp_path: Path, fit: int) -> None:
    tmp_path.chmod(fit)
    check_folder(tmp_path)
    assert mode(tmp_path) == fit


def test_a_secret_others_can_read_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text("secret")
    file.chmod(0o640)
    with pytest.raises(PermissionError, match="chmod 600"):
        read_secret(file)
    file.chmod(0o400)
    assert read_secret(file) == b"secret"
