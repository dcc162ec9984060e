"""`toolcrib apps`: listed, and their tools published, on a running gateway or in the store."""

import json
from pathlib import Path
from textwrap import dedent
from urllib.request import Request, urlopen

import anyio
import pytest

from tests.cli.conftest import Shell
from tests.cli.processes import Serving
from tests.texts import matches
from toolcrib.crib import Crib
from toolcrib.model import LIBRARY

PACKAGE = "com.example.reminder"
BODY = {"name": "Reminders", "hardwareRequirements": [{"type": "DISPLAY", "level": "REQUIRED"}]}
MODULE = f"""
    from typing import Annotated
    from pydantic import Field
    from toolcrib.sdk import AppServer

    app = AppServer(package="{PACKAGE}", api_key="k")

    @app.tool(activation_phrases=["remind me"], category="productivity")
    def add_reminder(text: Annotated[str, Field(description="What to remind of")]) -> str:
        '''Remind the user of something.'''
        return text
"""
FAULTY = f"""
    from toolcrib.sdk import AppServer, create_tool

    app = AppServer(package="{PACKAGE}", api_key="k")
    given = dict(when=dict(type="date", description="When"), who=dict(type="string"))
    app.register_tool(create_tool(name="add", description="Add.", parameters=given, handler=print))
"""
SEVERAL = """
    from toolcrib.sdk import AppServer

    one = AppServer(package="com.example.one", api_key="k")
    two = AppServer(package="com.example.two", api_key="k")
"""


def write(name: str, text: str) -> str:
    """Write a module where the shell is; a name is loaded once in a process, so each test has its own."""
    Path(f"{name}.py").write_text(dedent(text))
    return name


def stored() -> None:
    """Add the app to the store of the folder the shell is in."""

    async def add() -> None:
        async with Crib.from_config("toolcrib.yaml") as crib:
            await crib.runtime.console.apps.put(PACKAGE, BODY, LIBRARY)

    anyio.run(add)


@pytest.mark.requirement("D2")
@pytest.mark.slow
def test_published_and_listed_in_the_store(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "toolcrib.yaml").write_text("store: sqlite:///apps.db\n")
    none = shell("apps", "list")
    assert (none.code, none.out) == (0, "")
    assert "No apps are registered" in none.err
    stored()
    done = shell("apps", "publish", write("app_in_store", MODULE))
    assert (done.code, done.err) == (0, "")
    assert matches("cli", "published and listed in the store", done.out, package=PACKAGE)
    assert shell("apps", "list").rows == [
        [PACKAGE, "Reminders", "background", "DISPLAY", "2", "add-reminder"]
    ]
    (app,) = shell("apps", "list", "--json").json["apps"]
    assert (app["packageName"], app["tools"]) == (PACKAGE, ["add-reminder"])


@pytest.mark.slow
def test_faults_are_named_by_path_and_nothing_is_changed(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "toolcrib.yaml").write_text("store: sqlite:///apps.db\n")
    stored()
    module = write("app_with_faults", FAULTY)
    refused = shell("apps", "publish", f"{module}:app")
    assert (refused.code, refused.out) == (1, "")
    assert matches("cli", "faults are named by path and nothing is changed", refused.err)
    error = shell("apps", "publish", module, "--json")
    assert (error.code, error.json["error"]["code"]) == (1, "INVALID_REQUEST")
    assert len(error.json["error"]["details"]["faults"]) == 2
    assert shell("apps", "list").rows[0][-1] == "none"


@pytest.mark.parametrize(
    "name, text, suffix, said",
    [
        ("apps_none", "x = 1", "", "has no AppServer; create one"),
        ("apps_several", SEVERAL, "", "several apps; name one, such as apps_several:one"),
        ("apps_other", SEVERAL, ":three", "no AppServer called three; it has one, two"),
        ("apps_broken", "1 / 0", "", "does not import: ZeroDivisionError"),
    ],
)
def test_modules_without_the_app(shell: Shell, name: str, text: str, suffix: str, said: str) -> None:
    refused = shell("apps", "publish", write(name, text) + suffix)
    assert (refused.code, refused.out) == (2, "")
    assert said in refused.err


@pytest.mark.slow
def test_an_app_that_was_not_added(shell: Shell) -> None:
    missing = shell("apps", "publish", write("app_not_added", MODULE))
    assert (missing.code, missing.out) == (1, "")
    assert matches("cli", "an app that was not added", missing.err, package=PACKAGE)


@pytest.mark.slow
def test_on_a_running_gateway(remote: Shell, gateway: Serving) -> None:
    headers = {"Authorization": f"Bearer {gateway.admin_key}", "Content-Type": "application/json"}
    body = json.dumps(BODY).encode()
    address = f"{gateway.url}/api/apps/{PACKAGE}"
    with urlopen(Request(address, body, headers, method="PUT")) as response:
        assert response.status == 201
    done = remote("apps", "publish", write("app_remote", MODULE), "--json")
    assert (done.code, done.json["tools"]) == (0, ["add-reminder"])
    assert [PACKAGE, "add-reminder"] in [[row[0], row[-1]] for row in remote("apps", "list").rows]
    faulty = remote("apps", "publish", write("app_remote_faulty", FAULTY))
    assert faulty.code == 1
    assert matches("cli", "on a running gateway", faulty.err)
