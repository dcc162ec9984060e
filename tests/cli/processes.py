"""Commands as processes of their own: served, killed, looked at in a terminal."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

COMMAND = (sys.executable, "-m", "toolcrib")
PATIENCE = 60


def environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return this process's environment without anything that is meant for Toolcrib."""
    plain = {name: value for name, value in os.environ.items() if not name.startswith("TOOLCRIB_")}
    return {**plain, **(more or {})}


def finished(
    folder: Path, *arguments: str, env: Mapping[str, str] | None = None, stdin: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run one command to its end."""
    return subprocess.run(
        (*COMMAND, *arguments),
        cwd=folder,
        env=environment(env),
        input=stdin,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


@dataclass(frozen=True)
class Serving:
    """A gateway that runs: what it printed, and the process behind it."""

    folder: Path
    process: subprocess.Popen[str]
    welcome: str

    @property
    def url(self) -> str:
        """Where it listens."""
        found = re.search(r"http://\S+", self.welcome)
        assert found is not None, self.welcome
        return found[0]

    @property
    def admin_key(self) -> str:
        """The key it made."""
        return (self.folder / ".toolcrib" / "admin.key").read_text().strip()

    def end(self, number: int = signal.SIGINT) -> tuple[int, str]:
        """Send a signal; return the exit code and what was written to standard error."""
        self.process.send_signal(number)
        _, err = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode, err


@contextmanager
def serving(folder: Path, *arguments: str, env: Mapping[str, str] | None = None) -> Generator[Serving]:
    """Run `toolcrib serve` on a free port until the block ends."""
    process = subprocess.Popen(
        (*COMMAND, "serve", "--port", "0", *arguments),
        cwd=folder,
        env=environment(env),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        lines: list[str] = []
        # The client's snippet is the last thing it prints.
        while not (lines and lines[-1].startswith('{"mcpServers"')):
            line = process.stdout.readline()
            if not line:
                raise AssertionError(process.communicate(timeout=PATIENCE)[1])
            lines.append(line)
        yield Serving(folder, process, "".join(lines))
    finally:
        if process.poll() is None:
            process.terminate()
        process.communicate(timeout=PATIENCE)
