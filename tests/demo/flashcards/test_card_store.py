"""Cards last, belong to one learner, and are changed whole or not at all."""

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest

from tests.demo.flashcards.learner import MORNING, Time
from toolcrib.demo.flashcards.card_store import STARTERS, CardStore, LearnerCards, Review
from toolcrib.demo.flashcards.learning import after


@pytest.fixture
def box(db: Path) -> CardStore:
    return CardStore(db, Time())


def test_nothing_is_made_before_it_is_used(box: CardStore) -> None:
    assert box.path is not None
    assert not box.path.parent.exists()
    with box.open("ada"):
        pass
    assert box.path.exists()


def test_each_user_gets_own_copy_of_decks(box: CardStore) -> None:
    with box.open("ada") as drawer:
        card = drawer.card("card_ottawa")
        assert card is not None
        drawer.remember(card.id, after(card.memory, "easy", drawer.now))
        mine = drawer.decks()
    for other in ("bob", None):
        with box.open(other) as drawer:
            decks = drawer.decks()
        assert [deck.id for deck in decks] == [starter.id for starter in STARTERS]
        assert [deck.due for deck in decks] == [len(starter.cards) for starter in STARTERS]
    assert sum(deck.due for deck in mine) == sum(deck.due for deck in decks) - 1


def test_stored_cards_round_trip(box: CardStore) -> None:
    review = Review(
        card="card_ottawa", deck="deck_capitals", at=MORNING, grade="hard", millis=3100, expected=0.5
    )
    with box.open("ada") as drawer:
        card = drawer.card("card_ottawa")
        assert card is not None
        memory = after(card.memory, "hard", MORNING)
        drawer.remember(card.id, memory)
        drawer.note(review)
        drawer.prefer("short_sessions", -0.25)
    with CardStore(box.path, box.clock).open("ada") as drawer:
        kept = drawer.card("card_ottawa")
        assert kept is not None
        assert kept.memory == memory
        assert kept.tags == ("geography",)
        assert drawer.history("card_ottawa") == drawer.recent() == (review,)
        assert drawer.preferences()["short_sessions"] == -0.25
        record = drawer.record("deck_capitals")
        assert (record.reviews, record.recalled, record.last) == (1, 1, MORNING)
        assert drawer.record("deck_http").last is None


def test_failed_write_is_rolled_back(box: CardStore) -> None:
    with pytest.raises(sqlite3.IntegrityError), box.open("ada") as drawer:
        _prefer_and_fail(drawer)
    with box.open("ada") as drawer:
        assert drawer.preferences()["short_sessions"] == 0.3


def _prefer_and_fail(drawer: LearnerCards) -> None:
    drawer.prefer("short_sessions", 1.0)
    card = drawer.card("card_ottawa")
    assert card is not None
    drawer.add(card)


def test_many_at_once_wait_for_each_other(box: CardStore) -> None:
    def note(second: int) -> None:
        with box.open("ada") as drawer:
            count = len(drawer.recent())
            at = MORNING + timedelta(seconds=second)
            drawer.note(Review(card="card_ottawa", deck="deck_capitals", at=at, grade="good", millis=count))

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(note, range(24)))
    with box.open("ada") as drawer:
        # Each saw all that came before it.
        assert sorted(each.millis or 0 for each in drawer.recent()) == list(range(24))


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


def test_a_file_that_is_no_database_is_not_written_over(db: Path) -> None:
    db.parent.mkdir()
    db.write_text("these are my notes, and no database at all")
    with pytest.raises(sqlite3.DatabaseError), CardStore(db).open("ada"):
        pass
    assert db.read_text().startswith("these are my notes")
