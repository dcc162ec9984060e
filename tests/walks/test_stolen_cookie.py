"""A page on another port of the host gets the session's cookie, and reads and changes nothing with it."""

import json
import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

from tests.gateways import ADMIN
from tests.walks.test_page import Seen, opened
from tests.walks.test_routes import TABLE

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [pytest.mark.needs("chromium"), pytest.mark.slow, pytest.mark.requirement("I1")]

REFUSED = {401, 403, 404}

ATTACKS = """async ([gateway, targets, cookie]) => {
  const found = { read: [], framed: null, socket: null, popup: null, scripts: 0 }
  found.storage = localStorage.length
  const body = JSON.stringify({ name: 'stolen', permissions: ['*'] })
  for (const [method, path] of targets) {
    for (const mode of ['cors', 'no-cors']) {
      for (const type of ['text/plain', 'application/json']) {
        const options = { method, mode, credentials: 'include' }
        if (method !== 'GET') Object.assign(options, { body, headers: { 'Content-Type': type } })
        try {
          const answer = await fetch(gateway + path, options)
          if (answer.type !== 'opaque') found.read.push([method, path, answer.status])
        } catch {}
      }
    }
  }
  const custom = { credentials: 'include', headers: { 'X-Crib-Token': cookie } }
  try { found.read.push(await (await fetch(gateway + '/api/keys', custom)).text()) } catch {}
  const frame = document.createElement('iframe')
  frame.name = 'target'
  document.body.append(frame)
  const loaded = () => new Promise(resolve => { frame.onload = resolve })
  for (const path of ['/api/keys', '/api/signout', '/api/signin', '/api/signin/exchange', '/reload']) {
    const form = document.createElement('form')
    Object.assign(form, { method: 'post', action: gateway + path, target: 'target', enctype: 'text/plain' })
    const input = document.createElement('input')
    Object.assign(input, { name: '{"name":"stolen","permissions":["*"],"x":"', value: '"}' })
    form.append(input)
    document.body.append(form)
    const done = loaded()
    form.submit()
    await done
  }
  const shown = loaded()
  frame.src = gateway + '/'
  await shown
  try { found.framed = frame.contentDocument.body.textContent } catch {}
  const popup = open(gateway + '/', '_blank')
  try { found.popup = popup.localStorage.getItem('toolcrib.secret') } catch {}
  found.socket = await new Promise(resolve => {
    const socket = new WebSocket(gateway.replace('http', 'ws') + '/app-ws')
    socket.onopen = () => resolve('open')
    socket.onerror = () => resolve('refused')
  })
  for (const path of ['/api/keys', '/api/status', '/']) {
    await new Promise(resolve => {
      const script = document.createElement('script')
      script.onerror = resolve
      script.onload = () => { found.scripts++; resolve() }
      script.src = gateway + path
      document.body.append(script)
    })
  }
  return found
}"""


class Hostile(ThreadingHTTPServer):
    """A program on another port that keeps every cookie it is sent."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Keep)
        self.cookies: list[str] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Keep(BaseHTTPRequestHandler):
    server: Hostile  # pyright: ignore[reportIncompatibleVariableOverride]

    def do_GET(self) -> None:
        self.server.cookies.append(self.headers.get("Cookie", ""))
        page = b"<!doctype html><title>hostile</title><body></body>"
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(page)))
        self.end_headers()
        self.wfile.write(page)

    def log_message(self, format: str, *args: object) -> None:
        del format, args


@contextmanager
def hostile_port() -> Generator[Hostile]:
    with Hostile() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


class Program:
    """Sends any request with any headers, as no browser would."""

    def __init__(self, url: str) -> None:
        self._host = urlsplit(url).netloc
        self.own = {"Origin": url, "Sec-Fetch-Site": "same-origin", "Referer": f"{url}/"}

    def ask(
        self, method: str, target: str, headers: Mapping[str, str], body: Any = None
    ) -> tuple[int, dict[str, str], bytes]:
        connection = HTTPConnection(self._host, timeout=30)
        raw = None if body is None else json.dumps(body)
        given = {**headers, **({} if body is None else {"Content-Type": "application/json"})}
        try:
            connection.request(method, target, body=raw, headers=given)
            answer = connection.getresponse()
            return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
        finally:
            connection.close()

    def state(self) -> list[Any]:
        """What an operator sees of everything that could have been changed."""
        admin = {"Authorization": f"Bearer {ADMIN}"}
        paths = ("/api/keys", "/api/apps", "/api/users", "/api/pins", "/mcp/status", "/api/tools")
        return [json.loads(self.ask("GET", path, admin)[2]) for path in paths]


def stolen_by(hostile: Hostile, page: "Page") -> str:
    """Lead the signed-in browser to the other port, and return the cookie that arrives there."""
    page.goto(hostile.url)
    assert hostile.cookies[0].startswith("toolcrib_session=")
    return hostile.cookies[0]


def still_signed_in(seen: Seen, page: "Page") -> None:
    page.goto(seen.url)
    page.wait_for_selector("#tool h3")


@pytest.mark.check(6)
def test_replayed_cookie_reads_and_changes_nothing(page: "Page") -> None:
    with opened(page) as seen, hostile_port() as hostile:
        seen.sign_in()
        program = Program(seen.url)
        before = program.state()
        cookie = stolen_by(hostile, page)
        value = cookie.partition("=")[2]
        alone = {"Cookie": cookie, **program.own}
        variants = (
            {"Cookie": cookie},
            {"Cookie": cookie, "X-Crib-Token": value},
            alone,
            {**alone, "X-Crib-Token": ""},
            {**alone, "X-Crib-Token": value},
            {**program.own, "Authorization": f"Bearer {value}"},
        )
        asked = 0
        for route in seen.gateway.server.router.routes:
            probe = TABLE[route.method, route.path]
            target = probe.target or route.path
            public = route.access in {"open", "loopback"} and route.path != "/api/signin/exchange"
            plain = program.ask(route.method, target, probe.headers or {}, probe.body)
            for headers in variants:
                answer = program.ask(route.method, target, {**(probe.headers or {}), **headers}, probe.body)
                asked += 1
                assert "set-cookie" not in answer[1]
                assert b"tc_" not in answer[2]
                if public:
                    assert (answer[0], answer[2][:200]) == (plain[0], plain[2][:200]), route.path
                else:
                    assert answer[0] in REFUSED, (route.method, route.path, answer)
        print(
            f"{asked} requests with the stolen cookie by {len(TABLE)} routes: nothing read, nothing changed"
        )
        assert program.state() == before
        still_signed_in(seen, page)


def test_page_on_another_port_reads_and_changes_nothing(page: "Page") -> None:
    with opened(page) as seen, hostile_port() as hostile:
        seen.sign_in()
        program = Program(seen.url)
        before = program.state()
        cookie = stolen_by(hostile, page)
        targets = [
            (route.method, TABLE[route.method, route.path].target or route.path)
            for route in seen.gateway.server.router.routes
            if not route.stays
        ]
        found = page.evaluate(ATTACKS, [seen.url, targets, cookie.partition("=")[2]])
        assert found["read"] == []
        assert (found["framed"], found["popup"], found["socket"]) == (None, None, "refused")
        assert (found["storage"], found["scripts"]) == (0, 0)
        assert program.state() == before
        still_signed_in(seen, page)
