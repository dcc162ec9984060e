"""The decks every learner starts with."""

from dataclasses import dataclass


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
            "card_http409": (
                "Which status says that a request clashes with what is there?",
                "409 Conflict",
            ),
            "card_http418": ("Which status does a teapot give that is asked for coffee?", "418 I'm a teapot"),
            "card_http429": ("Which status says that you ask too often?", "429 Too Many Requests"),
        },
    ),
)

PREFERENCES = {"continuous_learning": 0.8, "short_sessions": 0.3}
"""What a learner is taken to like, from -1 to 1, until they say otherwise."""
