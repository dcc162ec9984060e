"""Where parts are kept, and the acts of fetching one: run a command, lock, stamp, install by apt or pip."""

import contextlib
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Generator, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
KEPT = ROOT / ".parts"
LAST_LINES = 12
VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"


class Missing(Exception):
    """A part is not available here; the message is the reason."""


def run(command: Sequence[str | Path], *, cwd: Path = ROOT, env: Mapping[str, str] | None = None) -> str:
    """Run a command; returns its output, or raises it on failure."""
    words = [str(word) for word in command]
    try:
        done = subprocess.run(
            words,
            cwd=cwd,
            env={**os.environ, **(env or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
    except OSError as error:
        raise Missing(f"{words[0]} does not start: {error}") from error
    if done.returncode:
        tail = "\n".join(done.stdout.strip().splitlines()[-LAST_LINES:])
        raise Missing(f"`{' '.join(words[:4])} …` ended with {done.returncode}: {tail}")
    return done.stdout


@contextlib.contextmanager
def alone(name: str) -> Generator[None]:
    """One process at a time fetches a part; the others wait and then find it."""
    KEPT.mkdir(exist_ok=True)
    with (KEPT / f".{name}.lock").open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def digest(*files: Path) -> str:
    """Name for a state of some files, written into a stamp once they are installed."""
    return hashlib.sha256(b"\0".join(file.read_bytes() for file in files)).hexdigest()


def stamped(folder: Path, mark: str) -> bool:
    stamp = folder / ".stamp"
    return stamp.is_file() and stamp.read_text() == mark


def stamp(folder: Path, mark: str) -> None:
    (folder / ".stamp").write_text(mark)


def on_path(*names: str) -> Path | None:
    """First of these programs that the machine has."""
    found = (shutil.which(name) for name in names)
    return next((Path(path) for path in found if path), None)


def apt(*packages: str) -> None:
    """Install Debian packages, where we are root on a machine that has apt."""
    if os.geteuid() != 0 or on_path("apt-get") is None:
        raise Missing(
            f"not installed, and no right to install it here (as root: apt-get install {packages[0]})"
        )
    quiet = {"DEBIAN_FRONTEND": "noninteractive"}
    with alone("apt"):
        run(["apt-get", "-q", "update"], env=quiet)
        run(["apt-get", "-q", "install", "-y", "--no-install-recommends", *packages], env=quiet)


def stamped_python(folder: Path, mark: str) -> Path | None:
    """Python of an environment that was made from this very lock, by a Python of our version."""
    python = folder / "bin/python"
    return python if python.exists() and stamped(folder, f"{mark} {VERSION}") else None


def pip_environment(folder: Path, lock: Path) -> None:
    """Create an environment with exactly the locked packages, checked by hash."""
    shutil.rmtree(folder, ignore_errors=True)
    run([sys.executable, "-m", "venv", folder])
    pip = [folder / "bin/python", "-m", "pip", "--disable-pip-version-check"]
    # The lock is complete: nothing is resolved, and extras need not be listed.
    run([*pip, "install", "--quiet", "--require-hashes", "--no-deps", "--requirement", lock])
    stamp(folder, f"{digest(lock)} {VERSION}")
