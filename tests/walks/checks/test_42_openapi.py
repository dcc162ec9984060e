"""Schemathesis asks every operation of our OpenAPI description: nobody gets a 5xx, or in without a key."""

import json
import os
from pathlib import Path

import anyio
import pytest

from tests.doors import ADMIN, doors, listening
from tests.figures import figure
from tests.parts import require
from toolcrib import create_tool

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.slow,
    pytest.mark.no_cover,
    pytest.mark.needs("schemathesis"),
    pytest.mark.check(42),
    pytest.mark.requirement("I5"),
]

EXAMPLES = figure(1, 500)
PHASES = figure("fuzzing", "coverage,fuzzing")
NOT_YET = "positive_data_acceptance"
"""The description says less of texts than routes demand: no empty ones, known time zones and the like."""
PATIENCE = figure(300, 7200)
CONFIG = "limits: {per_user: null}\ncontexts: {few: {tools: []}}"


@create_tool(category="query")
async def hello() -> str:
    """Say hello."""
    return "hello"


async def test_every_operation_keeps_its_description(tmp_path: Path) -> None:
    python = require("schemathesis")
    settings = tmp_path / "schemathesis.toml"
    settings.write_text(f"headers = {{ Authorization = {json.dumps(f'Bearer {ADMIN}')} }}\n")
    async with doors(CONFIG, tools=[hello]) as crib, listening(crib.server) as url:
        await crib.begin("ann")
        command = [str(python.parent / "st"), "--config-file", str(settings), "run", f"{url}/openapi.json"]
        options = ["--checks", "all", "--exclude-checks", NOT_YET, "--max-examples", str(EXAMPLES)]
        more = ["--phases", PHASES, "--request-timeout", "30", "--seed", "42", "--no-shrink"]
        with anyio.fail_after(PATIENCE):
            done = await anyio.run_process(
                [*command, *options, *more, "--suppress-health-check", "all"],
                check=False,
                cwd=tmp_path,
                env={**os.environ, "NO_COLOR": "1"},
            )
        assert (await crib.call("hello")).status == 200
    said = done.stdout.decode()
    assert done.returncode == 0, said[-8000:]
    print(said[said.find("SUMMARY") :])
