"""Sign-in links and page sessions: their lifetime and permissions."""

import pytest

from toolcrib.errors import Refused
from toolcrib.identity import Identity, KeyRing, PageSession, SignIn, digest, require_fresh
from toolcrib.identity.sign_in import (
    FRESH_SECONDS,
    IDLE_SECONDS,
    LINK_SECONDS,
    MAX_LINKS,
    MAX_SESSIONS,
    SESSION_SECONDS,
)
from toolcrib.interfaces import KeyRecord
from toolcrib.model import Caller, Credential
from toolcrib.observe import Redactor

pytestmark = pytest.mark.requirement("I1")

ADMIN_KEY = "the-admin-key-of-this-test-and-no-other"


class Clock:
    """A manual clock."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def sign_in(clock: Clock) -> SignIn:
    return SignIn(clock)


def opened(sign_in: SignIn, maker: str | None = None) -> PageSession:
    session = sign_in.exchange(sign_in.make_link(maker))
    assert session is not None
    return session


def identity_with(sign_in: SignIn, *records: KeyRecord) -> Identity:
    ring = KeyRing()
    ring.load(records)
    identity = Identity(ring, ADMIN_KEY)
    identity.sign_in = sign_in
    return identity


def who(identity: Identity, session: PageSession) -> Caller:
    return identity.caller(Credential(session=session.cookie))


def refusal(identity: Identity, session: PageSession) -> str:
    with pytest.raises(Refused) as raised:
        who(identity, session)
    return raised.value.problem.code


def operator(key: str, *, revoked: float | None = None) -> KeyRecord:
    permissions = frozenset({"crib:admin"})
    return KeyRecord(name="ops", digest=digest(key), permissions=permissions, revoked=revoked)


def test_link_works_once(sign_in: SignIn) -> None:
    token = sign_in.make_link()
    assert sign_in.exchange(token) is not None
    assert sign_in.exchange(token) is None
    assert sign_in.exchange("guess") is None


def test_link_lives_ten_minutes(sign_in: SignIn, clock: Clock) -> None:
    in_time, late = sign_in.make_link(), sign_in.make_link()
    clock.now += 600
    assert sign_in.exchange(in_time) is not None
    clock.now += 0.001
    assert sign_in.exchange(late) is None
    assert LINK_SECONDS == 600


def test_session_takes_both_cookie_and_secret(sign_in: SignIn) -> None:
    session, other = opened(sign_in), opened(sign_in)
    assert sign_in.verify(session.cookie, session.secret) is session
    for cookie, secret in (
        (session.cookie, session.cookie),
        (session.cookie, other.secret),
        (session.cookie, ""),
        (session.cookie, "é"),
        (session.secret, session.secret),
        ("", session.secret),
    ):
        assert sign_in.verify(cookie, secret) is None


def test_session_ends_when_idle(sign_in: SignIn, clock: Clock) -> None:
    session = opened(sign_in)
    clock.now += IDLE_SECONDS
    assert sign_in.verify(session.cookie, session.secret) is session
    clock.now += IDLE_SECONDS
    assert sign_in.verify(session.cookie, session.secret) is session
    clock.now += IDLE_SECONDS + 0.001
    assert sign_in.verify(session.cookie, session.secret) is None


def test_cookie_alone_does_not_keep_a_session_alive(sign_in: SignIn, clock: Clock) -> None:
    session = opened(sign_in)
    clock.now += IDLE_SECONDS - 1
    assert sign_in.session(session.cookie) is session
    assert sign_in.verify(session.cookie, "guess") is None
    clock.now += 2
    assert sign_in.verify(session.cookie, session.secret) is None


def test_session_ends_after_twelve_hours_of_use(sign_in: SignIn, clock: Clock) -> None:
    session, begun = opened(sign_in), clock.now
    while clock.now < begun + SESSION_SECONDS:
        clock.now += 600
        assert sign_in.verify(session.cookie, session.secret) is session
    clock.now += 1
    assert sign_in.verify(session.cookie, session.secret) is None


def test_session_ends_on_sign_out(sign_in: SignIn) -> None:
    session = opened(sign_in)
    sign_in.end(session.cookie)
    assert sign_in.verify(session.cookie, session.secret) is None
    sign_in.end(session.cookie)


def test_sign_in_is_fresh_for_fifteen_minutes(sign_in: SignIn, clock: Clock) -> None:
    identity, session = identity_with(sign_in), opened(sign_in)
    clock.now += 900
    require_fresh(who(identity, session))
    clock.now += 0.001
    with pytest.raises(Refused) as raised:
        require_fresh(who(identity, session))
    found = raised.value.problem
    assert (found.code, found.details["freshSignIn"]) == ("UNAUTHENTICATED", True)
    assert FRESH_SECONDS == found.details["maxAgeSeconds"] == 900
    # The rest of the caller is unchanged and prepared once.
    assert who(identity, session) is who(identity, session)
    assert who(identity, session).permissions == {"*"}


def test_link_of_the_admin_signs_in_as_admin(sign_in: SignIn) -> None:
    identity = identity_with(sign_in)
    admin = identity.bearer(f"Bearer {ADMIN_KEY}".encode())
    session = sign_in.exchange(identity.make_link(admin))
    assert session is not None
    assert who(identity, session) is admin


def test_link_of_a_key_signs_in_as_that_key(sign_in: SignIn) -> None:
    identity = identity_with(sign_in, operator("first"))
    caller = identity.bearer(b"Bearer first")
    session = sign_in.exchange(identity.make_link(caller))
    assert session is not None
    assert who(identity, session) == caller
    assert who(identity, session).permissions == {"crib:admin"}


@pytest.mark.parametrize("later", [operator("first", revoked=2.0), operator("second")])
def test_ending_a_key_ends_its_sessions(sign_in: SignIn, later: KeyRecord) -> None:
    identity = identity_with(sign_in, operator("first"))
    caller = identity.bearer(b"Bearer first")
    session = sign_in.exchange(identity.make_link(caller))
    pending = identity.make_link(caller)
    assert session is not None
    identity.ring.load([later])
    assert refusal(identity, session) == "UNAUTHENTICATED"
    assert sign_in.verify(session.cookie, session.secret) is None
    # An unused earlier link is invalid too.
    late = sign_in.exchange(pending)
    assert late is not None
    assert refusal(identity, late) == "UNAUTHENTICATED"


def test_revoked_key_makes_no_link(sign_in: SignIn) -> None:
    identity = identity_with(sign_in, operator("first"))
    caller = identity.bearer(b"Bearer first")
    identity.ring.load([operator("first", revoked=2.0)])
    with pytest.raises(Refused) as raised:
        identity.make_link(caller)
    assert raised.value.problem.code == "UNAUTHENTICATED"


def test_links_and_sessions_are_bounded(sign_in: SignIn) -> None:
    tokens = [sign_in.make_link() for _ in range(MAX_LINKS + 1)]
    assert sign_in.exchange(tokens[0]) is None
    sessions = [opened(sign_in) for _ in range(MAX_SESSIONS + 1)]
    assert sign_in.verify(sessions[0].cookie, sessions[0].secret) is None
    assert sign_in.verify(sessions[-1].cookie, sessions[-1].secret) is sessions[-1]


def test_log_masks_every_secret_of_a_sign_in(sign_in: SignIn) -> None:
    token, session, redactor = sign_in.make_link(), opened(sign_in), Redactor()
    for secret in (token, session.cookie, session.secret):
        for text in (secret, f"GET /#token={secret} 200", f"opened {secret}.", f"x={secret}"):
            assert secret not in redactor.text(text)
    assert session.secret not in repr(session)
    assert session.cookie not in repr(session)
