"""Renders hints as a short text for models."""

import re
from collections.abc import Callable, Iterator, Mapping
from math import ceil
from typing import Any, cast

import orjson

from toolcrib.model import Hints, HintSetting, JsonObject
from toolcrib.model.hints import Caution, NextAction

NameOf = Callable[[str], str | None]
"""Returns the name by which a model calls a tool; None for a tool that it cannot call."""

# --- Estimates the tokens of a text ---

_TOKEN_RUNS = re.compile(r"[A-Za-z]+|[0-9]+|\s+|[!-/:-@\[-`{-~]+|[^\x00-\x7f]")
_LETTERS_PER_TOKEN, _DIGITS_PER_TOKEN, _MARKS_PER_TOKEN = 6, 3, 3


def estimated_tokens(text: str) -> int:
    """Estimate the tokens of a text, without the tokenizer of any model.

    A token is up to six letters of a word with the space before it, three digits, three adjacent punctuation
    marks, or one character outside ASCII. It serves to compare texts:
    every model counts a little differently.
    """
    return sum(map(_tokens_of_run, _TOKEN_RUNS.findall(text)))


def _tokens_of_run(run: str) -> int:
    first = run[0]
    if first == " " and len(run) == 1:
        return 0
    if not first.isascii() or first.isspace():
        return 1
    if first.isalpha():
        return ceil(len(run) / _LETTERS_PER_TOKEN)
    return ceil(len(run) / (_DIGITS_PER_TOKEN if first.isdigit() else _MARKS_PER_TOKEN))


# --- Selects what a model can act on ---

_MINOR = "low"
_URGENT = frozenset({"critical", "high"})


def shows_hints(setting: HintSetting, *, failed: bool) -> bool:
    """Whether a model sees the hints of a result with this setting of its context."""
    return setting in ("brief", "full") or (failed and setting == "errors")


def is_complete_call(action: NextAction) -> bool:
    """Whether an action can be done as it is: a tool with all its arguments, or an HTTP request."""
    data = action.data or {}
    if isinstance(data.get("request"), Mapping):
        return True
    return isinstance(data.get("tool"), str) and isinstance(data.get("arguments"), Mapping)


def actionable_hints(hints: Hints) -> JsonObject:
    """Return the parts of hints that can be acted on, as JSON; empty if there are none."""
    parts = {
        "suggestedNextActions": [
            each.as_json() for each in hints.suggested_next_actions if is_complete_call(each)
        ],
        "warnings": [each.as_json() for each in hints.warnings],
        "contextNeeded": list(hints.context_needed),
    }
    return {name: items for name, items in parts.items() if items}


def model_json(hints: Hints, name_of: NameOf) -> JsonObject:
    """Return complete hints as JSON, with tools by the names the model uses; others are not suggested."""
    payload = hints.as_json()
    actions: list[JsonObject] = []
    for action in cast("list[JsonObject]", payload["suggestedNextActions"]):
        data: JsonObject = action.get("data") or {}
        tool = data.get("tool")
        name = name_of(tool) if isinstance(tool, str) else None
        if name is not None:
            actions.append({**action, "data": {**data, "tool": name}})
        elif not isinstance(tool, str):
            actions.append(action)
    return {**payload, "suggestedNextActions": actions}


# --- Renders the brief text: what to do next, what to be aware of, what is missing ---

MAX_BRIEF_TOKENS = 60
"""Tokens of a brief text, except for its first action and urgent warnings, which are never left out."""
_MAX_SENTENCE_CHARACTERS = 240
_ELLIPSIS = "…"


def brief_text(hints: Hints, name_of: NameOf, *, failed: bool) -> str:
    """Return the brief text of hints; empty if there is nothing to act on.

    Actions are complete calls; the advice of an error is shown in words if it is none.
    """
    # Most results have nothing to act on.
    if not (hints.suggested_next_actions or hints.warnings or hints.context_needed):
        return ""
    actions = list(_action_lines(hints.suggested_next_actions, name_of, failed=failed))
    lines = actions[:1] + [_warning_line(each) for each in hints.warnings if each.severity in _URGENT]
    further = [_warning_line(each) for each in hints.warnings if _is_of_interest(each)]
    if hints.context_needed:
        further.append(f"Needed: {_sentence(', '.join(hints.context_needed))}")
    return "\n".join(_with_further(lines, further + actions[1:]))


def _with_further(lines: list[str], further: list[str]) -> list[str]:
    """Return the lines, and the first of the further ones, as long as all are within the limit."""
    if not further or (not lines and len(further) == 1):
        return lines or further
    tokens = sum(map(estimated_tokens, lines))
    for index, line in enumerate(further):
        tokens += estimated_tokens(line)
        if tokens > MAX_BRIEF_TOKENS and (lines or index):
            return lines + further[:index]
    return lines + further


def _is_of_interest(warning: Caution) -> bool:
    return warning.severity not in _URGENT and warning.severity != _MINOR


def _action_lines(actions: tuple[NextAction, ...], name_of: NameOf, *, failed: bool) -> Iterator[str]:
    for action in actions:
        if is_complete_call(action):
            line = _call_line(action.data or {}, name_of)
        else:
            line = _advice_line(action, name_of) if failed else ""
        if line:
            yield line


def _call_line(data: Mapping[str, Any], name_of: NameOf) -> str:
    """Return a call with its complete arguments; empty for a tool that the model cannot call."""
    request = data.get("request")
    if isinstance(request, Mapping):
        return f"Next: {_request_text(cast('Mapping[str, Any]', request))}"
    name = name_of(data["tool"])
    if name is None:
        return ""
    after = data.get("after")
    wait = f"after {after:g} s, " if isinstance(after, int | float) and after > 0 else ""
    label = "Corrected call" if data.get("repair") is True and not wait else "Next"
    return f"{label}: {wait}{name} {_compact(data['arguments'])}"


def _request_text(request: Mapping[str, Any]) -> str:
    body = request.get("body")
    words = (request.get("method"), request.get("path"), None if body is None else _compact(body))
    return " ".join(str(each) for each in words if each)


def _compact(value: Any) -> str:
    return orjson.dumps(value).decode()


def _advice_line(action: NextAction, name_of: NameOf) -> str:
    """Return the advice of an error; empty if it is about a tool that the model cannot call."""
    tool = (action.data or {}).get("tool")
    if isinstance(tool, str) and name_of(tool) is None:
        return ""
    return _sentence(action.description or action.action.replace("-", " "))


def _warning_line(warning: Caution) -> str:
    return f"Warning: {_sentence(' '.join(filter(None, (warning.message, warning.suggested_fix))))}"


def _sentence(text: str) -> str:
    """Return a text on one line, cut to a limit: a server's text must not look like lines of the gateway."""
    line = " ".join(text.split())
    return line if len(line) <= _MAX_SENTENCE_CHARACTERS else line[: _MAX_SENTENCE_CHARACTERS - 1] + _ELLIPSIS
