"""Stores decks, cards and reviews in SQLite: one file for all learners, opened per call."""

import os
import sqlite3
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from toolcrib.demo.flashcards.learning import Grade, Memory

# --- The decks every learner starts with ---


@dataclass(frozen=True, slots=True)
class Starter:
    """A predefined deck: fronts and backs by card id."""

    id: str
    name: str
    topic: str
    cards: dict[str, tuple[str, str]]


STARTERS = (
    Starter(
        "deck_capitals",
        "Capitals of the world",
        "geography",
        {
            "card_canberra": ("What is the capital of Australia?", "Canberra"),
            "card_ottawa": ("What is the capital of Canada?", "Ottawa"),
            "card_ankara": ("What is the capital of Turkey?", "Ankara"),
            "card_nairobi": ("What is the capital of Kenya?", "Nairobi"),
            "card_hanoi": ("What is the capital of Vietnam?", "Hanoi"),
            "card_quito": ("What is the capital of Ecuador?", "Quito"),
        },
    ),
    Starter(
        "deck_arithmetic",
        "Arithmetic in the head",
        "mathematics",
        {
            "card_squares": ("What is 17 times 17?", "289"),
            "card_halves": ("What is half of 378?", "189"),
            "card_powers": ("What is 2 to the power of 10?", "1024"),
            "card_shares": ("What is 15 per cent of 80?", "12"),
            "card_primes": ("Which prime follows 31?", "37"),
        },
    ),
    Starter(
        "deck_http",
        "HTTP status codes",
        "computing",
        {
            "card_http201": ("Which status says that something was made?", "201 Created"),
            "card_http304": ("Which status says that the copy you have is still good?", "304 Not Modified"),
            "card_http409": ("Which status says that a request clashes with what is there?", "409 Conflict"),
            "card_http418": ("Which status does a teapot give that is asked for coffee?", "418 I'm a teapot"),
            "card_http429": ("Which status says that you ask too often?", "429 Too Many Requests"),
        },
    ),
)

PREFERENCES = {"continuous_learning": 0.8, "short_sessions": 0.3}
"""Default preferences of a learner, from -1 to 1."""


# --- The SQLite store: every row belongs to one learner ---

Clock = Callable[[], datetime]
"""Returns the current time in UTC."""

_LOCK_TIMEOUT_SECONDS = 5.0
"""Timeout for the write lock of another connection."""
_MAX_RECENT_REVIEWS = 200
"""Maximum number of a learner's latest reviews that the hints are computed from."""

_TABLES = (
    """CREATE TABLE IF NOT EXISTS decks (
        learner TEXT, id TEXT, name TEXT, topic TEXT, PRIMARY KEY (learner, id))""",
    """CREATE TABLE IF NOT EXISTS cards (
        learner TEXT, id TEXT, deck TEXT, front TEXT, back TEXT, hint TEXT, tags TEXT,
        state INTEGER, step INTEGER, stability REAL, difficulty REAL, due REAL, reviewed REAL,
        PRIMARY KEY (learner, id))""",
    "CREATE INDEX IF NOT EXISTS cards_due ON cards (learner, due)",
    """CREATE TABLE IF NOT EXISTS reviews (
        learner TEXT, card TEXT, deck TEXT, at REAL, grade TEXT, millis INTEGER, expected REAL)""",
    "CREATE INDEX IF NOT EXISTS reviews_of_learner ON reviews (learner)",
    "CREATE INDEX IF NOT EXISTS reviews_of_card ON reviews (learner, card)",
    """CREATE TABLE IF NOT EXISTS preferences (
        learner TEXT, name TEXT, weight REAL, PRIMARY KEY (learner, name))""",
)
_CARDS = (
    "SELECT id, deck, front, back, hint, tags, state, step, stability, difficulty, due, reviewed FROM cards"
)
_CARD = _CARDS + " WHERE learner = ? AND id = ?"
_DUE = _CARDS + " WHERE learner = ? AND due <= ? AND deck = coalesce(?, deck) ORDER BY due, rowid"
_LATER = _CARDS + " WHERE learner = ? AND due > ? AND deck = coalesce(?, deck) ORDER BY due, rowid LIMIT 1"
_SAME = "SELECT id FROM cards WHERE learner = ? AND deck = ? AND lower(front) = lower(?) ORDER BY rowid"
_DECKS = """SELECT decks.id, decks.name, decks.topic, count(cards.id), total(cards.due <= ?)
    FROM decks LEFT JOIN cards ON cards.learner = decks.learner AND cards.deck = decks.id
    WHERE decks.learner = ? GROUP BY decks.id ORDER BY decks.rowid"""
_REVIEWS = "SELECT card, deck, at, grade, millis, expected FROM reviews"
# In insertion order, which stays correct if the clock is set back.
_OF_CARD = _REVIEWS + " WHERE learner = ? AND card = ? ORDER BY rowid"
_LATEST = _REVIEWS + " WHERE learner = ? ORDER BY rowid DESC LIMIT ?"
_OF_DECK = """SELECT count(*), total(grade != 'again'), max(at) FROM reviews WHERE learner = ? AND deck = ?"""


def utc_now() -> datetime:
    """Return the current time in seconds, which is precise enough for reviews."""
    return datetime.now(UTC).replace(microsecond=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Deck:
    """A deck, with its numbers of cards and of due cards."""

    id: str
    name: str
    topic: str
    cards: int
    due: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """A card with its question, answer and memory state."""

    id: str
    deck: str
    front: str
    back: str
    hint: str = ""
    tags: tuple[str, ...] = ()
    memory: Memory


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """One answer of the learner to a card."""

    card: str
    deck: str
    at: datetime
    grade: Grade
    millis: int | None = None
    """Response time in milliseconds."""
    expected: float | None = None
    """Estimated recall probability before the review; None for the first one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeckRecord:
    """Review statistics of a deck."""

    reviews: int
    recalled: int
    last: datetime | None


class LearnerCards:
    """The cards of one learner, within an open transaction."""

    def __init__(self, db: sqlite3.Connection, learner: str, now: datetime) -> None:
        self._db, self._learner, self.now = db, learner, now

    def decks(self) -> tuple[Deck, ...]:
        """Return all decks, oldest first."""
        rows = self._db.execute(_DECKS, (self.now.timestamp(), self._learner))
        return tuple(
            Deck(id=deck, name=name, topic=topic, cards=cards, due=int(due))
            for deck, name, topic, cards, due in rows
        )

    def deck(self, id: str) -> Deck | None:
        """Return one deck."""
        return next((deck for deck in self.decks() if deck.id == id), None)

    def card(self, id: str) -> Card | None:
        """Return one card."""
        row = self._db.execute(_CARD, (self._learner, id)).fetchone()
        return None if row is None else _card(row)

    def due(self, deck: str | None = None) -> tuple[Card, ...]:
        """Return the due cards, the longest overdue first."""
        return tuple(map(_card, self._db.execute(_DUE, (self._learner, self.now.timestamp(), deck))))

    def later(self, deck: str | None = None) -> Card | None:
        """Return the card that becomes due next."""
        row = self._db.execute(_LATER, (self._learner, self.now.timestamp(), deck)).fetchone()
        return None if row is None else _card(row)

    def with_front(self, deck: str, front: str) -> tuple[str, ...]:
        """Return the ids of a deck's cards with the same front, ignoring case."""
        rows = self._db.execute(_SAME, (self._learner, deck, front))
        return tuple(card for (card,) in rows)

    def add(self, card: Card) -> None:
        """Insert a card."""
        memory = card.memory
        row = (self._learner, card.id, card.deck, card.front, card.back, card.hint, "\n".join(card.tags))
        self._db.execute(
            "INSERT INTO cards VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", (*row, *_columns(memory))
        )

    def remember(self, id: str, memory: Memory) -> None:
        """Update the memory state of a card."""
        self._db.execute(
            "UPDATE cards SET state = ?, step = ?, stability = ?, difficulty = ?, due = ?, reviewed = ?"
            " WHERE learner = ? AND id = ?",
            (*_columns(memory), self._learner, id),
        )

    def note(self, review: Review) -> None:
        """Insert a review."""
        row = (self._learner, review.card, review.deck, review.at.timestamp())
        values = (review.grade, review.millis, review.expected)
        self._db.execute("INSERT INTO reviews VALUES (?, ?, ?, ?, ?, ?, ?)", (*row, *values))

    def history(self, card: str) -> tuple[Review, ...]:
        """Return the reviews of a card, latest last."""
        return tuple(map(_review, self._db.execute(_OF_CARD, (self._learner, card))))

    def recent(self) -> tuple[Review, ...]:
        """Return the latest reviews of all cards, latest last."""
        rows = self._db.execute(_LATEST, (self._learner, _MAX_RECENT_REVIEWS)).fetchall()
        return tuple(map(_review, reversed(rows)))

    def record(self, deck: str) -> DeckRecord:
        """Return the review statistics of a deck."""
        reviews, recalled, last = self._db.execute(_OF_DECK, (self._learner, deck)).fetchone()
        return DeckRecord(
            reviews=reviews, recalled=int(recalled), last=None if last is None else _moment(last)
        )

    def preferences(self) -> dict[str, float]:
        """Return the learner's preferences by name, from -1 to 1."""
        query = "SELECT name, weight FROM preferences WHERE learner = ? ORDER BY name"
        return dict(self._db.execute(query, (self._learner,)).fetchall())

    def prefer(self, name: str, weight: float) -> None:
        """Store a preference."""
        self._db.execute("INSERT OR REPLACE INTO preferences VALUES (?, ?, ?)", (self._learner, name, weight))

    def fill(self) -> None:
        """Create the predefined decks for a learner who has none."""
        if self._db.execute("SELECT 1 FROM decks WHERE learner = ?", (self._learner,)).fetchone():
            return
        for deck in STARTERS:
            self._db.execute(
                "INSERT INTO decks VALUES (?, ?, ?, ?)", (self._learner, deck.id, deck.name, deck.topic)
            )
            for card, (front, back) in deck.cards.items():
                known, tags = Memory(due=self.now), (deck.topic,)
                self.add(Card(id=card, deck=deck.id, front=front, back=back, tags=tags, memory=known))
        for name, weight in PREFERENCES.items():
            self.prefer(name, weight)


@dataclass(frozen=True, slots=True)
class CardStore:
    """The SQLite file of all cards; created on first use and open only during a call."""

    path: Path | None = None
    """None selects `flashcards.db` in `$TOOLCRIB_HOME`, else in `./.toolcrib`."""
    clock: Clock = utc_now

    @contextmanager
    def open(self, learner: str | None) -> Generator[LearnerCards]:
        """Open the cards of a learner in a transaction, which is rolled back on an error."""
        path = self.path or Path(os.environ.get("TOOLCRIB_HOME") or ".toolcrib") / "flashcards.db"
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.touch(mode=0o600)
        with closing(sqlite3.connect(path, timeout=_LOCK_TIMEOUT_SECONDS, isolation_level=None)) as db, db:
            db.execute("BEGIN IMMEDIATE")
            for table in _TABLES:
                db.execute(table)
            learner_cards = LearnerCards(db, learner or "", self.clock())
            learner_cards.fill()
            yield learner_cards


def _columns(memory: Memory) -> tuple[Any, ...]:
    reviewed = None if memory.reviewed is None else memory.reviewed.timestamp()
    known = (memory.state, memory.step, memory.stability, memory.difficulty)
    return (*known, memory.due.timestamp(), reviewed)


def _card(row: tuple[Any, ...]) -> Card:
    card, deck, front, back, hint, tags, state, step, stability, difficulty, due, reviewed = row
    memory = Memory(
        due=_moment(due),
        state=state,
        step=step,
        stability=stability,
        difficulty=difficulty,
        reviewed=None if reviewed is None else _moment(reviewed),
    )
    tag_list = tuple(tags.split("\n")) if tags else ()
    return Card(id=card, deck=deck, front=front, back=back, hint=hint, tags=tag_list, memory=memory)


def _review(row: tuple[Any, ...]) -> Review:
    card, deck, at, grade, millis, expected = row
    return Review(card=card, deck=deck, at=_moment(at), grade=grade, millis=millis, expected=expected)


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
