"""Keys are accepted for at most a minute after they were last read from the store."""

from collections.abc import Callable

import anyio
import pytest

from toolcrib.errors import Refused, Unavailable
from toolcrib.identity import ADMIN, Identity, KeyRing, digest
from toolcrib.identity.keys import MAX_UNCHECKED_SECONDS
from toolcrib.interfaces import KeyRecord
from toolcrib.model import Credential

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("I1")]

RECORD = KeyRecord(name="worker", digest=digest("tc_worker"))


class Clock:
    """A manual clock."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def made(clock: Callable[[], float]) -> Identity:
    ring = KeyRing(clock)
    ring.load([RECORD])
    return Identity(ring, "the-admin-key")


def test_unchecked_keys_expire_and_the_admin_key_does_not() -> None:
    clock = Clock()
    identity = made(clock)
    assert identity.bearer(b"Bearer tc_worker").key == "worker"
    clock.now = MAX_UNCHECKED_SECONDS - 0.5
    assert identity.ring.expire() == 0.5
    assert identity.bearer(b"Bearer tc_worker").key == "worker"
    clock.now = MAX_UNCHECKED_SECONDS
    identity.ring.expire()
    for ask in (
        lambda: identity.bearer(b"Bearer tc_worker"),
        lambda: identity.caller(Credential(authorization="Bearer tc_worker")),
    ):
        with pytest.raises(Unavailable) as error:
            ask()
        assert (error.value.problem.code, bool(error.value.problem.retry_after)) == ("SOURCE_DOWN", True)
    assert identity.bearer(b"Bearer the-admin-key") is ADMIN


def test_keys_are_accepted_again_once_they_are_checked() -> None:
    clock = Clock()
    identity = made(clock)
    clock.now = MAX_UNCHECKED_SECONDS
    identity.ring.expire()
    identity.ring.load([RECORD])
    assert identity.bearer(b"Bearer tc_worker").key == "worker"
    with pytest.raises(Refused) as error:
        identity.bearer(b"Bearer tc_another")
    assert error.value.problem.code == "UNAUTHENTICATED"


async def test_keys_expire_without_a_request() -> None:
    clock = Clock()
    identity = made(clock)
    clock.now = MAX_UNCHECKED_SECONDS + 1
    with anyio.move_on_after(0.05):
        await identity.ring.run()
    with pytest.raises(Unavailable):
        identity.bearer(b"Bearer tc_worker")
