"""Who may register which address, as app and as server, whatever address the gateway itself listens on."""

from collections.abc import AsyncGenerator

import anyio
import pytest

from tests.demo.demo_gateway import DEMO_USER
from tests.egress.corpus import LOOPBACK, MALFORMED, NEVER, PRIVATE, PUBLIC
from tests.gateways import open_gateway
from tests.walks.address_givers import BINDS, OPERATORS, OTHERS, Callers, Canary, callers, canary, names
from tests.walks.app_host import app_host

__all__ = ["names"]
pytestmark = [pytest.mark.anyio, pytest.mark.requirement("I5", "I1"), pytest.mark.slow]

EVERYONE = (*OPERATORS, *OTHERS)
WAYS = ("put", "add")
REFUSED = {"put": "INVALID_REQUEST", "add": "PERMISSION_DENIED"}
PATHS = {"put": "publicUrl", "add": "arguments.url"}
LOCAL = (
    "http://127.0.0.1:{port}/",
    "http://[::1]:{port}/",
    "http://localhost:{port}/",
    "http://[::ffff:7f00:1]:{port}/",
)
REMOTE = ("http://10.0.0.1/", "http://[fd00::1]/", "http://169.254.169.254/latest/", "http://0.0.0.0:{port}/")
PATIENCE = 30.0


@pytest.fixture(params=BINDS)
async def gateway(request: pytest.FixtureRequest) -> AsyncGenerator[Callers]:
    with anyio.fail_after(PATIENCE):
        async with callers(f"server: {{host: {request.param}}}") as made:
            yield made


@pytest.fixture
async def trap() -> AsyncGenerator[Canary]:
    async with canary() as made:
        yield made


async def code(gateway: Callers, way: str, who: str, url: str) -> str | None:
    """Register an address and remove it again; the code of the refusal, None where there is none."""
    reply = await getattr(gateway, way)(who, url)
    if reply.status < 300:
        await gateway.drop()
    return reply.code


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.check(9)
async def test_other_keys_give_no_private_address(gateway: Callers, trap: Canary, way: str) -> None:
    for who in OTHERS:
        every = (*LOOPBACK, *PRIVATE, *NEVER) if who == "developer key" else (*LOCAL, *REMOTE)
        for url in map(trap.at, every):
            assert await code(gateway, way, who, url) == REFUSED[way], (who, url)
        print(f"{who}, {way}: {len(every)} addresses refused, {trap.connections} connections")
    assert trap.connections == 0


@pytest.mark.parametrize("way", WAYS)
async def test_the_operators_key_gives_loopback_only(gateway: Callers, trap: Canary, way: str) -> None:
    for who in OPERATORS:
        for url in map(trap.at, (*PRIVATE, *NEVER) if who == "page" else REMOTE):
            assert await code(gateway, way, who, url) == REFUSED[way], (who, url)
    assert trap.connections == 0


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("host", BINDS)
async def test_permitted_addresses_per_key(host: str, way: str) -> None:
    # Without servers running, or the gateway would connect to public addresses.
    async with callers(f"server: {{host: {host}}}\nmcp: {{enabled: false}}") as gateway:
        for who in EVERYONE:
            public = PUBLIC if who == "developer key" else PUBLIC[:1]
            for url in (*public, *(LOOPBACK if who in OPERATORS else ())):
                if way == "add" or "?" not in url:
                    assert await code(gateway, way, who, url.replace("{port}", "7010")) is None, (who, url)


@pytest.mark.parametrize("way", WAYS)
async def test_no_key_gives_a_malformed_address(gateway: Callers, trap: Canary, way: str) -> None:
    for url in map(trap.at, MALFORMED):
        for who in ("admin key", "developer key"):
            assert await code(gateway, way, who, url) is not None, url
    assert trap.connections == 0


@pytest.mark.parametrize("name", ["loopback.example", "private.example", "metadata.example"])
@pytest.mark.usefixtures("names")
async def test_an_apps_name_is_judged_when_connected(gateway: Callers, trap: Canary, name: str) -> None:
    connected: dict[str, int] = {}
    for place, who in enumerate(EVERYONE):
        before, package = trap.connections, f"com.example.app{place}"
        assert (await gateway.put(who, f"http://{name}:{trap.port}", package)).status == 201
        error = (await gateway.use(package)).json["error"]
        assert (error["code"], error["stage"]) == ("APP_NOT_AVAILABLE", "webhook")
        connected[who] = trap.connections - before
    print(f"apps at {name}, connections by giver: {connected}")
    assert connected == {who: int(_may(who, name)) for who in EVERYONE}


@pytest.mark.parametrize("name", ["loopback.example", "private.example", "metadata.example"])
@pytest.mark.usefixtures("names")
async def test_a_servers_name_is_judged_when_connected(gateway: Callers, trap: Canary, name: str) -> None:
    for who in EVERYONE:
        before = trap.connections
        reply = await gateway.add(who, f"http://{name}:{trap.port}/mcp", start="eager")
        assert (reply.status, reply.json["data"]["state"]) == (200, "down")
        assert (trap.connections > before) == _may(who, name), who
        await gateway.drop()


def _may(who: str, name: str) -> bool:
    return who in OPERATORS and name == "loopback.example"


@pytest.mark.usefixtures("names")
async def test_an_open_port_looks_like_a_closed_one(gateway: Callers, trap: Canary) -> None:
    """Nothing in a refusal depends on what listens there: it comes before any connection."""
    async with canary() as closed:
        pass
    for host in ("127.0.0.1", "loopback.example"):
        said = {await _said(gateway, host, port) for port in (trap.port, closed.port)}
        assert len(said) == 1, said
    assert trap.connections == 0


async def _said(gateway: Callers, host: str, port: int) -> str:
    put = await gateway.put("developer key", f"http://{host}:{port}")
    used = await gateway.use() if put.status < 300 else put
    add = await gateway.add("developer key", f"http://{host}:{port}/mcp", start="eager")
    await gateway.drop()
    told = [
        reply.json.get("error") or reply.json["data"] for reply in (put, used, add) if reply.status != 201
    ]
    return str(told).replace(str(port), "PORT")


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "url, network, by_operator",
    [
        ("http://127.0.0.1:1", "127.0.0.0/8", True),
        ("http://localhost:1", "127.0.0.0/8", True),
        ("http://[::1]:1", "::1/128", True),
        ("http://10.1.2.3", "10.0.0.0/8", False),
        ("http://169.254.169.254", None, False),
    ],
)
async def test_refusal_names_the_setting(
    way: str, url: str, network: str | None, *, by_operator: bool
) -> None:
    async with callers() as gateway:
        error = (await getattr(gateway, way)("developer key", url)).json["error"]
    assert error["path"] == PATHS[way]
    assert (f"`allow_private: [{network}]`" in error["message"]) == (network is not None)
    assert ("admin key" in error["message"]) == by_operator
    assert url.partition("//")[2] not in error["message"]


async def test_allow_private_allows_every_key() -> None:
    async with callers("server: {host: 0.0.0.0}\nallow_private: [127.0.0.0/8]") as gateway, canary() as trap:
        for who in EVERYONE:
            before = trap.connections
            assert (await gateway.put(who, trap.at("http://127.0.0.1:{port}"))).status == 201
            await gateway.use()
            assert trap.connections == before + 1
            assert await code(gateway, "add", who, trap.at("http://127.0.0.1:{port}")) is None
            assert trap.connections > before + 1
            await gateway.drop()
        assert await code(gateway, "put", "developer key", trap.at("http://[::1]:{port}")) == REFUSED["put"]


async def test_changing_an_address_sets_its_giver() -> None:
    local, elsewhere = "http://127.0.0.1:{port}", "https://notes.example.org"
    async with callers() as gateway, canary() as trap:
        url = trap.at(local)
        assert (await gateway.put("developer key", elsewhere)).status == 201
        # The operator gives it a loopback address; the developer may keep that one, and no other.
        assert (await gateway.put("admin key", url)).status == 200
        assert (await gateway.put("developer key", f"{url}/")).status == 200
        assert (await gateway.put("developer key", f"{url}/more")).code == "INVALID_REQUEST"
        await gateway.use()
        assert trap.connections == 1
        # Another key with all permissions takes it away, and cannot put it back.
        assert (await gateway.put("wildcard key", elsewhere)).status == 200
        assert (await gateway.put("wildcard key", url)).code == "INVALID_REQUEST"


@pytest.mark.usefixtures("names")
async def test_a_name_stays_its_givers_when_the_operator_saves() -> None:
    """What the operator changes about an app must not open loopback to the name its developer gave."""
    async with callers() as gateway, canary() as trap:
        url = trap.at("http://loopback.example:{port}")
        assert (await gateway.put("developer key", url)).status == 201
        assert (await gateway.put("admin key", url)).status == 200
        await gateway.use()
        assert trap.connections == 0


@pytest.mark.parametrize("config", ["server: {host: 0.0.0.0}", "allow_private: []"])
async def test_the_demonstration_may_use_loopback(config: str) -> None:
    with anyio.fail_after(PATIENCE):
        async with app_host(config, demo=True) as runtime:
            await runtime.gateway.runtime.listens(runtime.url)
            await runtime.session(DEMO_USER)
            called = await runtime.call("com.toolcrib.reminder:list_reminders", {}, user=DEMO_USER)
            assert called.status == 200, called.body


async def test_demo_entries_belong_to_the_operator() -> None:
    async with open_gateway(demo=True) as crib:
        await crib.runtime.listens("http://127.0.0.1:6740")
        assert {app.url_giver for app in crib.runtime.console.apps.served()} == {"operator"}
