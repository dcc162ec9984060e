"""Where the arguments of a call came from, learned without keeping a value."""

import gc
from typing import Any

import pytest

from toolcrib.interfaces import ArgumentSource, LearnedStep
from toolcrib.model import JsonObject, Origin
from toolcrib.observe import CallEntry, Sequences
from toolcrib.observe.argument_sources import (
    MAX_FINGERPRINT_VALUES,
    MAX_SOURCES,
    CallValues,
    fingerprint,
    sources_of,
)
from toolcrib.testing import a_caller, a_tool

SECRET = "ann-private-value-4711"


def traced(before: Any, arguments: JsonObject, given: JsonObject | None = None) -> tuple[ArgumentSource, ...]:
    return sources_of(arguments, fingerprint(CallValues(given or {}, before)))


@pytest.mark.requirement("E18")
def test_arguments_are_traced_to_paths_and_names() -> None:
    data = {"decks": [{"id": "deck_1"}, {"id": "deck_2"}], "number": 7}
    given = {"owner": "ada", "words": "sums"}
    assert traced(data, {"deck": "deck_2", "owner": "ada", "issue_number": 7}, given) == (
        ArgumentSource("deck", ("decks", 0, "id")),
        ArgumentSource("issue_number", ("number",)),
        ArgumentSource("owner", given="owner"),
    )


@pytest.mark.parametrize(
    "data, arguments",
    [
        ({"id": "deck_1"}, {"id": "deck_9"}),
        ({"total": 7}, {"limit": 7}),
        ({"ok": True}, {"ok": True}),
        ({"unit": "km"}, {"unit": "km"}),
        ({"text": "x" * 300}, {"text": "x" * 300}),
        ({"access_token": "abcdef"}, {"access_token": "abcdef"}),
        ({"ann@example.com": "abcdef"}, {"name": "abcdef"}),
        ({"id": "abcdef"}, {f"a{number}": "abcdef" for number in range(MAX_SOURCES + 1)}),
        ({"id": "other"}, {"words": "sums"}),
    ],
    ids=lambda each: str(each)[:40],
)
def test_constants_secrets_and_content_are_not_traced(data: Any, arguments: JsonObject) -> None:
    assert traced(data, arguments, {"words": "sums"}) == ()


def test_fingerprint_is_bounded() -> None:
    data = [{"id": f"value-{number}"} for number in range(5_000)]
    assert len(fingerprint(CallValues({}, data))) <= MAX_FINGERPRINT_VALUES


# --- sequences ---


class Session:
    """Calls of callers, as the recorder passes them on."""

    def __init__(self) -> None:
        self.sequences, self.count = Sequences(), 0

    def call(self, who: str, tool: str, arguments: JsonObject, data: Any, at: float = 0.0) -> None:
        self.count += 1
        entry = CallEntry(
            id=str(self.count),
            tool=a_tool(tool),
            caller=a_caller(id=who),
            origin=Origin(),
            problem=None,
            cached=False,
            seconds=0.1,
            at=at,
        )
        self.sequences.note_values({entry.id: CallValues(arguments, data)})
        self.sequences.take([entry])


@pytest.mark.requirement("E18")
def test_the_mapping_is_shared_and_no_value() -> None:
    session = Session()
    session.call("key:ann", "a:find", {"words": SECRET}, {"found": [{"id": f"{SECRET}-id"}]})
    session.call("key:ann", "a:get", {"card": f"{SECRET}-id"}, {})
    sources = (ArgumentSource("card", ("found", 0, "id")),)
    assert session.sequences.steps("a:find", "key:bob") == (LearnedStep("a:get", 1.0, sources),)
    session.call("key:ann", "a:end", {}, {})
    gc.collect()
    assert not any(SECRET in repr(each) for each in vars(session.sequences).values())


@pytest.mark.requirement("E18")
def test_steps_become_a_callers_own_when_repeated() -> None:
    session = Session()
    for number in range(3):
        session.call("key:ann", "a:find", {}, {"id": f"card-{number}"}, at=float(number))
        session.call("key:ann", "a:drop", {"id": f"card-{number}"}, {}, at=number + 0.5)
        own = [each.own for each in session.sequences.steps("a:find", "key:ann")]
        assert own == [number > 0]
    assert [each.own for each in session.sequences.steps("a:find", "key:bob")] == [False]


def test_step_without_traced_arguments_is_not_learned() -> None:
    session = Session()
    session.call("key:ann", "a:find", {}, {"id": "card-1"})
    session.call("key:ann", "a:get", {"id": "card-2"}, {})
    assert session.sequences.followers("a:find") == (("a:get", 1.0),)
    assert session.sequences.steps("a:find", "key:ann") == ()


def test_values_of_a_session_are_dropped_after_ten_minutes() -> None:
    session = Session()
    session.call("key:ann", "a:find", {}, {"id": "card-1"}, at=0.0)
    session.call("key:bob", "a:other", {}, {}, at=601.0)
    (ann, _bob) = session.sequences._last.values()  # pyright: ignore[reportPrivateUsage]
    assert ann.values is None


def test_sessions_with_values_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolcrib.observe.sequences._MAX_FINGERPRINTS", 2)
    session = Session()
    for number in range(5):
        session.call(f"key:{number}", "a:find", {}, {"id": "card-1"})
    for number in reversed(range(5)):
        session.call(f"key:{number}", "a:get", {"id": "card-1"}, {})
    voters = session.sequences._votes["a:find"]  # pyright: ignore[reportPrivateUsage]
    assert sum(bool(steps[0][1]) for steps in voters.values()) == 2
