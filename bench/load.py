"""The load: wrk where it is to be had, else a client of our own, as a process on a core of its own."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.asking import FIRST_ID, HOST, Ask
from bench.cores import Cores
from tests.parts.install import ROOT, Missing
from tests.parts.registry import take

_SCRIPT = Path(__file__).resolve().parent / "load.lua"


@dataclass(frozen=True, kw_only=True)
class Driven:
    """What came of it; latencies in milliseconds."""

    calls: int
    seconds: float
    p50: float
    p99: float
    failures: int
    """Answers other than 2xx, and connections that broke."""


Drive = Callable[[int, Ask, int, float], Driven]
"""Sends a request to a port, over so many connections, for so many seconds."""


@dataclass(frozen=True)
class Load:
    """A way to load a server."""

    name: str
    drive: Drive
    note: str = ""


def find_load(cores: Cores, *, own: bool = False) -> Load:
    """Return the best load there is."""
    if own:
        return Load("own client", _own(cores))
    try:
        return Load("wrk", _wrk(cores, str(take("wrk"))))
    except Missing as missing:
        return Load("own client", _own(cores), f"wrk is missing, our own client takes its place: {missing}")


def _wrk(cores: Cores, program: str) -> Drive:
    def drive(port: int, request: Ask, connections: int, seconds: float) -> Driven:
        length = f"{max(round(seconds), 1)}s"
        command = [program, "-t1", f"-c{connections}", f"-d{length}", "-s", str(_SCRIPT)]
        env = {
            "BENCH_METHOD": request.method,
            "BENCH_FIRST_ID": FIRST_ID,
            "BENCH_HEADERS": "\n".join(f"{name}: {value}" for name, value in request.headers.items()),
        }
        if request.body:
            env["BENCH_BODY"] = request.body.decode()
        return _run(cores.for_load([*command, f"http://{HOST}:{port}{request.path}"]), env, b"")

    return drive


def _own(cores: Cores) -> Drive:
    def drive(port: int, request: Ask, connections: int, seconds: float) -> Driven:
        command = [sys.executable, "-m", "bench.own", str(port), str(connections), str(seconds)]
        return _run(cores.for_load(command), {}, request.raw(port))

    return drive


def _run(command: Sequence[str], env: Mapping[str, str], given: bytes) -> Driven:
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, **env}, input=given, capture_output=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"the load failed: {done.stderr.decode(errors='replace')[-500:]}")
    return Driven(**json.loads(done.stdout.splitlines()[-1]))
