"""The stage: servers are started on it, each once, and the cases to measure are gathered there."""

import json
import secrets
import sys
from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.cores import Cores
from bench.requests import Request, UnexpectedResponse, rest_call, send
from bench.server_process import ServerProcess, StartError, run_server
from tests.parts.install import Missing
from tests.parts.ports import free_port

HERE = Path(__file__).resolve().parent
PORT = "{port}"
"""Stands in a command where its port belongs."""
UNLIMITED = 1_000_000
CaseId = tuple[str, str]
"""What is asked, and of whom."""


@dataclass(frozen=True)
class Case:
    """One thing to measure."""

    server: ServerProcess
    request: Request
    max_connections: int = UNLIMITED
    """The most connections it is measured with: one alone fills the wire with a long list."""
    seconds: float = 0.0
    """How long a round lasts at least, for who answers late."""


class RunningServers:
    """Starts servers that run until the stack ends, and keeps what is known of them."""

    def __init__(self, stack: ExitStack, folder: Path, cores: Cores) -> None:
        self._stack, self.folder, self.cores = stack, folder, cores
        self.processes: dict[str, ServerProcess] = {}
        self.cases: dict[CaseId, Case] = {}
        self.notes: list[str] = []
        self._keys: dict[str, str] = {}

    def start(
        self, name: str, command: Sequence[str], first: Request, env: Mapping[str, str] | None = None
    ) -> int:
        """Start a server that answers `first` once it is there, and return its port."""
        port = free_port()
        arguments = [str(port) if argument == PORT else argument for argument in command]
        process = run_server(
            name, arguments, port=port, first=first, cores=self.cores, folder=self.folder, env=env
        )
        self.processes[name] = self._stack.enter_context(process)
        return port

    def start_toolcrib(
        self,
        name: str,
        config: str,
        first: Request,
        env: Mapping[str, str] | None = None,
        *,
        program: Sequence[str] = ("-m", "toolcrib"),
        user: str | None = None,
        python: str = sys.executable,
    ) -> str:
        """Start a gateway of ours, if it does not run yet, and return a key for it, or a user's.

        `python` is another environment's interpreter where another checkout is measured.
        """
        if name not in self._keys:
            home = self.folder / name
            home.mkdir()
            admin = secrets.token_urlsafe(32)
            command = [python, *program, "serve", "--port", PORT]
            full_env = {"TOOLCRIB_HOME": str(home), "TOOLCRIB_ADMIN_KEY": admin, **(env or {})}
            port = self.start(
                name, [*command, "-c", str(HERE / "configs" / config)], first.with_key(admin), full_env
            )
            self._keys[name] = _create_user_key(port, admin, user)
        return self._keys[name]

    def add_case(
        self, what: str, name: str, request: Request, max_connections: int = UNLIMITED, seconds: float = 0.0
    ) -> None:
        """Enter a case once its request is answered rightly."""
        server = self.processes[name]
        send(server.port, request)
        self.cases[what, name] = Case(server, request, max_connections, seconds)

    @contextmanager
    def optional(self, name: str) -> Generator[None]:
        """Go on without a peer that cannot be had here, and say so; why is for the terminal alone."""
        try:
            yield
        except (Missing, StartError, UnexpectedResponse) as error:
            print(f"{name}: {error}", file=sys.stderr, flush=True)
            self.notes.append(f"{name} is left out: it could not be had or started here")


def _create_user_key(port: int, admin: str, user: str | None) -> str:
    """Have a key made that is no operator's: its calls pass the whole policy."""
    fields = {"name": secrets.token_hex(8), "home": "bench", **({} if user is None else {"user": user})}
    body = json.dumps(fields).encode()
    request = Request(path="/api/keys", headers=rest_call().headers, body=body, expected=b'"key":')
    return json.loads(send(port, request.with_key(admin)))["key"]
