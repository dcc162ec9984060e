"""The servers on stage: how each is started, and the requests that are measured on it."""

import json
import secrets
import sys
import sysconfig
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from bench.asking import Ask, ask, mcp_call, plain_bytes, rest_call, rest_list, upstream_call
from bench.cores import Cores
from bench.process import Peer, answered, started
from tests.parts.place import Missing
from tests.parts.ports import free_port
from tests.parts.shelf import take

HERE = Path(__file__).resolve().parent
PARTS = ("rest", "mcp", "list", "lookup", "servers")
Key = tuple[str, str]
"""What is asked, and of whom."""


@dataclass(frozen=True)
class Case:
    """One thing to measure."""

    peer: Peer
    request: Ask


class Stage:
    """Starts what the wanted parts need, each server once, and gathers the cases."""

    def __init__(self, stack: ExitStack, folder: Path, cores: Cores) -> None:
        self._stack, self._folder, self._cores = stack, folder, cores
        self.peers: dict[str, Peer] = {}
        self.cases: dict[Key, Case] = {}
        self.notes: list[str] = []
        self._keys: dict[str, str] = {}

    def set_up(self, parts: Sequence[str]) -> None:
        """Bring up everything for these parts."""
        if {"rest", "mcp", "lookup"} & set(parts):
            self._crib("toolcrib", "small.yaml")
        if {"list", "lookup"} & set(parts):
            self._crib("toolcrib-10000", "large.yaml")
        if "rest" in parts:
            self._beside_echo("rest", "toolcrib", "echo", rest_call())
        for name in ("toolcrib", "toolcrib-10000") if "lookup" in parts else ():
            self._add("rest", name, rest_call().signed(self._keys[name]))
        if "mcp" in parts:
            self._mcp()
        if "list" in parts:
            self._beside_echo("list", "toolcrib-10000", "echo-list", rest_list())
        if "servers" in parts:
            self._servers()

    def _servers(self) -> None:
        """Three ways to the same echo, through one gateway; the servers run where the load does."""
        program, core = str(HERE / "servers/upstream.py"), str(self._cores.load or "")
        self._start("upstream", [sys.executable, program], upstream_call(), env={"CORE": core})
        web = str(self.peers["upstream"].port)
        env = {"PYTHON": sys.executable, "UPSTREAM": program, "CORE": core, "WEB_PORT": web}
        self._crib("toolcrib-servers", "servers.yaml", env)
        for what, tool in (("function", "echo_tool:echo"), ("pipe", "pipe:echo"), ("web", "web:echo")):
            request = rest_call(tool).signed(self._keys["toolcrib-servers"])
            answered(self.peers["toolcrib-servers"].port, request)
            self._add(what, "toolcrib-servers", request)

    def _crib(self, name: str, config: str, more: dict[str, str] | None = None) -> None:
        home = self._folder / name
        home.mkdir()
        admin = secrets.token_urlsafe(32)
        command = [sys.executable, "-m", "toolcrib", "serve", "-c", str(HERE / "served" / config)]
        env = {"TOOLCRIB_HOME": str(home), "TOOLCRIB_ADMIN_KEY": admin, **(more or {})}
        self._start(name, command, rest_call("echo_tool:echo").signed(admin), option="--port", env=env)
        self._keys[name] = self._plain_key(self.peers[name].port, admin)

    def _plain_key(self, port: int, admin: str) -> str:
        """Have a key made that is no operator's: its calls pass the whole policy."""
        body = json.dumps({"name": "bench", "home": "half"}).encode()
        wanted = Ask(path="/api/keys", headers=rest_call().headers, body=body, holds=b'"key":')
        return json.loads(ask(port, wanted.signed(admin)))["key"]

    def _beside_echo(self, what: str, crib: str, echo: str, request: Ask) -> None:
        """Measure a request of ours beside the bare sending of an answer of the same size."""
        signed = request.signed(self._keys[crib])
        # The first answers are longer than the later ones: they tell of no earlier calls.
        size = len([ask(self.peers[crib].port, signed) for _ in range(3)][-1])
        bare = plain_bytes(signed)
        self._start(echo, [sys.executable, str(HERE / "servers/echo.py")], bare, after=(str(size),))
        self._add(what, echo, bare)
        self._add(what, crib, signed)

    def _mcp(self) -> None:
        self._start("sdk", [sys.executable, str(HERE / "servers/sdk.py")], mcp_call())
        self._add("mcp", "sdk", mcp_call())
        self._add("mcp", "toolcrib", mcp_call().signed(self._keys["toolcrib"]))
        try:
            python = take("fastmcp")
        except Missing as missing:
            self.notes.append(f"FastMCP is left out: {missing}")
            return
        packages = sysconfig.get_path("platlib")
        self._start("fastmcp", [str(python), str(HERE / "servers/fast.py")], mcp_call(), after=(packages,))
        self._add("mcp", "fastmcp", mcp_call())

    def _start(
        self,
        name: str,
        command: Sequence[str],
        first: Ask,
        *,
        option: str = "",
        after: Sequence[str] = (),
        env: dict[str, str] | None = None,
    ) -> None:
        port = free_port()
        given = [*command, *([option] if option else []), str(port), *after]
        running = started(
            name, given, port=port, first=first, cores=self._cores, folder=self._folder, env=env
        )
        self.peers[name] = self._stack.enter_context(running)

    def _add(self, what: str, name: str, request: Ask) -> None:
        """Enter a case once its request is answered rightly."""
        peer = self.peers[name]
        ask(peer.port, request)
        self.cases[what, name] = Case(peer, request)
