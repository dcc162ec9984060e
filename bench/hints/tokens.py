"""What brief hints add to a model's context: their text, and an estimate of its tokens."""

from collections.abc import Iterator

import orjson

from toolcrib.model import Hints

BYTES_PER_TOKEN = 4
"""The usual estimate for English and JSON."""


def brief_tokens(hints: Hints) -> int:
    """Estimate the tokens of the brief text; 0 where there is nothing to act on."""
    return -(-len(brief_text(hints).encode()) // BYTES_PER_TOKEN)


def brief_text(hints: Hints) -> str:
    """Return what a model is told: what to do next with which arguments, warnings, and what is missing."""
    return "\n".join(_lines(hints))


def _lines(hints: Hints) -> Iterator[str]:
    for action in hints.suggested_next_actions:
        data = action.data or {}
        if "tool" in data and "arguments" in data:
            yield f"Next: {data['tool']} {orjson.dumps(data['arguments']).decode()}"
        elif "request" in data:
            yield f"Next: {orjson.dumps(data['request']).decode()}"
    yield from (f"Warning: {each.message}" for each in hints.warnings)
    if hints.context_needed:
        yield f"Missing: {', '.join(hints.context_needed)}"
