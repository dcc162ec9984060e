"""Schemathesis sends every operation requests generated from our OpenAPI document and checks the answers."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.figures import figure
from tests.gateways import ADMIN, InProcessGateway, listening, open_gateway
from tests.parts import require

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.slow,
    pytest.mark.no_cover,
    pytest.mark.needs("schemathesis"),
    pytest.mark.check(42),
    pytest.mark.requirement("I5"),
]

EXAMPLES = figure(1, 500)
PHASES = figure("fuzzing", "examples,coverage,fuzzing,stateful")
PATIENCE = figure(300, 7200)
ROOT = Path(__file__).resolve().parents[3]
APP = "com.example.notes"
TOOL = {"name": "keep", "description": "Keeps a note.", "inputSchema": {"type": "object"}}
SERVER = {
    "transport": "stdio",
    "command": [sys.executable, "-ES", "-m", "tests.servers.echo"],
    "cwd": str(ROOT),
}
CONFIG = json.dumps(
    {
        "limits": {"per_user": None},
        "contexts": {"default": {"provider": "anthropic"}, "few": {"tools": []}},
        "mcp": {"servers": {"weather": SERVER}},
    }
)

ACCEPTED = ("2xx", "3xx", "401", "403", "404", "409", "422", "429", "5xx")
"""What a valid request may be answered with: done, or a refusal that depends on what the gateway holds."""
REJECTED = ("400", "401", "403", "404", "405", "406", "409", "413", "415", "422", "428", "429", "5xx")
ANSWERED = ("2xx", "3xx", "4xx", "502", "503", "504")
"""What is no fault of the gateway: that a tool or an app cannot be reached is an answer."""
BEYOND_OPENAPI = {
    "GET /api/usage": "`user` and `caller` exclude each other",
    "PUT /api/apps/{package}": "which addresses are allowed is a rule of the network",
    "PUT /api/users/{id}/session": "hardware that is described must be there",
    "GET /app-ws": "it takes a WebSocket handshake alone",
    "POST /mcp": "which headers a message needs depends on its method",
    "POST /contexts/{name}/mcp": "which headers a message needs depends on its method",
    "POST /api/tools/answer": "the message has the shape its provider gives it",
    "POST /api/tools/apps/{package}/tool": "the arguments have the shape the tool gives them",
    "POST /api/tools/execute": "the arguments have the shape the tool gives them",
    "POST /api/apps/{package}/tools": "`required` of a schema must name its properties",
}
"""Operations whose valid requests OpenAPI cannot describe in full, so that 400 counts as an answer too."""


def settings(folder: Path, app_key: str) -> Path:
    """Write the config of Schemathesis: a credential for each scheme, and the statuses that are no fault."""
    schemes = {"key": {"bearer": ADMIN}, "app": {"bearer": f"{APP}:{app_key}"}, "page": {"api_key": "none"}}
    checks = {
        "positive_data_acceptance": ACCEPTED,
        "negative_data_rejection": REJECTED,
        "not_a_server_error": ANSWERED,
    }
    lines = [f"hooks = {json.dumps(str(Path(__file__).with_name('openapi_hooks.py')))}"]
    lines += [f"auth.openapi.{scheme} = {_table(given)}" for scheme, given in schemes.items()]
    lines += [f"checks.{name} = {_table({'expected-statuses': known})}" for name, known in checks.items()]
    lines.append('generation.codec = "euc_jis_2004"')
    for name in BEYOND_OPENAPI:
        lines += ["[[operations]]", f"include-name = {json.dumps(name)}"]
        known = _table({"expected-statuses": [*ACCEPTED, "400"]})
        lines.append(f"checks.positive_data_acceptance = {known}")
    # The stream stays open, so that each request lasts as long as the client waits.
    lines += ["[[operations]]", 'include-name = "GET /api/users/{id}/events"', "request-timeout = 1"]
    path = folder / "schemathesis.toml"
    path.write_text("\n".join(lines) + "\n")
    return path


def _table(given: dict[str, Any]) -> str:
    """Spell an inline table of TOML; its values are spelled as in JSON."""
    return "{ " + ", ".join(f"{key} = {json.dumps(value)}" for key, value in given.items()) + " }"


async def furnish(gateway: InProcessGateway) -> str:
    """Store what the examples of the description name; the answer is the key of the app."""
    made = await gateway.request("PUT", f"/api/apps/{APP}", body={"name": "Notes"})
    assert made.status == 201, made.body
    defined = await gateway.request("POST", f"/api/apps/{APP}/tools", body={"tools": [TOOL]})
    assert defined.status == 200, defined.body
    await gateway.begin("ann")
    installed = await gateway.request("PUT", f"/api/users/ann/apps/{APP}")
    assert installed.status == 201, installed.body
    await gateway.key("reader")
    return made.json["apiKey"]


async def test_every_operation_keeps_its_description(tmp_path: Path) -> None:
    python = require("schemathesis")
    async with open_gateway(CONFIG) as gateway, listening(gateway.server) as url:
        config = settings(tmp_path, await furnish(gateway))
        command = [str(python.parent / "st"), "--config-file", str(config), "run", f"{url}/openapi.json"]
        options = ["--checks", "all", "--max-examples", str(EXAMPLES), "--phases", PHASES]
        more = ["--request-timeout", "30", "--seed", "42", "--no-shrink", "--suppress-health-check", "all"]
        with anyio.fail_after(PATIENCE):
            done = await anyio.run_process(
                [*command, *options, *more],
                check=False,
                cwd=tmp_path,
                env={**os.environ, "NO_COLOR": "1"},
            )
        assert (await gateway.call("get_datetime")).status == 200
    said = done.stdout.decode()
    assert done.returncode == 0, said[-8000:]
    print(said[said.find("SUMMARY") :])
