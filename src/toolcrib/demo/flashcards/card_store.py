"""Decks, cards and reviews in SQLite: one file for all learners, opened for each call."""

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
    """A deck as it is handed out: cards by their id, each a front and a back."""

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
"""What a learner is taken to like, from -1 to 1, until they say otherwise."""


# --- Keeps decks, cards, reviews and preferences in SQLite, each learner's apart from all others' ---

Clock = Callable[[], datetime]
"""Tells the time, in UTC."""

_LOCK_TIMEOUT_SECONDS = 5.0
"""Seconds to wait for another writer."""
_MAX_RECENT_REVIEWS = 200
"""How many of a learner's latest reviews are looked at."""

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
# In the order they came, which a clock that is set back does not change.
_OF_CARD = _REVIEWS + " WHERE learner = ? AND card = ? ORDER BY rowid"
_LATEST = _REVIEWS + " WHERE learner = ? ORDER BY rowid DESC LIMIT ?"
_OF_DECK = """SELECT count(*), total(grade != 'again'), max(at) FROM reviews WHERE learner = ? AND deck = ?"""


def utc_now() -> datetime:
    """Tell the time of this machine, to the second: nobody learns faster."""
    return datetime.now(UTC).replace(microsecond=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Deck:
    """A set of cards, and how many of them are due."""

    id: str
    name: str
    topic: str
    cards: int
    due: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """A question, its answer, and what is remembered of it."""

    id: str
    deck: str
    front: str
    back: str
    hint: str = ""
    tags: tuple[str, ...] = ()
    memory: Memory


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """One answer of the learner."""

    card: str
    deck: str
    at: datetime
    grade: Grade
    millis: int | None = None
    """How long the answer took."""
    expected: float | None = None
    """The chance it had to be right; None the first time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeckRecord:
    """How a deck has done."""

    reviews: int
    recalled: int
    last: datetime | None


class LearnerCards:
    """One learner's part of the box, while it is open."""

    def __init__(self, db: sqlite3.Connection, learner: str, now: datetime) -> None:
        self._db, self._learner, self.now = db, learner, now

    def decks(self) -> tuple[Deck, ...]:
        """Return every deck, the oldest first."""
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
        """Return the cards that are due, the longest waiting first."""
        return tuple(map(_card, self._db.execute(_DUE, (self._learner, self.now.timestamp(), deck))))

    def later(self, deck: str | None = None) -> Card | None:
        """Return the card that is due next, of those that are not yet."""
        row = self._db.execute(_LATER, (self._learner, self.now.timestamp(), deck)).fetchone()
        return None if row is None else _card(row)

    def with_front(self, deck: str, front: str) -> tuple[str, ...]:
        """Return the cards of a deck that ask the same, whatever its case."""
        rows = self._db.execute(_SAME, (self._learner, deck, front))
        return tuple(card for (card,) in rows)

    def add(self, card: Card) -> None:
        """Put a new card in."""
        memory = card.memory
        row = (self._learner, card.id, card.deck, card.front, card.back, card.hint, "\n".join(card.tags))
        self._db.execute(
            "INSERT INTO cards VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", (*row, *_columns(memory))
        )

    def remember(self, id: str, memory: Memory) -> None:
        """Keep what is remembered of a card from now on."""
        self._db.execute(
            "UPDATE cards SET state = ?, step = ?, stability = ?, difficulty = ?, due = ?, reviewed = ?"
            " WHERE learner = ? AND id = ?",
            (*_columns(memory), self._learner, id),
        )

    def note(self, review: Review) -> None:
        """Write a review down."""
        row = (self._learner, review.card, review.deck, review.at.timestamp())
        said = (review.grade, review.millis, review.expected)
        self._db.execute("INSERT INTO reviews VALUES (?, ?, ?, ?, ?, ?, ?)", (*row, *said))

    def history(self, card: str) -> tuple[Review, ...]:
        """Return the reviews of a card, the latest last."""
        return tuple(map(_review, self._db.execute(_OF_CARD, (self._learner, card))))

    def recent(self) -> tuple[Review, ...]:
        """Return the learner's latest reviews of any card, the latest last."""
        rows = self._db.execute(_LATEST, (self._learner, _MAX_RECENT_REVIEWS)).fetchall()
        return tuple(map(_review, reversed(rows)))

    def record(self, deck: str) -> DeckRecord:
        """Return how a deck has done."""
        reviews, recalled, last = self._db.execute(_OF_DECK, (self._learner, deck)).fetchone()
        return DeckRecord(
            reviews=reviews, recalled=int(recalled), last=None if last is None else _moment(last)
        )

    def preferences(self) -> dict[str, float]:
        """Return what the learner likes, from -1 to 1."""
        asked = "SELECT name, weight FROM preferences WHERE learner = ? ORDER BY name"
        return dict(self._db.execute(asked, (self._learner,)).fetchall())

    def prefer(self, name: str, weight: float) -> None:
        """Keep how much the learner likes something."""
        self._db.execute("INSERT OR REPLACE INTO preferences VALUES (?, ?, ?)", (self._learner, name, weight))

    def fill(self) -> None:
        """Hand out the first decks to a learner who has none."""
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
    """The file all cards are in. It is made when it is first opened, and open only as long as it is used."""

    path: Path | None = None
    """None is `flashcards.db` in `$TOOLCRIB_HOME`, else in `./.toolcrib`."""
    clock: Clock = utc_now

    @contextmanager
    def open(self, learner: str | None) -> Generator[LearnerCards]:
        """Open one learner's drawer. All that is done in it is kept, or nothing if an error leaves it."""
        path = self.path or Path(os.environ.get("TOOLCRIB_HOME") or ".toolcrib") / "flashcards.db"
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.touch(mode=0o600)
        with closing(sqlite3.connect(path, timeout=_LOCK_TIMEOUT_SECONDS, isolation_level=None)) as db, db:
            db.execute("BEGIN IMMEDIATE")
            for table in _TABLES:
                db.execute(table)
            drawer = LearnerCards(db, learner or "", self.clock())
            drawer.fill()
            yield drawer


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
    spelled = tuple(tags.split("\n")) if tags else ()
    return Card(id=card, deck=deck, front=front, back=back, hint=hint, tags=spelled, memory=memory)


def _review(row: tuple[Any, ...]) -> Review:
    card, deck, at, grade, millis, expected = row
    return Review(card=card, deck=deck, at=_moment(at), grade=grade, millis=millis, expected=expected)


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
