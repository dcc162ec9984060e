"""Starts the servers under test, each once, and collects the cases to measure."""

import json
import secrets
import sys
from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.cores import Cores
from bench.hints.findings import Findings
from bench.requests import Request, UnexpectedResponse, rest_call, send
from bench.server_process import ServerProcess, StartError, run_server
from tests.parts.install import Missing
from tests.parts.ports import free_port

HERE = Path(__file__).resolve().parent
PORT = "{port}"
"""Placeholder for the port in a command."""
UNLIMITED = 1_000_000
CaseId = tuple[str, str]
"""The kind of request, and the name of the server."""


@dataclass(frozen=True)
class Case:
    """A request to a server whose throughput, latency and CPU time are measured."""

    server: ServerProcess
    request: Request
    max_connections: int = UNLIMITED
    """Maximum number of connections: a few of them saturate the server when responses are long lists."""
    seconds: float = 0.0
    """Minimum duration of a round, for servers that respond slowly."""


class RunningServers:
    """The running servers, which stop when the exit stack closes, and the cases that use them."""

    def __init__(self, stack: ExitStack, folder: Path, cores: Cores) -> None:
        self._stack, self.folder, self.cores = stack, folder, cores
        self.processes: dict[str, ServerProcess] = {}
        self.cases: dict[CaseId, Case] = {}
        self.notes: list[str] = []
        self.findings: Findings | None = None
        """Findings of the robot that follows hints, if it ran."""
        self._keys: dict[str, str] = {}

    def start(
        self, name: str, command: Sequence[str], first: Request, env: Mapping[str, str] | None = None
    ) -> int:
        """Start a server, wait until it responds to `first`, and return its port."""
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
        """Start Toolcrib unless it runs already, and return an API key for it, which may be a user's.

        `python` is the interpreter of the checkout to measure.
        """
        if name not in self._keys:
            home = self.folder / name
            home.mkdir()
            admin_key = secrets.token_urlsafe(32)
            command = [python, *program, "serve", "--port", PORT]
            full_env = {"TOOLCRIB_HOME": str(home), "TOOLCRIB_ADMIN_KEY": admin_key, **(env or {})}
            port = self.start(
                name, [*command, "-c", str(HERE / "configs" / config)], first.with_key(admin_key), full_env
            )
            self._keys[name] = _create_user_key(port, admin_key, user)
        return self._keys[name]

    def add_case(
        self, kind: str, name: str, request: Request, max_connections: int = UNLIMITED, seconds: float = 0.0
    ) -> None:
        """Add a case after checking that its request returns the expected response."""
        server = self.processes[name]
        send(server.port, request)
        self.cases[kind, name] = Case(server, request, max_connections, seconds)

    @contextmanager
    def optional(self, name: str) -> Generator[None]:
        """Continue without a server that is not available.

        The result names it; the reason goes to stderr only, as it may contain paths of this machine.
        """
        try:
            yield
        except (Missing, StartError, UnexpectedResponse) as error:
            print(f"{name}: {error}", file=sys.stderr, flush=True)
            self.notes.append(f"{name} is left out: it could not be installed or started")


def _create_user_key(port: int, admin_key: str, user: str | None) -> str:
    """Create a key without operator rights, so that its calls pass the whole policy."""
    fields = {"name": secrets.token_hex(8), "home": "bench", **({} if user is None else {"user": user})}
    body = json.dumps(fields).encode()
    request = Request(path="/api/keys", headers=rest_call().headers, body=body, expected=b'"key":')
    return json.loads(send(port, request.with_key(admin_key)))["key"]
