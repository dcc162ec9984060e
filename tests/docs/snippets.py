"""Does what a reader of a page would do: saves its files, runs its Python, types its commands."""

import os
import subprocess
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.docs.pages import Fence, fences

BIN = Path(sys.executable).parent
FRAGMENT = "fragment"
"""The mark of Python that only makes sense beside other code: it is compiled and not run."""

_TYPED = ("curl ", "toolcrib ", "export ")
_PORT = "127.0.0.1:6740"
_PATIENCE = 60.0
_PREAMBLE = 'curl() { command curl --fail "$@"; }\n'
"""An error status is a failure here, which plain curl does not count as one."""


@dataclass
class Reader:
    """One reader in one folder, beside a gateway that may be running there."""

    folder: Path
    port: int = 0
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    _exports: str = ""

    def follow(self, text: str) -> list[str]:
        """Go through the blocks of a page in order; return what did not work."""
        return [complaint for fence in fences(text) for complaint in self.do(fence)]

    def do(self, fence: Fence) -> list[str]:
        """Follow one block."""
        if fence.language == "python" and fence.mark != FRAGMENT:
            return self._run_python(fence)
        if fence.language == "yaml" and fence.file:
            (self.folder / fence.file).write_text(fence.code, encoding="utf-8")
        if is_typed(fence):
            return self._type(fence)
        return []

    def _run_python(self, fence: Fence) -> list[str]:
        file = self.folder / (fence.file or f"line_{fence.line}.py")
        file.write_text(fence.code, encoding="utf-8")
        return self._run(fence, [sys.executable, "-W", "error", file.name])

    def _type(self, fence: Fence) -> list[str]:
        code = fence.code.replace(_PORT, f"127.0.0.1:{self.port}")
        complaints = self._run(fence, ["sh", "-ec", f"{_PREAMBLE}{self._exports}{code}"])
        lines = [line for line in code.splitlines() if line.startswith("export ")]
        self._exports += "".join(f"{line}\n" for line in lines)
        return complaints

    def _run(self, fence: Fence, command: list[str]) -> list[str]:
        done = subprocess.run(
            command,
            cwd=self.folder,
            env=surroundings(self.environment),
            capture_output=True,
            text=True,
            timeout=_PATIENCE,
            check=False,
        )
        if done.returncode == 0:
            return []
        return [f"line {fence.line}: left with {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}"]


def is_typed(fence: Fence) -> bool:
    """Whether a block is made of commands that a reader types beside a running gateway."""
    commands = fence.code.replace("\\\n", " ").splitlines()
    return fence.language == "sh" and all(each.startswith(_TYPED) for each in commands)


def needs_gateway(text: str) -> bool:
    """Whether a page has such commands."""
    return any(is_typed(fence) for fence in fences(text, "sh"))


def surroundings(more: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a reader: our programs first, and no gateway but the one that is named."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("TOOLCRIB_")}
    return {**own, "PATH": f"{BIN}{os.pathsep}{own.get('PATH', '')}", **more}


@contextmanager
def served(folder: Path, port: int) -> Generator[None]:
    """Run `toolcrib serve --demo` in a folder, as `make run` does."""
    log = folder / "log.txt"
    command = [BIN / "toolcrib", "serve", "--demo", "--port", str(port)]
    with (
        log.open("wb") as err,
        subprocess.Popen(
            command, cwd=folder, env=surroundings({}), stdout=subprocess.PIPE, stderr=err
        ) as process,
    ):
        try:
            assert process.stdout is not None
            # Its first line names the address; without a first line it has ended.
            first = process.stdout.readline()
            assert b"is listening on" in first, log.read_text(errors="replace")[-2000:]
            yield
        finally:
            process.terminate()
