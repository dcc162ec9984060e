"""Identity providers: which credentials are accepted."""

from pathlib import Path

import pytest

from toolcrib.errors import Refused
from toolcrib.identity import (
    AnonymousIdentity,
    Identity,
    KeyRing,
    TrustHeaderIdentity,
    admin_key,
    digest,
    new_key,
)
from toolcrib.interfaces import KeyRecord
from toolcrib.model import Credential

ADMIN_KEY, PLAIN_KEY, ACTING_KEY, ENDED_KEY = "admin-key", "tc_plain", "tc_acting", "tc_ended"


def ring() -> KeyRing:
    made = KeyRing()
    made.load(
        [
            KeyRecord(name="plain", digest=digest(PLAIN_KEY), permissions=frozenset({"a:b"}), home="support"),
            KeyRecord(name="acting", digest=digest(ACTING_KEY), act_as=True),
            KeyRecord(name="ended", digest=digest(ENDED_KEY), revoked=1.0),
        ]
    )
    return made


def bearer(key: str, user: str | None = None) -> Credential:
    return Credential(authorization=f"Bearer {key}", user=user)


def code(identity: Identity, credential: Credential) -> str:
    with pytest.raises(Refused) as refused:
        identity.caller(credential)
    return refused.value.problem.code


@pytest.mark.requirement("I1")
def test_key_identifies_its_caller() -> None:
    caller = Identity(ring(), ADMIN_KEY).caller(bearer(PLAIN_KEY))
    assert (caller.id, caller.context, caller.permissions) == ("key:plain", "support", {"a:b"})
    assert caller.user is None


@pytest.mark.requirement("I1")
def test_admin_key_has_all_permissions() -> None:
    identity = Identity(ring(), ADMIN_KEY)
    assert identity.caller(bearer(ADMIN_KEY)).may("anything:at-all")
    assert identity.caller(bearer(ADMIN_KEY, "u1")).user == "u1"


@pytest.mark.requirement("I1")
@pytest.mark.parametrize(
    "authorization",
    [
        "",
        "Bearer",
        "Bearer ",
        f"Basic {PLAIN_KEY}",
        PLAIN_KEY,
        "Bearer ' OR 1=1 --",
        f"Bearer {ENDED_KEY}",
        "Bearer x y",
    ],
)
def test_other_credentials_are_refused(authorization: str) -> None:
    assert code(Identity(ring(), ADMIN_KEY), Credential(authorization=authorization)) == "UNAUTHENTICATED"


@pytest.mark.requirement("I1")
@pytest.mark.check(1)
def test_header_without_key_is_never_an_identity() -> None:
    identity = Identity(ring(), ADMIN_KEY)
    assert code(identity, Credential(user="u1", loopback=True)) == "UNAUTHENTICATED"
    assert code(identity, bearer(PLAIN_KEY, "u1")) == "SCOPE_DENIED"
    acting = identity.caller(bearer(ACTING_KEY, "u1"))
    assert (acting.id, acting.user, acting.key) == ("user:u1", "u1", "acting")


@pytest.mark.parametrize("user", ["", "a\nb", "x" * 201])
def test_invalid_user_name_is_refused(user: str) -> None:
    assert code(Identity(ring(), ADMIN_KEY), bearer(ACTING_KEY, user)) == "INVALID_REQUEST"


@pytest.mark.requirement("I1")
def test_anonymous_callers_are_local_with_one_context() -> None:
    identity = Identity(ring(), ADMIN_KEY, anonymous=AnonymousIdentity("open"))
    caller = identity.caller(Credential(loopback=True))
    assert (caller.id, caller.context, caller.permissions) == ("anonymous", "open", frozenset())
    assert not caller.may_enter("default")
    assert code(identity, Credential(loopback=False)) == "UNAUTHENTICATED"
    assert code(identity, Credential(loopback=True, user="u1")) == "UNAUTHENTICATED"
    assert code(identity, Credential(loopback=True, authorization="Bearer wrong")) == "UNAUTHENTICATED"


@pytest.mark.requirement("I1")
def test_trust_header_accepts_local_requests() -> None:
    identity = Identity(ring(), ADMIN_KEY, trust_header=TrustHeaderIdentity())
    assert identity.caller(Credential(user="u1", loopback=True)).user == "u1"
    assert code(identity, Credential(user="u1", loopback=False)) == "UNAUTHENTICATED"
    assert code(identity, Credential(loopback=True)) == "UNAUTHENTICATED"


@pytest.mark.check(7)
def test_revoked_key_is_refused_after_loading() -> None:
    keys = ring()
    identity = Identity(keys, ADMIN_KEY)
    identity.caller(bearer(PLAIN_KEY))
    keys.load([KeyRecord(name="plain", digest=digest(PLAIN_KEY), revoked=2.0)])
    assert code(identity, bearer(PLAIN_KEY)) == "UNAUTHENTICATED"


@pytest.mark.requirement("I1")
def test_admin_key_is_generated_once_for_its_owner(tmp_path: Path) -> None:
    home = tmp_path / "state"
    made = admin_key(None, home, new_key)
    assert admin_key(None, home, new_key) == made
    assert admin_key("given", home, new_key) == "given"
    (kept,) = home.iterdir()
    assert kept.stat().st_mode & 0o777 == 0o600
    kept.chmod(0o644)
    with pytest.raises(PermissionError, match="chmod 600"):
        admin_key(None, home, new_key)


def test_derived_secrets_depend_on_the_admin_key() -> None:
    long = "x" * 32
    secret = Identity(ring(), long).secret("sessions")
    assert (len(secret), secret) == (32, Identity(KeyRing(), long).secret("sessions"))
    others = {
        Identity(ring(), long).secret("states"),
        Identity(ring(), long + "x").secret("sessions"),
        Identity(ring(), "short").secret("sessions"),
        Identity(ring(), "other").secret("sessions"),
    }
    assert len({secret, *others}) == 5
    assert Identity(ring(), "short").secret("sessions") in others


@pytest.mark.requirement("I1")
def test_listeners_are_notified_of_ended_keys() -> None:
    """Ended by this process, another replica, or the command line in the store."""
    keys, heard = ring(), list[str]()
    keys.listen(heard.append)
    plain = KeyRecord(name="plain", digest=digest(PLAIN_KEY))
    keys.load([plain, KeyRecord(name="acting", digest=digest("tc_rotated"))])
    assert heard == ["acting"]
    keys.load([plain, KeyRecord(name="acting", digest=digest("tc_rotated"), revoked=1.0)])
    keys.load([plain])
    assert heard == ["acting", "acting"]
