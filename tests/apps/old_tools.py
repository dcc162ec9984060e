"""Tools of the old shape: the design's own kind of example, and any that hypothesis can think of."""

from typing import Any

from hypothesis import strategies as st

REMINDER: dict[str, Any] = {
    "id": "add_reminder",
    "description": "Add a reminder for the user",
    "activationPhrases": ["remind me", "set a reminder"],
    "parameters": {
        "text": {"type": "string", "description": "What to remind about", "required": True},
        "priority": {"type": "string", "description": "How urgent", "enum": ["low", "high"]},
        "count": {"type": "number", "description": "How often", "required": False},
    },
}
MIGRATED: dict[str, Any] = {
    "name": "add_reminder",
    "description": "Add a reminder for the user",
    "inputSchema": {
        "type": "object",
        "properties": {
            "text": {"type": "string", "description": "What to remind about"},
            "priority": {"type": "string", "description": "How urgent", "enum": ["low", "high"]},
            "count": {"type": "number", "description": "How often"},
        },
        "required": ["text"],
    },
    "mentraExtensions": {"activationPhrases": ["remind me", "set a reminder"]},
}

_WORDS = st.text(st.characters(codec="utf-8", categories=("L", "N", "P")), min_size=1, max_size=12)
_TEXTS = st.builds("{} {}".format, _WORDS, _WORDS)


def _parameter(kind: str, values: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {"type": st.just(kind), "description": _TEXTS},
        optional={
            "enum": st.lists(values, min_size=1, max_size=3, unique=True) | st.none(),
            "required": st.booleans(),
        },
    )


_PARAMETERS = (
    _parameter("string", _WORDS)
    | _parameter("number", st.integers(-1000, 1000))
    | _parameter("boolean", st.booleans())
)

OLD_TOOLS: st.SearchStrategy[list[dict[str, Any]]] = st.lists(
    st.fixed_dictionaries(
        {"id": st.from_regex(r"[a-z][a-z0-9_]{0,10}", fullmatch=True), "description": _TEXTS},
        optional={
            "activationPhrases": st.lists(_TEXTS, max_size=3) | st.none(),
            "parameters": st.dictionaries(_WORDS, _PARAMETERS, max_size=3) | st.none(),
        },
    ),
    max_size=4,
    unique_by=lambda tool: tool["id"],
)
