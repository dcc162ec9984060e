"""The parts of the bench: which servers each sets on the stage, and what it asks of them."""

import logging
import sys
from collections.abc import Callable

import anyio

from bench.asking import Ask, ask, mcp_call, plain_bytes, rest_call, rest_list, rest_search
from bench.crowd import users
from bench.gateways import PACKAGES, calls, lists
from bench.hints.run import run_robot
from bench.stage import HERE, MANY, PORT, Stage
from tests.parts.registry import take

_FEW = ("toolcrib", "small.yaml", rest_call())
_MANY = ("toolcrib-10000", "large.yaml", rest_call())


def rest(stage: Stage) -> None:
    """A function of ours over REST, beside the bare sending of such an answer."""
    _beside_echo(stage, "rest", rest_call().signed(stage.crib(*_FEW)), crib="toolcrib", echo="echo")


def mcp(stage: Stage) -> None:
    """The same function over MCP, beside the bare echo and the servers of others."""
    request = mcp_call()
    _beside_echo(stage, "mcp", request.signed(stage.crib(*_FEW)), crib="toolcrib", echo="echo-mcp")
    stage.start("sdk", [sys.executable, str(HERE / "servers/sdk.py"), PORT], request)
    stage.add("mcp", "sdk", request)
    with stage.optional("FastMCP's server"):
        stage.start("fastmcp", [str(take("fastmcp")), str(HERE / "servers/fast.py"), PORT, PACKAGES], request)
        stage.add("mcp", "fastmcp", request)


def listing(stage: Stage) -> None:
    """Half of ten thousand tools over REST, beside the bare sending of their bytes."""
    request = rest_list().signed(stage.crib(*_MANY))
    _beside_echo(stage, "list", request, crib="toolcrib-10000", echo="echo-list", most=16)


def lookup(stage: Stage) -> None:
    """One call among ten thousand tools, and one among a few."""
    for served in (_FEW, _MANY):
        stage.add("rest", served[0], rest_call().signed(stage.crib(*served)))


def search(stage: Stage) -> None:
    """A search among ten thousand tools."""
    stage.add("search", _MANY[0], rest_search().signed(stage.crib(*_MANY)), 16)


def contract(stage: Stage) -> None:
    """The same function by a gateway without the tool contract, and one that gives its own hints."""
    bare = stage.crib("toolcrib-bare", *_FEW[1:], program=(str(HERE / "servers/bare.py"),))
    stage.add("rest", "toolcrib-bare", rest_call().signed(bare))
    key = stage.crib(*_FEW)
    stage.add("rest", "toolcrib", rest_call().signed(key))
    stage.add("hinted", "toolcrib", rest_call("hinted_echo").signed(key))
    stage.add("hinted", "toolcrib-bare", rest_call("hinted_echo").signed(bare))


def hints(stage: Stage) -> None:
    """A robot that follows what the hints of a gateway suggest, in this process; it measures no time."""
    logging.getLogger("toolcrib").setLevel(logging.ERROR)
    stage.findings = anyio.run(run_robot, stage.folder)
    stage.notes += stage.findings.notes


PARTS: dict[str, Callable[[Stage], None]] = {
    "rest": rest,
    "mcp": mcp,
    "list": listing,
    "lookup": lookup,
    "search": search,
    "contract": contract,
    "users": users,
    "gateways": calls,
    "tools": lists,
    "hints": hints,
}


def _beside_echo(stage: Stage, what: str, request: Ask, *, crib: str, echo: str, most: int = MANY) -> None:
    """Measure a request of ours beside the bare sending of an answer of the same size."""
    # The first answers are longer than the later ones: they tell of no earlier calls.
    size = len([ask(stage.peers[crib].port, request) for _ in range(3)][-1])
    bare = plain_bytes(request)
    stage.start(echo, [sys.executable, str(HERE / "servers/echo.py"), PORT, str(size)], bare)
    stage.add(what, echo, bare, most)
    stage.add(what, crib, request, most)
