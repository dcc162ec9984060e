"""A gateway as a process, as a user runs it."""

import os
import re
import signal
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from subprocess import DEVNULL, PIPE

import anyio
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream

ADMIN_KEY = "admin-key-of-a-test-and-nothing-else"
_PATIENCE = 60


@dataclass(frozen=True)
class GatewayProcess:
    """Where it listens, and the process behind it."""

    url: str
    process: Process

    @property
    def admin(self) -> dict[str, str]:
        """The operator's headers."""
        return {"Authorization": f"Bearer {ADMIN_KEY}"}

    async def kill(self) -> None:
        """End it without a word, as a power cut would."""
        os.kill(self.process.pid, signal.SIGKILL)
        await self.process.wait()


@asynccontextmanager
async def gateway_process(
    home: Path,
    config: str = "",
    *,
    env: Mapping[str, str] | None = None,
    demo: bool = True,
    log: Path | None = None,
    python: str | Path = sys.executable,
) -> AsyncGenerator[GatewayProcess, None]:
    """Run `toolcrib serve` on a port of its own until the block ends; `log` is where its log goes."""
    path = anyio.Path(home / "toolcrib.yaml")
    await path.write_text(config)
    command = [str(python), "-m", "toolcrib", "serve", "-c", str(path), "--port", "0"]
    environment = {**os.environ, "TOOLCRIB_HOME": str(home), "TOOLCRIB_ADMIN_KEY": ADMIN_KEY, **(env or {})}
    with ExitStack() as stack:
        log_file = None if log is None else stack.enter_context(log.open("ab"))
        words = [*command, *(["--demo"] if demo else [])]
        process = await anyio.open_process(
            words, stdin=DEVNULL, stdout=PIPE, stderr=log_file, env=environment
        )
    try:
        assert process.stdout is not None
        with anyio.fail_after(_PATIENCE):
            line = await BufferedByteReceiveStream(process.stdout).receive_until(b"\n", 4096)
        found = re.search(r"http://\S+", line.decode())
        assert found is not None, line
        yield GatewayProcess(found[0], process)
    finally:
        with anyio.CancelScope(shield=True):
            if process.returncode is None:
                process.terminate()
            with anyio.move_on_after(_PATIENCE):
                await process.wait()
            if process.returncode is None:
                # Seen once: greenlet looped while the interpreter shut down. Other tests judge how it ends.
                process.kill()
            await process.aclose()
