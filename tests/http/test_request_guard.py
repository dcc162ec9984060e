"""What the guard lets through: our own names and origins, and headers of a sane size."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.http.requests import request
from toolcrib.errors import Refused
from toolcrib.http import AllowedHosts, RequestGuard

LOCAL = AllowedHosts("127.0.0.1")


def refused(guard: RequestGuard, pairs: list[tuple[bytes, bytes]]) -> str | None:
    try:
        guard.admit(request(pairs=pairs))
    except Refused as error:
        return error.problem.code
    return None


def host(value: bytes, *more: tuple[bytes, bytes]) -> list[tuple[bytes, bytes]]:
    return [(b"host", value), *more]


@pytest.mark.requirement("I1")
@pytest.mark.parametrize(
    "value", [b"127.0.0.1", b"127.0.0.1:6740", b"localhost:1", b"LOCALHOST", b"[::1]:6740", b"[::1]"]
)
def test_loopback_names_with_any_port(value: bytes) -> None:
    assert refused(RequestGuard(LOCAL), host(value)) is None


@pytest.mark.parametrize(
    "value",
    [b"evil.example", b"127.0.0.1.evil.example", b"localhost.", b"127.0.0.2", b"10.0.0.1:6740", b"[::2]"],
)
def test_other_names_are_refused(value: bytes) -> None:
    guard = RequestGuard(LOCAL)
    for _ in range(2):
        assert refused(guard, host(value)) == "HOST_REFUSED"


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b" ",
        b"x/health?y=",
        b"a#",
        b"a/admin",
        b"a@b",
        b"localhost:port",
        b"localhost:123456",
        b"lo\xe4l",
        b"a b",
        b":80",
    ],
)
def test_invalid_host_is_malformed(value: bytes) -> None:
    assert refused(RequestGuard(LOCAL), host(value)) == "INVALID_REQUEST"


def test_a_host_is_needed_and_only_one() -> None:
    guard = RequestGuard(LOCAL)
    assert refused(guard, []) == "INVALID_REQUEST"
    assert refused(guard, host(b"localhost", (b"host", b"localhost"))) == "INVALID_REQUEST"
    assert refused(guard, host(b"localhost", (b"host", b"evil.example"))) == "INVALID_REQUEST"


def test_configured_names() -> None:
    guard = RequestGuard(
        AllowedHosts(
            "0.0.0.0",
            allowed=("crib.example", "other.example:8443", "fe80::1"),
            public_url="https://x.example:1/p",
        )
    )
    for value in (
        b"crib.example",
        b"Crib.Example:99",
        b"other.example:8443",
        b"x.example:1",
        b"localhost:5",
        b"[fe80::1]:2",
    ):
        assert refused(guard, host(value)) is None, value
    for value in (b"other.example", b"other.example:1", b"x.example", b"10.0.0.7"):
        assert refused(guard, host(value)) == "HOST_REFUSED", value


def test_the_address_it_is_bound_to() -> None:
    assert refused(RequestGuard(AllowedHosts("10.1.2.3")), host(b"10.1.2.3:6740")) is None
    assert refused(RequestGuard(AllowedHosts("10.1.2.3")), host(b"localhost:6740")) == "HOST_REFUSED"
    assert refused(RequestGuard(AllowedHosts("fd00::1")), host(b"[fd00::1]:6740")) is None
    assert refused(RequestGuard(AllowedHosts("crib.lan")), host(b"crib.lan")) is None


def test_a_name_that_is_none_cannot_be_allowed() -> None:
    with pytest.raises(ValueError, match="is not a host name"):
        AllowedHosts("127.0.0.1", allowed=("a b",))


@pytest.mark.parametrize(
    "origin, code",
    [
        (b"http://localhost:6740", None),
        (b"https://LOCALHOST:6740", None),
        (b"http://localhost:6741", "ORIGIN_REFUSED"),
        (b"http://localhost", "ORIGIN_REFUSED"),
        (b"http://evil.example", "ORIGIN_REFUSED"),
        (b"null", "ORIGIN_REFUSED"),
        (b"", "ORIGIN_REFUSED"),
        (b"file://localhost:6740", "ORIGIN_REFUSED"),
        (b"http://localhost:6740.evil.example", "ORIGIN_REFUSED"),
        (b"chrome-extension://abc", "ORIGIN_REFUSED"),
    ],
)
def test_origins(origin: bytes, code: str | None) -> None:
    guard = RequestGuard(LOCAL)
    for _ in range(2):
        assert refused(guard, host(b"localhost:6740", (b"origin", origin))) == code


def test_the_public_address_is_an_origin_of_ours() -> None:
    guard = RequestGuard(AllowedHosts("127.0.0.1", public_url="https://crib.example"))
    assert refused(guard, host(b"127.0.0.1:6740", (b"origin", b"https://crib.example"))) is None
    assert refused(guard, host(b"127.0.0.1:6740", (b"origin", b"http://crib.example"))) == "ORIGIN_REFUSED"


def test_origin_is_cached_per_host() -> None:
    guard = RequestGuard(LOCAL)
    assert refused(guard, host(b"localhost:1", (b"origin", b"http://localhost:1"))) is None
    assert refused(guard, host(b"localhost:2", (b"origin", b"http://localhost:1"))) == "ORIGIN_REFUSED"


@pytest.mark.parametrize("name", [b"x_user_id", b"_", b"authorization_"])
@pytest.mark.check(1)
def test_names_with_underscores_are_refused(name: bytes) -> None:
    guard = RequestGuard(LOCAL)
    for _ in range(2):
        assert refused(guard, host(b"localhost", (name, b"x"))) == "INVALID_REQUEST"


@pytest.mark.parametrize(
    "name", [b"authorization", b"x-user-id", b"cookie", b"content-type", b"content-length"]
)
@pytest.mark.check(1)
def test_duplicate_credential_headers_are_refused(name: bytes) -> None:
    assert refused(RequestGuard(LOCAL), host(b"localhost", (name, b"1"), (name, b"1"))) == "INVALID_REQUEST"


def test_other_headers_may_come_twice_and_are_joined() -> None:
    asked = request(pairs=host(b"localhost", (b"accept", b"a"), (b"accept", b"b")))
    RequestGuard(LOCAL).admit(asked)
    assert asked.headers[b"accept"] == b"a, b"


def test_too_many_and_too_large_headers() -> None:
    guard = RequestGuard(LOCAL)
    many = [(b"x-%d" % number, b"1") for number in range(99)]
    assert refused(guard, host(b"localhost", *many)) is None
    assert refused(guard, host(b"localhost", *many, (b"x-more", b"1"))) == "INVALID_REQUEST"
    assert refused(guard, host(b"localhost", *[(b"x-a", b"1")] * 100)) == "INVALID_REQUEST"
    assert refused(guard, host(b"localhost", (b"x-a", b"1" * 32_000))) is None
    assert refused(guard, host(b"localhost", (b"x-a", b"1" * 33_000))) == "INVALID_REQUEST"
    assert (
        refused(guard, host(b"localhost", (b"x-a", b"1" * 20_000), (b"x-a", b"1" * 20_000)))
        == "INVALID_REQUEST"
    )


def test_cache_is_bounded() -> None:
    guard = RequestGuard(LOCAL)
    for port in range(1000):
        value = b"localhost:%d" % port
        assert refused(guard, host(value, (b"x-%d" % port, b""), (b"origin", b"http://" + value))) is None
    remembered = {name: len(known) for name, known in vars(guard).items() if name.startswith("_known")}
    assert remembered == {"_known_hosts": 256, "_known_origins": 256, "_known_names": 256}


@given(value=st.binary(max_size=40))
def test_no_bytes_in_a_host_do_more_than_be_refused(value: bytes) -> None:
    assert refused(RequestGuard(LOCAL), host(value)) in {None, "INVALID_REQUEST", "HOST_REFUSED"}
    assert refused(RequestGuard(LOCAL), host(b"localhost", (b"origin", value))) in {None, "ORIGIN_REFUSED"}


@pytest.mark.requirement("I5")
@pytest.mark.parametrize(
    "version, fields, code",
    [
        ("1.1", [b"chunked"], None),
        ("1.1", [b" Chunked "], None),
        ("1.1", [b"gzip, chunked"], "INVALID_REQUEST"),
        ("1.1", [b"chunked", b"chunked"], "INVALID_REQUEST"),
        ("1.0", [b"chunked"], "INVALID_REQUEST"),
        ("1.1", [b"identity"], "INVALID_REQUEST"),
    ],
)
def test_transfer_coding_is_checked_on_every_server(
    version: str, fields: list[bytes], code: str | None
) -> None:
    guard = RequestGuard(LOCAL)
    for _ in range(2):
        asked = request(pairs=host(b"localhost", *((b"transfer-encoding", each) for each in fields)))
        asked.scope["http_version"] = version
        try:
            guard.admit(asked)
            found = None
        except Refused as error:
            found = error.problem.code
        assert found == code


def test_transfer_coding_with_a_length_is_refused() -> None:
    both = ((b"transfer-encoding", b"chunked"), (b"content-length", b"3"))
    assert refused(RequestGuard(LOCAL), host(b"localhost", *both)) == "INVALID_REQUEST"
