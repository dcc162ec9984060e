"""The stage: servers are started on it, each once, and the cases to measure are gathered there."""

import json
import secrets
import sys
from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.asking import Ask, WrongAnswer, ask, rest_call
from bench.cores import Cores
from bench.hints.findings import Findings
from bench.process import NotStarted, Peer, started
from tests.parts.install import Missing
from tests.parts.ports import free_port

HERE = Path(__file__).resolve().parent
PORT = "{port}"
"""Stands in a command where its port belongs."""
MANY = 1_000_000
Key = tuple[str, str]
"""What is asked, and of whom."""


@dataclass(frozen=True)
class Case:
    """One thing to measure."""

    peer: Peer
    request: Ask
    most: int = MANY
    """The most connections it is measured with: one alone fills the wire with a long list."""
    seconds: float = 0.0
    """How long a round lasts at least, for who answers late."""


class Stage:
    """Starts servers that run until the stack ends, and keeps what is known of them."""

    def __init__(self, stack: ExitStack, folder: Path, cores: Cores) -> None:
        self._stack, self.folder, self.cores = stack, folder, cores
        self.peers: dict[str, Peer] = {}
        self.cases: dict[Key, Case] = {}
        self.notes: list[str] = []
        self.findings: Findings | None = None
        """What the robot found, if it ran."""
        self._keys: dict[str, str] = {}

    def start(
        self, name: str, command: Sequence[str], first: Ask, env: Mapping[str, str] | None = None
    ) -> int:
        """Start a server that answers `first` once it is there, and return its port."""
        port = free_port()
        given = [str(port) if word == PORT else word for word in command]
        running = started(name, given, port=port, first=first, cores=self.cores, folder=self.folder, env=env)
        self.peers[name] = self._stack.enter_context(running)
        return port

    def crib(
        self,
        name: str,
        config: str,
        first: Ask,
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
            whole = {"TOOLCRIB_HOME": str(home), "TOOLCRIB_ADMIN_KEY": admin, **(env or {})}
            port = self.start(
                name, [*command, "-c", str(HERE / "served" / config)], first.signed(admin), whole
            )
            self._keys[name] = _plain_key(port, admin, user)
        return self._keys[name]

    def add(self, what: str, name: str, request: Ask, most: int = MANY, seconds: float = 0.0) -> None:
        """Enter a case once its request is answered rightly."""
        peer = self.peers[name]
        ask(peer.port, request)
        self.cases[what, name] = Case(peer, request, most, seconds)

    @contextmanager
    def optional(self, who: str) -> Generator[None]:
        """Go on without a peer that cannot be had here, and say so; why is for the terminal alone."""
        try:
            yield
        except (Missing, NotStarted, WrongAnswer) as trouble:
            print(f"{who}: {trouble}", file=sys.stderr, flush=True)
            self.notes.append(f"{who} is left out: it could not be had or started here")


def _plain_key(port: int, admin: str, user: str | None) -> str:
    """Have a key made that is no operator's: its calls pass the whole policy."""
    wish = {"name": secrets.token_hex(8), "home": "bench", **({} if user is None else {"user": user})}
    body = json.dumps(wish).encode()
    wanted = Ask(path="/api/keys", headers=rest_call().headers, body=body, holds=b'"key":')
    return json.loads(ask(port, wanted.signed(admin)))["key"]
