"""`tools`, `call` and `explain` for a user with apps: on a running gateway, and in process on its store."""

import json
import urllib.request
from collections.abc import Callable
from typing import Any

import pytest

from tests.cli.conftest import Shell
from tests.cli.processes import PATIENCE, Serving
from tests.texts import matches

pytestmark = pytest.mark.slow
REMINDER, MUSIC = "com.toolcrib.reminder", "com.toolcrib.music"
ADD, PLAY = f"{REMINDER}:add_reminder", f"{MUSIC}:play_song"
Ask = Callable[..., Any]


@pytest.fixture
def ask(gateway: Serving) -> Ask:
    """Send a request to the gateway and return its answer."""

    def send(method: str, path: str, body: Any = None) -> Any:
        request = urllib.request.Request(
            gateway.url + path,
            None if body is None else json.dumps(body).encode(),
            {"Authorization": f"Bearer {gateway.admin_key}", "Content-Type": "application/json"},
            method=method,
        )
        with urllib.request.urlopen(request, timeout=PATIENCE) as response:
            return json.load(response)

    return send


def why(remote: Shell, name: str, *more: str) -> str:
    done = remote("explain", name, *more)
    assert done.code == 0, done.err
    return done.out.splitlines()[1]


def apps_of(done: Any) -> set[str]:
    return {row[0] for row in done.rows if row[0].startswith("com.")}


@pytest.mark.requirement("D3", "D4", "D13")
def test_explain_names_each_reason_why_a_tool_is_not_there(remote: Shell, ask: Ask) -> None:
    assert matches("cli", "explain names each reason why a tool is not there", why(remote, ADD), add=ADD)
    absent = why(remote, ADD, "--user", "ann")
    assert matches("cli", "explain names each reason why a tool is not there 2", absent, add=ADD)
    ask("PUT", "/api/users/ann/session", {"device": "Even Realities G1"})
    assert matches(
        "cli",
        "explain names each reason why a tool is not there 3",
        why(remote, ADD, "--user", "ann"),
        add=ADD,
        reminder=REMINDER,
    )
    for package in (REMINDER, MUSIC):
        ask("PUT", f"/api/users/ann/apps/{package}", {})
    assert matches(
        "cli",
        "explain names each reason why a tool is not there 4",
        why(remote, PLAY, "--user", "ann"),
        play=PLAY,
    )
    ask("PUT", "/api/users/ann/tools/add_reminder/disabled")
    assert matches(
        "cli",
        "explain names each reason why a tool is not there 5",
        why(remote, ADD, "--user", "ann"),
        add=ADD,
    )
    ask("DELETE", "/api/users/ann/tools/add_reminder/disabled")
    lines = remote("explain", ADD, "--user", "ann").out.splitlines()
    assert matches("cli", "explain names each reason why a tool is not there 6", lines[0], add=ADD)
    assert any(" > activate > " in line and line.endswith(f" > {REMINDER}") for line in lines)
    assert f"From: {REMINDER}, app source, up" in lines
    found = ask("GET", f"/api/explain?name={PLAY}&user=ann")
    assert (found["visible"], found["origin"]["state"]) == (False, "up")


@pytest.mark.requirement("D3", "D4")
def test_tools_and_call_for_a_user(
    remote: Shell, ask: Ask, gateway: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    for package in (REMINDER, MUSIC):
        ask("PUT", f"/api/users/bob/apps/{package}", {})
    absent = remote("call", ADD, "text=milk", "--user", "bob")
    assert (absent.code, absent.out) == (1, "")
    assert matches("cli", "tools and call for a user", absent.err)
    ask("PUT", "/api/users/bob/session", {"device": "Even Realities G1"})
    reminders = {f"{REMINDER}:{name}" for name in ("add_reminder", "list_reminders", "complete_reminder")}
    assert apps_of(remote("tools")) == set()
    assert apps_of(remote("tools", "--user", "bob")) == reminders
    assert remote("call", ADD, "text=milk", "--user", "bob").out.startswith("Noted: milk.")
    assert "TOOL_NOT_FOUND" in remote("call", PLAY, "title=x", "--user", "bob").err
    checked = remote("check", "--user", "bob", "--json").json["tools"]
    assert reminders <= set(checked)
    monkeypatch.delenv("TOOLCRIB_URL")
    monkeypatch.setenv("TOOLCRIB_HOME", str(gateway.folder / ".toolcrib"))
    assert apps_of(remote("tools", "--user", "bob")) == reminders
    called = remote("call", ADD, "text=milk", "--user", "bob")
    assert called.code == 1
    assert "APP_NOT_AVAILABLE" in called.err
    assert matches("cli", "tools and call for a user 2", called.err)
