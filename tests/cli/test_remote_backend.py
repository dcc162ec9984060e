"""The same commands on a gateway that runs: over HTTP, with a key."""

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from time import monotonic

import pytest

from tests.cli.conftest import Shell
from tests.cli.processes import PATIENCE, Serving
from tests.texts import matches
from toolcrib.errors import CODES

pytestmark = pytest.mark.slow


def until(true: Callable[[], bool]) -> None:
    """Poll until the condition is true; the condition itself takes time, so no other wait is needed."""
    end = monotonic() + PATIENCE
    while not true():
        assert monotonic() < end


def test_tools(remote: Shell) -> None:
    done = remote("tools", "--search", "numbers total")
    assert (done.code, done.err) == (0, "")
    assert done.rows[0][0] == "demo:add-numbers"
    assert remote("tools", "--format", "mcp", "--style", "flat").json["tools"][0]["name"] == "get-datetime"
    assert remote("tools", "--format", "morse").code == 2


@pytest.mark.requirement("F9")
def test_usage(remote: Shell) -> None:
    remote("call", "demo:count-words", "text=12")
    used = remote("usage", "--json").json["tools"]["demo:count-words"]
    assert used["calls"] >= 1
    assert set(used) == {"calls", "errors", "cached", "p50", "p95", "lastUsed"}
    (row,) = (each for each in remote("usage").rows if each[0] == "demo:count-words")
    assert row[1] == str(used["calls"])
    assert row[4].endswith(" ms")
    assert row[6].endswith("Z")


@pytest.mark.parametrize("name", ["add-numbers", "add_numbers", "demo:add-numbers", "DEMO:Add-Numbers"])
def test_call_under_any_name(remote: Shell, name: str) -> None:
    done = remote("call", name, "numbers=1", "numbers=2")
    assert (done.code, done.out) == (0, 'That makes 3.0.\n{\n  "total": 3.0\n}\n')


def test_call_by_an_alias(remote: Shell) -> None:
    assert remote("call", "word-count", "text=12").out.startswith("It has 1 words.")


def test_a_large_answer_comes_whole(remote: Shell) -> None:
    numbers = [0.5] * 1000
    done = remote("call", "add-numbers", json.dumps({"numbers": numbers}), "--json")
    assert done.json["data"] == {"total": 500.0}


def test_progress_is_read_before_the_result(remote: Shell) -> None:
    done = remote("call", "slow-countdown", "seconds=0", "steps=5")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("Lift-off after 0.0 seconds.")


def test_remote_errors_equal_local_errors(remote: Shell) -> None:
    done = remote("call", "convert-units", "value=3", "unit=mi", "to=kg")
    assert (done.code, done.err) == (1, "toolcrib: TOOL_FAILED: mi measures length and kg measures mass\n")
    unknown = remote("call", "nope", "a=1", "--json")
    assert (unknown.code, unknown.json["error"]["code"]) == (1, "TOOL_NOT_FOUND")
    slow = remote("call", "slow-countdown", "seconds=20", "--timeout", "0.05", "--json")
    assert (slow.code, slow.json["error"]["code"]) == (1, "OUTCOME_UNKNOWN")


def test_explain_as_a_user(remote: Shell) -> None:
    done = remote("explain", "roll-dice", "--user", "u1")
    assert done.code == 0
    assert done.out.startswith("demo:roll-dice may be used by user:u1 in the context default.")


@pytest.mark.requirement("I1")
def test_a_key_works_at_once_and_ends_at_once(remote: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    made = remote("keys", "create", "remote-key", "--permission", "dice:roll", "--json")
    assert (made.code, made.err) == (0, "")
    assert "remote-key" in [row[0] for row in remote("keys", "list").rows]
    rotated = remote("keys", "rotate", "remote-key").out.strip()
    with monkeypatch.context() as other:
        other.setenv("TOOLCRIB_KEY", rotated)
        assert remote("call", "roll-dice", "count=2").code == 0
        refused = remote("keys", "list")
        assert (refused.code, refused.out) == (1, "")
        assert "crib:keys" in refused.err
        assert remote("call", "roll-dice", "--user", "u2").code == 1
    assert matches("cli", "key is revoked", remote("keys", "revoke", "remote-key").err)
    again = remote("keys", "revoke", "remote-key")
    assert (again.code, again.err) == (1, "toolcrib: there is no live key named remote-key\n")
    monkeypatch.setenv("TOOLCRIB_KEY", rotated)
    ended = remote("tools")
    assert ended.code == 1
    assert "unknown or has been revoked (the key in $TOOLCRIB_KEY)" in ended.err


@pytest.mark.slow
@pytest.mark.requirement("I1")
def test_gateway_follows_store_changes(
    shell: Shell, gateway: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(gateway.folder)
    key = shell("keys", "create", "from-beside").out.strip()
    monkeypatch.setenv("TOOLCRIB_KEY", key)
    until(lambda: shell("tools", "--url", gateway.url).code == 0)
    assert shell("keys", "revoke", "from-beside").code == 0
    until(lambda: shell("tools", "--url", gateway.url).code == 1)


def test_check_asks_the_gateway(remote: Shell) -> None:
    done = remote("check")
    assert (done.code, done.out) == (0, "All checks pass.\n")


def test_option_overrides_environment(
    shell: Shell, gateway: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOLCRIB_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("TOOLCRIB_KEY", gateway.admin_key)
    assert shell("tools", "--url", gateway.url + "/").code == 0


def test_a_config_or_the_demo_means_this_process(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLCRIB_URL", "http://127.0.0.1:1")
    assert shell("tools", "--demo").code == 0
    both = shell("tools", "--demo", "--url", "http://127.0.0.1:1")
    assert (both.code, both.out) == (2, "")
    assert "--url" in both.err


@pytest.mark.parametrize("key", [None, "", "  ", "two\nlines", "naïve"])
def test_missing_key_error_gives_advice(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, key: str | None
) -> None:
    monkeypatch.setenv("TOOLCRIB_URL", "http://127.0.0.1:1")
    if key is not None:
        monkeypatch.setenv("TOOLCRIB_KEY", key)
    done = shell("tools")
    assert (done.code, done.out) == (2, "")
    assert "requires an API key in $TOOLCRIB_KEY" in done.err


@pytest.mark.parametrize(
    "url",
    [
        "localhost:6740",
        "ftp://host",
        "http://",
        "http://[::1",
        "http://h:99999",
        "http://u:p@h",
        "http://h?q",
    ],
)
def test_invalid_address_is_usage_error(shell: Shell, monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setenv("TOOLCRIB_KEY", "some-key")
    done = shell("tools", "--url", url)
    assert (done.code, done.out) == (2, "")
    assert matches("cli", "invalid address is usage error", done.err)


def test_unreachable_gateway(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLCRIB_KEY", "some-key")
    done = shell("tools", "--url", "http://127.0.0.1:1")
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("toolcrib: no gateway responds at http://127.0.0.1:1; start one")
    assert shell("tools", "--url", "http://127.0.0.1:1", "--json").json["error"]["code"] == "NETWORK_ERROR"


ASKS = b"""{"success": true, "message": "Which seat?", "content": "Which seat?",
    "inputRequired": {"questions": {"q1": {"method": "elicitation/create"}}, "state": "s"}}"""


class _Stranger(BaseHTTPRequestHandler):
    """A web server that is no gateway: what it answers depends on the path."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self._answer()

    def _answer(self) -> None:
        kind = self.path.split("/")[1]
        status, body, type_ = {
            "html": (200, b"<html>hello</html>", "text/html"),
            "list": (200, b"[]", "application/json"),
            "error": (500, b'{"error": "no"}', "application/json"),
            "code": (418, b'{"error": {"code": "TEAPOT", "message": "short"}}', "application/json"),
            "cut": (200, b"event: progress\ndata: {}\n\n", "text/event-stream"),
            "windows": (
                200,
                b'event: result\r\ndata: {"success":true,"message":"","data":1}\r\n\r\n',
                "text/event-stream",
            ),
            "asks": (200, ASKS, "application/json"),
            "broken": (200, b"", "application/json"),
        }[kind]
        self.send_response(status)
        self.send_header("Content-Type", type_)
        self.send_header("Content-Length", str(len(body) if kind != "broken" else 10))
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)
        self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:
        del format, args


@pytest.fixture(scope="module")
def stranger() -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), _Stranger)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize(
    "path,code",
    [
        ("html", "HTTP_ERROR"),
        ("list", "HTTP_ERROR"),
        ("error", "HTTP_ERROR"),
        ("code", "EXECUTION_ERROR"),
        ("broken", "OUTCOME_UNKNOWN"),
    ],
)
def test_a_stranger_at_the_address(
    shell: Shell, stranger: str, monkeypatch: pytest.MonkeyPatch, path: str, code: str
) -> None:
    monkeypatch.setenv("TOOLCRIB_KEY", "some-key")
    done = shell("tools", "--url", f"{stranger}/{path}", "--json")
    assert (done.code, done.json["error"]["code"]) == (1, code)
    assert code in CODES


def test_a_call_that_is_cut_off_may_have_happened(
    shell: Shell, stranger: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOLCRIB_KEY", "some-key")
    done = shell("call", "x", "--url", f"{stranger}/cut", "--json")
    assert (done.code, done.json["error"]["code"]) == (1, "OUTCOME_UNKNOWN")
    assert shell("call", "x", "--url", f"{stranger}/windows").out == "1\n"


def test_tool_with_questions_is_shown_unexecuted(
    shell: Shell, stranger: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOLCRIB_KEY", "some-key")
    done = shell("call", "x", "--url", f"{stranger}/asks")
    assert (done.code, done.out.splitlines()[0]) == (1, "Which seat?")
    assert '"q1"' in done.out
    assert matches("cli", "tool with questions is shown unexecuted", done.err)
    asked = shell("call", "x", "--url", f"{stranger}/asks", "--json")
    assert (asked.code, asked.json["inputRequired"]["state"]) == (1, "s")


def test_a_silent_gateway_is_given_up(shell: Shell, monkeypatch: pytest.MonkeyPatch, unanswered: str) -> None:
    monkeypatch.setenv("TOOLCRIB_KEY", "some-key")
    monkeypatch.setattr("toolcrib.cli.remote_backend.MAX_SILENCE_SECONDS", 0.05)
    done = shell("tools", "--url", unanswered)
    assert (done.code, done.out) == (1, "")
    assert matches("cli", "a silent gateway is given up", done.err)


@pytest.fixture
def unanswered() -> Iterator[str]:
    """The address of a socket that accepts connections and never answers."""
    import socket

    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"


@pytest.mark.requirement("E12")
def test_a_call_with_a_key_is_carried_out_once(remote: Shell) -> None:
    words = ("call", "slow-countdown", "seconds=0", "--idempotency-key", "once")
    first, again = remote(*words, "--json"), remote(*words, "--json")
    assert first.json["data"] == again.json["data"]
    other = remote("call", "slow-countdown", "seconds=0.01", "--idempotency-key", "once", "--json")
    assert (other.code, other.json["error"]["code"]) == (1, "IDEMPOTENCY_MISMATCH")
