"""Presence forgets those who said no more, without being asked."""

from toolcrib.store.shared.memory import Presence


def test_expired_entries_are_removed() -> None:
    now = 0.0
    presence = Presence(lambda: now)
    for number in range(20_000):
        now += 1.0
        presence.appear(f"session:{number}", "here", 10.0)
    assert len(presence) <= 1_100
    assert len(presence.present("session:")) == 10
