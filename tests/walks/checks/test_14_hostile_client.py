"""Ten thousand distinct requests nobody should send, and spoilt bodies; a good call after each hundred."""

import itertools
import json
import logging
import random
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp
import anyio
import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

import toolcrib
from tests.figures import figure
from tests.gateway_process import GatewayProcess, gateway_process
from tests.gateways import ADMIN, HOST, AsgiConnection, InProcessGateway, Reply, open_gateway, scope
from tests.walks.test_routes import INITIALIZE, TABLE
from toolcrib import create_tool
from toolcrib.errors import CODES

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.slow,
    pytest.mark.no_cover,
    pytest.mark.check(14),
    pytest.mark.requirement("D5", "I5"),
]

REQUESTS, WAYS = figure(400, 10_000), 4
"""How many distinct requests are drawn, and in how many ways each is sent."""
BODIES, A_LOT = figure(500, 10_000), 100
SEED = 14
KEYS = (*[ADMIN] * 8, "wrong", "")
CALL: Any = {"name": "echo", "arguments": {"value": {}}}
PLACES: list[tuple[str, str, Any]] = [
    *((method, probe.target or path, probe.body) for (method, path), probe in TABLE.items()),
    *[("POST", "/api/tools/execute", CALL)] * 10,
]
PACKAGE = str(Path(toolcrib.__file__).parent).encode()


@create_tool(category="query")
async def echo(value: dict[str, Any]) -> dict[str, Any]:
    """Give back what it is given."""
    return value


class Sent(NamedTuple):
    """One request as it goes over the wire."""

    method: str
    path: str
    query: bytes
    headers: tuple[tuple[bytes, bytes], ...]
    pieces: tuple[bytes, ...]


# --- what a hostile client may think of ---

texts = st.one_of(
    st.text(max_size=30),
    st.sampled_from(
        [
            "",
            "\x00",
            "../../etc/passwd",
            "' OR 1=1 --",
            "<script>",
            "%",
            "{}",
            "��",
            "a" * 5000,
            "é",
            "tools:echo",
            ":",
            "x:",
            ":x",
            "default",
            "few",
            "admin",
            "*",
            "null",
            "-1",
            "1e999",
            "\r\nX: y",
            "${HOME}",
            "%s%n",
        ]
    ),
)
values = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), texts
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(texts, inner, max_size=4)),
    max_leaves=8,
)
FIELDS = (
    "name",
    "arguments",
    "context",
    "idempotencyKey",
    "answers",
    "state",
    "permissions",
    "contexts",
    "home",
    "actAs",
)
objects = st.dictionaries(
    st.one_of(st.sampled_from((*FIELDS, "jsonrpc", "id", "method", "params")), texts), values, max_size=6
)
good: st.SearchStrategy[Any] = st.sampled_from((CALL, {"name": "k"}, INITIALIZE))


def merged(first: Any, second: Any) -> Any:
    return {**first, **second}


def call(given: Any) -> Any:
    return {"name": "echo", "arguments": given}


def shortened(body: bytes, at: int) -> bytes:
    return body[: at % (len(body) + 1)]


def wire(value: Any) -> bytes:
    return json.dumps(value).encode("utf-8", "surrogatepass")


spelled = st.one_of(
    values.map(wire),
    objects.map(wire),
    st.builds(merged, good, objects).map(wire),
    values.map(call).map(wire),
    objects.map(lambda value: wire(call({"value": value}))),
)
cut = st.builds(shortened, spelled, st.integers(0, 500))
crafted = st.sampled_from(
    [
        b"",
        b"{",
        b"NaN",
        b'"\\ud800"',
        b"\xff\xfe",
        b"[" * 5000 + b"]" * 5000,
        b'{"a":' * 200 + b"1" + b"}" * 200,
        b'{"name":"echo","name":"who","arguments":{"value":{"__proto__":1}}}',
        b'{"name":"echo","arguments":"{\\"value\\":{"}',
        b'{"name":"echo","arguments":{"value":1e400}}',
        b'{"name":"echo","arguments":{"value":{"n":123456789012345678901234567890}}}',
        b"0" * 10_000,
    ]
)
bodies = st.one_of(spelled, cut, crafted, st.binary(max_size=60))

printable = st.text(
    st.characters(min_codepoint=32, max_codepoint=255, exclude_characters="\x7f"), max_size=40
)
header_values = st.one_of(
    printable, texts.map(lambda text: text.encode("utf-8", "replace").decode("latin-1"))
)
HEADERS = (
    "accept",
    "content-type",
    "content-length",
    "content-encoding",
    "x-user-id",
    "x_user_id",
    "x-agent-id",
    "x-correlation-id",
    "x-session-id",
    "x-crib-token",
    "traceparent",
    "prefer",
    "cookie",
    "origin",
    "host",
    "authorization",
    "sec-fetch-site",
    "x-forwarded-for",
    "mcp-method",
    "mcp-name",
    "mcp-protocol-version",
    "last-event-id",
    "range",
    "te",
)
LIKELY = (
    ("accept", "text/event-stream"),
    ("accept", "application/json, text/event-stream"),
    ("content-type", "text/plain"),
    ("content-type", "application/json; charset=utf-16"),
    ("cookie", "toolcrib_session=x"),
    ("sec-fetch-site", "same-origin"),
    ("x-user-id", "ann"),
    ("mcp-protocol-version", "2026-07-28"),
    ("mcp-session-id", "0123456789abcdef"),
    ("traceparent", "00-" + "1" * 32 + "-" + "1" * 16 + "-01"),
)
headers = st.one_of(
    st.just([]),
    st.lists(st.sampled_from(LIKELY), max_size=2),
    st.lists(st.tuples(st.sampled_from(HEADERS), header_values), max_size=4),
)
paths = st.one_of(texts.map(lambda text: "/" + text), st.lists(texts, max_size=4).map("/api/".join), texts)
queries = st.one_of(
    st.just(b""),
    st.binary(max_size=30),
    st.lists(
        st.tuples(st.sampled_from(("q", "limit", "name", "context", "format", "before", "token")), texts),
        max_size=3,
    ).map(lambda pairs: "&".join(f"{name}={value}" for name, value in pairs).encode("utf-8", "replace")),
)


@st.composite
def requests(draw: st.DrawFn) -> Sent:
    method, target, body = draw(st.sampled_from(PLACES))
    path, _, query = target.partition("?")
    if draw(st.integers(0, 5)) == 0:
        path = draw(paths)
    if draw(st.integers(0, 5)) == 0:
        method = draw(st.sampled_from(("GET", "POST", "PUT", "DELETE", "OPTIONS", "TRACE", "BREW", "")))
    raw = json.dumps(body).encode() if body is not None and draw(st.booleans()) else draw(bodies)
    given = [("host", HOST)] if draw(st.integers(0, 20)) else []
    key = draw(st.sampled_from(KEYS))
    given += [("authorization", f"Bearer {key}")] if key else []
    given += draw(headers)
    at = draw(st.integers(0, len(raw)))
    return Sent(
        method,
        path,
        query.encode() if query and draw(st.booleans()) else draw(queries),
        tuple((name.encode(), value.encode("latin-1", "replace")) for name, value in given),
        (raw[:at], raw[at:]) if draw(st.booleans()) else (raw,),
    )


def ways(sent: Sent) -> tuple[Sent, ...]:
    """Send it as it was thought of, and three ways that are no less wrong: to think of one takes longest."""
    raw = b"".join(sent.pieces)
    elsewhere = PLACES[(len(raw) + len(sent.path)) % len(PLACES)]
    return (
        sent,
        sent._replace(pieces=(raw[: len(raw) // 2],)),
        sent._replace(method=elsewhere[0], path=elsewhere[1].partition("?")[0]),
        sent._replace(pieces=(raw[::-1],), headers=sent.headers[1:]),
    )


async def answer(crib: InProcessGateway, sent: Sent) -> Reply:
    gone = anyio.Event()
    gone.set()
    teller = AsgiConnection(*sent.pieces, leaves=gone if sent.method == "GET" else None)
    asked = scope(sent.method, sent.path, sent.headers, query=sent.query)
    with anyio.fail_after(20):
        await crib.server(asked, teller.receive, teller.send)
    return teller.reply()


def judge(sent: Sent, reply: Reply) -> None:
    assert 200 <= reply.status < 500, (sent, reply)
    assert PACKAGE not in reply.body
    assert b"Traceback (most recent call last)" not in reply.body
    assert reply.headers.get("x-content-type-options") == "nosniff" or "/mcp" in sent.path
    if reply.status >= 400 and not sent.path.rstrip("/").endswith("/mcp"):
        assert CODES[str(reply.code)].status == reply.status
        assert reply.json["agentHints"]
        assert reply.json["metadata"]["traceId"]


def drawn(count: int) -> list[Sent]:
    """Draw so many distinct requests, and all before a gateway runs: drawing would stop its event loop."""
    found: dict[Sent, None] = {}
    for each in itertools.count(SEED):
        # One seed may give fewer than asked for, and some of them twice.
        found.update(dict.fromkeys(drawn_with(each, count)))
        if len(found) >= count:
            break
    return list(found)[:count]


def drawn_with(number: int, count: int) -> list[Sent]:
    found: list[Sent] = []

    @seed(number)
    @settings(
        max_examples=count,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    @given(requests())
    def draw(sent: Sent) -> None:
        found.append(sent)

    draw()
    return found


async def test_ten_thousand_bad_requests(caplog: pytest.LogCaptureFixture) -> None:
    chosen = drawn(REQUESTS)
    assert len(set(chosen)) == REQUESTS
    sent_count = 0
    async with open_gateway("limits: {per_user: null}\ncontexts: {few: {tools: []}}", tools=[echo]) as crib:
        for sent in itertools.chain.from_iterable(map(ways, chosen)):
            judge(sent, await answer(crib, sent))
            sent_count += 1
            if sent_count % A_LOT == 0:
                fine = await crib.call("echo", {"value": {"still": "here"}})
                assert (fine.status, fine.json["data"]) == (200, {"still": "here"})
                assert crib.server.active == 0
    assert sent_count == REQUESTS * WAYS
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []
    print(f"{REQUESTS} distinct requests, each sent in {WAYS} ways: no 5xx, a good call after each {A_LOT}")


# --- spoilt bodies, over a socket, to a gateway that is a process of its own ---

VALID: tuple[tuple[str, str, Any], ...] = tuple(
    (method, probe.target or path, probe.body)
    for (method, path), probe in TABLE.items()
    if probe.body is not None and probe.statuses[-1] != 401
)
PIECES = (
    b"\x00",
    b"\xff\xfe",
    b"\\ud800",
    b"NaN",
    b"1e999",
    b"[" * 200,
    b'{"a":' * 200,
    b'"',
    b"\\u0000",
    b"9" * 400,
)


def spoilt(body: bytes, chance: random.Random) -> bytes:
    """A valid body with some bytes changed, cut out, doubled, or others put between."""
    changed = bytearray(body)
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(changed) + 1)
        way = chance.randrange(5)
        if way == 0:
            changed[at : at + 1] = bytes([chance.randrange(256)])
        elif way == 1:
            del changed[at : at + chance.randint(1, 12)]
        elif way == 2:
            changed[at:at] = changed[: chance.randint(1, 30)]
        elif way == 3:
            changed[at:at] = chance.choice(PIECES)
        else:
            changed = changed[:at]
    return bytes(changed)


async def send_lot(client: aiohttp.ClientSession, gateway: GatewayProcess, chance: random.Random) -> None:
    """Send a lot of spoilt bodies, then a good call."""

    async def send(method: str, target: str, body: bytes) -> None:
        headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
        async with client.request(method, gateway.url + target, data=body, headers=headers) as answer:
            said = await answer.read()
            assert answer.status < 500, (method, target, body, said)

    async with anyio.create_task_group() as tasks:
        for _ in range(A_LOT):
            method, target, body = chance.choice(VALID)
            tasks.start_soon(send, method, target, spoilt(json.dumps(body).encode(), chance))
    good: Any = {"name": "get_datetime", "arguments": {}}
    async with client.post(f"{gateway.url}/api/tools/execute", json=good) as answer:
        assert answer.status == 200, await answer.text()


async def test_spoilt_bodies_over_the_wire(tmp_path: Path) -> None:
    chance = random.Random(SEED)  # noqa: S311 - to repeat, not to hide
    log = tmp_path / "log"
    async with gateway_process(tmp_path, "limits: {per_user: null}", demo=False, log=log) as gateway:
        connector = aiohttp.TCPConnector(limit=8)
        async with aiohttp.ClientSession(headers=gateway.admin, connector=connector) as client:
            for _ in range(BODIES // A_LOT):
                await send_lot(client, gateway, chance)
        assert gateway.process.returncode is None
    told = log.read_text()
    assert "Traceback" not in told
    assert '"level":"error"' not in told
    print(f"{BODIES} spoilt bodies: no 5xx, no crash, a good call after each {A_LOT}")
