"""The card store: persistence, separate learners, transactions and file location."""

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest

from tests.demo.flashcards.learner import MORNING, Time
from toolcrib.demo.flashcards.card_store import STARTERS, CardStore, LearnerCards, Review
from toolcrib.demo.flashcards.learning import after


@pytest.fixture
def card_store(db: Path) -> CardStore:
    return CardStore(db, Time())


def test_file_is_created_on_first_use(card_store: CardStore) -> None:
    assert card_store.path is not None
    assert not card_store.path.parent.exists()
    with card_store.open("ada"):
        pass
    assert card_store.path.exists()


def test_each_user_gets_own_copy_of_decks(card_store: CardStore) -> None:
    with card_store.open("ada") as cards:
        card = cards.card("card_ottawa")
        assert card is not None
        cards.remember(card.id, after(card.memory, "easy", cards.now))
        own_decks = cards.decks()
    for other in ("bob", None):
        with card_store.open(other) as cards:
            decks = cards.decks()
        assert [deck.id for deck in decks] == [starter.id for starter in STARTERS]
        assert [deck.due for deck in decks] == [len(starter.cards) for starter in STARTERS]
    assert sum(deck.due for deck in own_decks) == sum(deck.due for deck in decks) - 1


def test_stored_cards_round_trip(card_store: CardStore) -> None:
    review = Review(
        card="card_ottawa", deck="deck_capitals", at=MORNING, grade="hard", millis=3100, expected=0.5
    )
    with card_store.open("ada") as cards:
        card = cards.card("card_ottawa")
        assert card is not None
        memory = after(card.memory, "hard", MORNING)
        cards.remember(card.id, memory)
        cards.note(review)
        cards.prefer("short_sessions", -0.25)
    with CardStore(card_store.path, card_store.clock).open("ada") as cards:
        stored = cards.card("card_ottawa")
        assert stored is not None
        assert stored.memory == memory
        assert stored.tags == ("geography",)
        assert cards.history("card_ottawa") == cards.recent() == (review,)
        assert cards.preferences()["short_sessions"] == -0.25
        record = cards.record("deck_capitals")
        assert (record.reviews, record.recalled, record.last) == (1, 1, MORNING)
        assert cards.record("deck_http").last is None


def test_failed_write_is_rolled_back(card_store: CardStore) -> None:
    with pytest.raises(sqlite3.IntegrityError), card_store.open("ada") as cards:
        _prefer_and_fail(cards)
    with card_store.open("ada") as cards:
        assert cards.preferences()["short_sessions"] == 0.3


def _prefer_and_fail(cards: LearnerCards) -> None:
    cards.prefer("short_sessions", 1.0)
    card = cards.card("card_ottawa")
    assert card is not None
    cards.add(card)


def test_concurrent_writes_are_serialized(card_store: CardStore) -> None:
    def note(second: int) -> None:
        with card_store.open("ada") as cards:
            count = len(cards.recent())
            at = MORNING + timedelta(seconds=second)
            cards.note(Review(card="card_ottawa", deck="deck_capitals", at=at, grade="good", millis=count))

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(note, range(24)))
    with card_store.open("ada") as cards:
        # Every transaction has seen all earlier ones.
        assert sorted(each.millis or 0 for each in cards.recent()) == list(range(24))


def test_default_path_is_in_the_data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TOOLCRIB_HOME", raising=False)
    with CardStore().open("ada"):
        pass
    monkeypatch.setenv("TOOLCRIB_HOME", str(tmp_path / "home"))
    with CardStore().open("ada"):
        pass
    found = sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.db"))
    assert found == [".toolcrib/flashcards.db", "home/flashcards.db"]


def test_file_of_another_format_is_not_overwritten(db: Path) -> None:
    db.parent.mkdir()
    db.write_text("these are my notes, and no database at all")
    with pytest.raises(sqlite3.DatabaseError), CardStore(db).open("ada"):
        pass
    assert db.read_text().startswith("these are my notes")
