"""What servers, apps and callers say is never run by the page, and no other page's form has an effect."""

import json
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import pytest
from anyio.from_thread import start_blocking_portal
from pydantic import Field

from tests.figures import Record, figure
from tests.gateways import ADMIN, InProcessGateway, listening, open_gateway
from tests.servers.settings import PYTHON, stdio
from tests.waiting import until
from tests.walks.test_page import Seen
from tests.walks.test_stolen_cookie import Program, hostile_port
from toolcrib import create_tool
from toolcrib.sdk import AnyTool

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [
    pytest.mark.needs("chromium"),
    pytest.mark.slow,
    pytest.mark.check(18),
    pytest.mark.requirement("I4", "I5"),
]

RUN = "window.hacked=(window.hacked||0)+1"
PAYLOADS = (
    f"<script>{RUN}</script>",
    f"<ScRiPt>{RUN}</sCrIpT>",
    f"<script src=data:text/javascript,{RUN}></script>",
    f"</title><script>{RUN}</script>",
    f"</textarea><script>{RUN}</script>",
    f"</pre></code><script>{RUN}</script>",
    f"--><script>{RUN}</script>",
    f"]]><script>{RUN}</script>",
    f"<img src=x onerror={RUN}>",
    f"<img/src=x/onerror={RUN}>",
    f'"><img src=x onerror={RUN}>',
    f"'><img src=x onerror={RUN}>",
    f"`><img src=x onerror={RUN}>",
    f"<svg onload={RUN}>",
    f"<svg><script>{RUN}</script></svg>",
    f"<svg><animate onbegin={RUN} attributeName=x dur=1s>",
    f"<svg><a xlink:href=javascript:{RUN}><text>x</text></a></svg>",
    f"<math><mtext><script>{RUN}</script></mtext></math>",
    f"<body onload={RUN}>",
    f"<iframe srcdoc='<script>parent.{RUN}</script>'></iframe>",
    f"<iframe src=javascript:parent.{RUN}></iframe>",
    f"<object data=javascript:{RUN}></object>",
    f"<embed src=javascript:{RUN}>",
    f"<details open ontoggle={RUN}>x</details>",
    f"<input autofocus onfocus={RUN}>",
    f"<select autofocus onfocus={RUN}><option>x</select>",
    f"<video><source onerror={RUN}></video>",
    f"<audio src=x onerror={RUN}>",
    f"<marquee onstart={RUN}>x</marquee>",
    f"<a href=javascript:{RUN}>x</a>",
    f"javascript:{RUN}//",
    f"java\tscript:{RUN}//",
    f"<form action=javascript:{RUN}><button>x</button></form>",
    f"<base href=javascript:{RUN}//>",
    f"<meta http-equiv=refresh content='0;url=javascript:{RUN}'>",
    f"<link rel=stylesheet href=data:text/css,*{{x:y}} onload={RUN}>",
    f"<style>@import 'javascript:{RUN}';</style>",
    f"<template><script>{RUN}</script></template>",
    "{{constructor.constructor('" + RUN + "')()}}",
    "${" + RUN + "}<%= " + RUN + " %>\\u003cscript\\u003e" + RUN + "\\u003c/script\\u003e",
)
CHOSEN = PAYLOADS[:: figure(8, 1)]
"""The tools that are run; all are listed, and shown with all the others."""


def hostile_tool(number: int, payload: str) -> AnyTool:
    @create_tool(
        name=f"attack-{number}",
        title=payload,
        category="query",
        tags=[payload],
        examples=[{"description": payload, "params": {"text": payload}, "expectedResult": payload}],
    )
    async def attack(text: Annotated[str, Field(description=payload)]) -> dict[str, Any]:
        """Repeat what it is given."""
        return {"text": text, payload: [payload, {payload: payload}]}

    return attack


async def filled(gateway: InProcessGateway) -> None:
    """Apps, users, keys and servers that are called by every payload."""
    whole = "".join(PAYLOADS)
    camera = {"type": "CAMERA", "level": "REQUIRED", "description": whole[:400]}
    for number, payload in enumerate(PAYLOADS):
        body = {"name": payload.replace("\t", " "), "appType": "background", "hardwareRequirements": [camera]}
        assert (await gateway.request("PUT", f"/api/apps/com.example.a{number}", body=body)).status in {
            200,
            201,
        }
    tool: Any = {
        "name": "said",
        "description": whole[:900],
        "inputSchema": {"type": "object", "properties": {}},
    }
    answer = await gateway.request("POST", "/api/apps/com.example.a0/tools", body={"tools": [tool]})
    assert answer.status == 200, answer.body
    for number, payload in enumerate(PAYLOADS):
        quoted = "".join(f"%{byte:02x}" for byte in f"{number}{payload}".encode())
        assert (await gateway.request("PUT", f"/api/users/{quoted}", body={})).status in {200, 400}
        await gateway.call(payload)
        await gateway.call(f"attack_{number}", {payload: payload})


async def all_up(gateway: InProcessGateway, servers: Iterable[str]) -> None:
    supervisor = gateway.runtime.console.supervisor
    for server in servers:
        await until(partial(supervisor.is_up, server))


@contextmanager
def signed_in(page: "Page", **servers: Any) -> Generator[Seen]:
    tools = [hostile_tool(number, payload) for number, payload in enumerate(PAYLOADS)]
    gone = {
        "transport": "stdio",
        "command": [f"/nowhere/{''.join(PAYLOADS[:10])}"],
        "restart": {"enabled": False},
    }
    config = json.dumps({"mcp": {"servers": {"gone": gone, **servers}}, "limits": {"per_user": None}})
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(open_gateway(config, tools=tools)) as gateway,
        portal.wrap_async_context_manager(listening(gateway.server)) as url,
    ):
        portal.call(filled, gateway)
        portal.call(all_up, gateway, servers)
        seen = Seen(page, url, gateway)
        seen.watch()
        seen.sign_in()
        yield seen
        page.close()


def harmless(seen: Seen) -> None:
    hacked: Any = seen.page.evaluate("window.hacked")
    assert hacked is None
    markup = (
        "#inside :is(img, script, iframe, object, embed, svg a, math, base, meta, link, form[action], video)"
    )
    assert seen.page.locator(markup).count() == 0
    assert seen.page.locator("a[href^='javascript' i]").count() == 0


def test_page_executes_no_untrusted_text(page: "Page", record_property: Record) -> None:
    assert len(PAYLOADS) == len(set(PAYLOADS)) == 40
    with signed_in(page) as seen:
        harmless(seen)
        page.wait_for_selector("#user-rows td")
        page.wait_for_selector("#sources .fault")
        for payload in CHOSEN:
            seen.choose(f"attack {PAYLOADS.index(payload)}")
            page.wait_for_selector("#tool h3")
            page.fill("#tool textarea, #tool input[type=text], #tool input:not([type])", payload)
            page.click("#tool button[type=submit]")
            page.wait_for_selector(".outcome .pill")
            for tab in ("Hints", "Full response", "Data"):
                page.click(f"role=tab[name='{tab}']")
            harmless(seen)
        harmless(seen)
        assert seen.asked == {seen.url}
        assert not any("Content Security Policy" in each for each in seen.troubles), seen.troubles
        record_property("figure", f"{len(PAYLOADS)} payloads listed, {len(CHOSEN)} tools run, 0 scripts run")


OPEN_ALL = """async () => {
  const opened = []
  const buttons = () => document.querySelectorAll('#list button')
  for (let i = 0; i < buttons().length; i++) {
    buttons()[i].click()
    opened.push(document.querySelector('#tool .names').textContent)
  }
  await new Promise(requestAnimationFrame)
  return opened
}"""
"""Opens every tool of the list; returns the names under which each is shown."""


def test_texts_of_an_mcp_server_run_no_script(page: "Page", tmp_path: Path, record_property: Record) -> None:
    texts = tmp_path / "texts.json"
    texts.write_text(json.dumps({"texts": PAYLOADS, "suffix": ""}))
    with signed_in(page, upstream=stdio(*PYTHON, "tests.servers.payloads", str(texts), pin="strict")) as seen:
        opened = page.evaluate(OPEN_ALL)
        names = " ".join(opened) + " "
        shown = {number for number in range(len(PAYLOADS)) if f"upstream:upstream-{number} " in names}
        assert shown == set(range(len(PAYLOADS)))
        harmless(seen)
        page.click("#list button:has-text('upstream ·')")
        page.click("#tool button[type=submit]")
        page.wait_for_selector(".outcome .pill.bad")
        harmless(seen)
        texts.write_text(json.dumps({"texts": PAYLOADS, "suffix": "<b>changed</b>"}))
        key = {"Authorization": f"Bearer {ADMIN}"}
        assert page.request.post(f"{seen.url}/mcp/test/upstream", headers=key).json()["changed_tools"]
        page.reload()
        page.wait_for_selector("#warnings li:has-text('<b>changed')")
        assert "upstream:upstream-" not in str(page.evaluate(OPEN_ALL))
        harmless(seen)
        assert seen.asked == {seen.url}
        assert seen.troubles == []
        record_property("figure", f"{len(PAYLOADS)} payloads in {len(opened)} opened tools, 0 scripts run")


FORMS = tuple(
    (path, method, enctype)
    for path in ("/api/keys", "/api/signout", "/reload", "/api/tools/execute", "/api/pins")
    for method, enctype in (
        ("post", "text/plain"),
        ("post", "application/x-www-form-urlencoded"),
        ("post", "multipart/form-data"),
        ("get", "text/plain"),
    )
)
SUBMIT = """async ([action, method, enctype]) => {
  const frame = document.createElement('iframe')
  frame.name = 'target'
  document.body.append(frame)
  const form = Object.assign(document.createElement('form'), { method, action, enctype, target: 'target' })
  const name = '{"name":"stolen","permissions":["*"],"x":"'
  form.append(Object.assign(document.createElement('input'), { name, value: '"}' }))
  document.body.append(form)
  const done = new Promise(resolve => { frame.onload = resolve })
  form.submit()
  await done
  frame.remove()
  form.remove()
}"""


def test_no_form_of_another_page_has_an_effect(page: "Page", record_property: Record) -> None:
    assert len(FORMS) == 20
    with signed_in(page) as seen, hostile_port() as hostile:
        program = Program(seen.url)
        before = program.state()
        page.goto(hostile.url)
        for path, method, enctype in FORMS:
            page.evaluate(SUBMIT, [seen.url + path, method, enctype])
        assert program.state() == before
        page.goto(seen.url)
        page.wait_for_selector("#tool h3")
        record_property("figure", f"{len(FORMS)} forms of another page, 0 effects")


def test_policy_allows_nothing_unsafe() -> None:
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(open_gateway()) as gateway,
        portal.wrap_async_context_manager(listening(gateway.server)) as url,
    ):
        status, headers, _ = Program(url).ask("GET", "/", {})
    policy = headers["content-security-policy"]
    assert status == 200
    assert "unsafe" not in policy
    assert "default-src 'self'" in policy
    assert "frame-ancestors 'none'" in policy
    assert not any(source in policy for source in ("*", "data:", "blob:", "http:", "https:"))
