"""Posting to URLs of others: what is sent, what is kept, what an answer may be, and where nothing goes."""

import anyio
import pytest

from tests.egress.peers import FREE, OK, Peer, peer
from tests.texts import matches
from tests.waiting import until
from toolcrib.egress import AddressRules, Egress
from toolcrib.egress.connect import ResolvedAddress
from toolcrib.egress.json_post import (
    MAX_ERROR_BYTES,
    JsonPoster,
    PostResponse,
    PostResponseTooLarge,
    UrlForbidden,
)
from toolcrib.egress.response import ConnectionClosed, NoConnection, NotHttp

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

MOST = 100_000
LOOPBACK = Egress(allow_private=("127.0.0.0/8",))


class Server:
    """Answers everything alike, and remembers the connections and the requests."""

    def __init__(self, answer: bytes = OK) -> None:
        self.answer, self.connections, self.open = answer, 0, 0
        self.requests: list[bytes] = []

    async def behave(self, peer: Peer) -> None:
        self.connections += 1
        self.open += 1
        try:
            while True:
                self.requests.append(await peer.request())
                await peer.say(self.answer)
        finally:
            self.open -= 1


async def posted(post: JsonPoster, url: object, body: bytes = b"{}", most: int = MOST) -> PostResponse:
    with anyio.fail_after(10):
        return await post.send(str(url), body, {"X-Mark": "here"}, most_bytes=most)


def said(status: int, body: bytes, kind: bytes = b"application/json; charset=utf-8") -> bytes:
    head = b"HTTP/1.1 %d Said\r\nContent-Type: %b\r\nContent-Length: %d\r\n\r\n" % (status, kind, len(body))
    return head + body


async def test_post_sends_json_and_reads_response() -> None:
    server, post = Server(said(200, b'{"a":1}')), JsonPoster(AddressRules.same(LOOPBACK))
    async with peer(server.behave) as url:
        reply = await posted(post, url, b'{"b":2}')
        await post.close()
    assert reply == PostResponse(200, "application/json", b'{"a":1}')
    head, _, body = server.requests[0].partition(b"\r\n\r\n")
    lines = head.lower().split(b"\r\n")
    assert lines[0] == b"post /there?x=1 http/1.1"
    assert {b"x-mark: here", b"content-type: application/json", b"accept-encoding: identity"} < set(lines)
    assert body == b'{"b":2}'


async def test_a_connection_is_used_again_and_each_place_has_its_own() -> None:
    one, other, post = Server(), Server(), JsonPoster(AddressRules.same(FREE))
    async with peer(one.behave) as here, peer(other.behave) as there:
        for _ in range(3):
            await posted(post, here)
            await posted(post, here.with_path("/elsewhere"))
            await posted(post, there)
        await post.close()
    assert (one.connections, len(one.requests)) == (1, 6)
    assert (other.connections, len(other.requests)) == (1, 3)


async def test_url_credentials_use_their_own_connection() -> None:
    server, post = Server(), JsonPoster(AddressRules.same(FREE))
    async with peer(server.behave) as url:
        await posted(post, url.with_user("ann").with_password("secret"))
        await posted(post, url)
        await post.close()
    assert b"Authorization: Basic" in server.requests[0]
    assert b"Authorization" not in server.requests[1]


async def test_of_too_many_places_the_one_used_longest_ago_is_let_go() -> None:
    one, two, three = Server(), Server(), Server()
    post = JsonPoster(AddressRules.same(FREE), max_origins=2)
    async with peer(one.behave) as first, peer(two.behave) as second, peer(three.behave) as third:
        await posted(post, first)
        await posted(post, second)
        await posted(post, first)
        await posted(post, third)
        await until(lambda: two.open == 0)
        assert (one.open, three.open) == (1, 1)
        await posted(post, second)
        await post.close()
    assert two.connections == 2


async def test_a_place_in_use_is_not_let_go() -> None:
    answer, asked = anyio.Event(), anyio.Event()

    async def patient(peer: Peer) -> None:
        await peer.request()
        asked.set()
        await answer.wait()
        await peer.say(OK)

    server, post, replies = Server(), JsonPoster(AddressRules.same(FREE), max_origins=1), list[PostResponse]()

    async def wait(url: object) -> None:
        replies.append(await posted(post, url))

    async with peer(patient) as slow, peer(server.behave) as quick, anyio.create_task_group() as tasks:
        tasks.start_soon(wait, slow)
        await asked.wait()
        await posted(post, quick)
        answer.set()
    await post.close()
    assert replies == [PostResponse(200, "", b"ok")]


async def test_a_redirect_is_an_answer_and_is_not_followed() -> None:
    target, post = Server(), JsonPoster(AddressRules.same(FREE))
    async with peer(target.behave) as there:
        moved = b"HTTP/1.1 302 Found\r\nLocation: %b\r\nContent-Length: 0\r\n\r\n" % str(there).encode()
        async with peer(Server(moved).behave) as here:
            assert (await posted(post, here)).status == 302
            await post.close()
    assert target.connections == 0


@pytest.mark.parametrize("told", [True, False], ids=["as its head says", "as it turns out"])
async def test_an_answer_over_the_limit_is_not_read_on(told: bool) -> None:
    length = b"Content-Length: 20000000" if told else b"Connection: close"
    sent = 0

    async def endless(peer: Peer) -> None:
        nonlocal sent
        await peer.request()
        await peer.say(b"HTTP/1.1 200 OK\r\n%b\r\n\r\n" % length)
        for _ in range(320):
            await peer.say(b"x" * 65_536)
            sent += 65_536

    post = JsonPoster(AddressRules.same(FREE))
    async with peer(endless) as url:
        with pytest.raises(PostResponseTooLarge) as raised:
            await posted(post, url)
        assert matches("server", "an answer over the limit is not read on", str(raised.value))
        await post.close()
    assert sent < 20_000_000


async def test_an_answer_of_just_the_limit_is_read() -> None:
    post = JsonPoster(AddressRules.same(FREE))
    async with peer(Server(said(200, b"x" * MOST)).behave) as url:
        assert (await posted(post, url)).body == b"x" * MOST
        await post.close()


async def test_error_body_is_truncated_not_too_large() -> None:
    post = JsonPoster(AddressRules.same(FREE))
    async with peer(Server(said(500, b"y" * 1_000_000, b"text/html")).behave) as url:
        reply = await posted(post, url)
        assert reply == PostResponse(500, "text/html", b"y" * MAX_ERROR_BYTES)
        assert (await posted(post, url, most=10)).body == b"y" * 10
        await post.close()


async def test_refused_connection_sends_nothing() -> None:
    async with peer(Server().behave) as url:
        pass
    post = JsonPoster(AddressRules.same(FREE))
    with pytest.raises(NoConnection, match="refused") as unsent:
        await posted(post, url)
    assert not isinstance(unsent.value, UrlForbidden)
    await post.close()


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:9/",
        "http://localhost:9/",
        "http://169.254.169.254/latest",
        "http://[::1]:9/",
        "http://2130706433/",
        "http://user:password@example.com/",
        "ftp://example.com/",
        "http:///nowhere",
    ],
)
async def test_an_address_that_may_not_be_used_gets_nothing(url: str) -> None:
    post = JsonPoster(AddressRules.same(Egress()))
    with pytest.raises(UrlForbidden):
        await posted(post, url)
    await post.close()


async def test_a_name_that_leads_to_a_forbidden_address_gets_nothing() -> None:
    async def look(host: str, port: int) -> list[ResolvedAddress]:
        assert host == "rebound.example"
        return [ResolvedAddress(2, ("127.0.0.1", port))]

    server, post = Server(), JsonPoster(AddressRules.same(Egress()), resolver=look)
    async with peer(server.behave) as url:
        with pytest.raises(UrlForbidden):
            await posted(post, f"http://rebound.example:{url.port}/")
    await post.close()
    assert server.connections == 0


@pytest.mark.requirement("I5")
async def test_givers_share_no_connection() -> None:
    """The operator's warm connection to a name on loopback must not serve another key's app there."""

    async def look(host: str, port: int) -> list[ResolvedAddress]:
        del host
        return [ResolvedAddress(2, ("127.0.0.1", port))]

    rules = AddressRules.of((), ())
    server, post = Server(), JsonPoster(rules, resolver=look)
    async with peer(server.behave) as url:
        place = f"http://rebound.example:{url.port}/"
        for _ in range(2):
            await post.send(place, b"{}", {}, most_bytes=100, giver="operator")
        for giver in ("other", None):
            with pytest.raises(UrlForbidden):
                await post.send(place, b"{}", {}, most_bytes=100, giver=giver)
        assert server.connections == 1
        # Allowed by a reload, and taken back by another.
        rules.adopt(AddressRules.of(["127.0.0.0/8"], ()))
        await post.send(place, b"{}", {}, most_bytes=100, giver="other")
        rules.adopt(AddressRules.of((), ()))
        with pytest.raises(UrlForbidden):
            await post.send(place, b"{}", {}, most_bytes=100, giver="other")
    await post.close()
    assert server.connections == 2


async def test_a_name_that_no_name_can_be_is_not_sent_to() -> None:
    post = JsonPoster(AddressRules.same(Egress()))
    with pytest.raises(NoConnection):
        await posted(post, f"http://{'a' * 64}.example/")
    await post.close()


async def test_lost_connection_after_sending_is_reported_as_sent() -> None:
    async def leave(peer: Peer) -> None:
        await peer.request()

    async def stop_short(peer: Peer) -> None:
        await peer.request()
        await peer.say(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")

    async def babble(peer: Peer) -> None:
        await peer.request()
        await peer.say(b"hello there\r\n\r\n")

    post = JsonPoster(AddressRules.same(FREE))
    for behave, raised in ((leave, ConnectionClosed), (stop_short, ConnectionClosed), (babble, NotHttp)):
        async with peer(behave) as url:
            with pytest.raises(raised):
                await posted(post, url)
    await post.close()


async def test_cancelled_post_closes_its_connection() -> None:
    gone, limit = anyio.Event(), anyio.CancelScope()

    async def drip(peer: Peer) -> None:
        await peer.request()
        await peer.say(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nx")
        limit.deadline = anyio.current_time() + 0.05
        await peer.gone()
        gone.set()

    post = JsonPoster(AddressRules.same(FREE))
    async with peer(drip) as url:
        with limit:
            await post.send(str(url), b"{}", {}, most_bytes=MOST)
        assert limit.cancelled_caught
        with anyio.fail_after(10):
            await gone.wait()
    await post.close()


async def test_after_closing_nothing_is_sent() -> None:
    server, post = Server(), JsonPoster(AddressRules.same(FREE))
    async with peer(server.behave) as url:
        await posted(post, url)
        await post.close()
        with pytest.raises(NoConnection):
            await posted(post, url)
        await until(lambda: server.open == 0)
    assert len(server.requests) == 1
