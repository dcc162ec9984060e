"""Load generator: wrk, or the Python load client if wrk is missing, as a process on its own core."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.cores import Cores
from bench.requests import FIRST_ID, HOST, Request
from tests.parts.install import ROOT, Missing
from tests.parts.registry import take

_SCRIPT = Path(__file__).resolve().parent / "wrk_script.lua"


@dataclass(frozen=True, kw_only=True)
class LoadResult:
    """Result of one run; latencies in milliseconds."""

    calls: int
    seconds: float
    p50: float
    p99: float
    failures: int
    """Responses with a status other than 2xx, and broken connections."""


RunLoad = Callable[[int, Request, int, float], LoadResult]
"""Takes port, request, number of connections and seconds; repeats the request on all connections."""


@dataclass(frozen=True)
class LoadGenerator:
    """A program that applies load to a server."""

    name: str
    run_load: RunLoad
    note: str = ""


def find_load_generator(cores: Cores, *, own: bool = False) -> LoadGenerator:
    """Return wrk if it is available and `own` is not set, else the Python load client."""
    if own:
        return LoadGenerator("own client", _own_client(cores))
    try:
        return LoadGenerator("wrk", _wrk(cores, str(take("wrk"))))
    except Missing as error:
        return LoadGenerator(
            "own client",
            _own_client(cores),
            f"the Python load client is used, because wrk is missing: {error}",
        )


def _wrk(cores: Cores, program: str) -> RunLoad:
    def run_load(port: int, request: Request, connections: int, seconds: float) -> LoadResult:
        duration = f"{max(round(seconds), 1)}s"
        command = [program, "-t1", f"-c{connections}", f"-d{duration}", "-s", str(_SCRIPT)]
        env = {
            "BENCH_METHOD": request.method,
            "BENCH_FIRST_ID": FIRST_ID,
            "BENCH_HEADERS": "\n".join(f"{name}: {value}" for name, value in request.headers.items()),
        }
        if request.body:
            env["BENCH_BODY"] = request.body.decode()
        return _run(cores.for_load([*command, f"http://{HOST}:{port}{request.path}"]), env, b"")

    return run_load


def _own_client(cores: Cores) -> RunLoad:
    def run_load(port: int, request: Request, connections: int, seconds: float) -> LoadResult:
        command = [sys.executable, "-m", "bench.load_client", str(port), str(connections), str(seconds)]
        return _run(cores.for_load(command), {}, request.encode(port))

    return run_load


def _run(command: Sequence[str], env: Mapping[str, str], stdin: bytes) -> LoadResult:
    completed = subprocess.run(
        command, cwd=ROOT, env={**os.environ, **env}, input=stdin, capture_output=True, check=False
    )
    if completed.returncode:
        raise RuntimeError(f"the load generator failed: {completed.stderr.decode(errors='replace')[-500:]}")
    return LoadResult(**json.loads(completed.stdout.splitlines()[-1]))
