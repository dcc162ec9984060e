"""Sends a corpus of messages to our frontend and the official SDK's server; each difference has a reason."""

from collections.abc import AsyncGenerator
from dataclasses import dataclass, fields
from typing import Any

import pytest

from tests.frontends.mcp.corpus import INTRODUCTION, Case, cases
from tests.frontends.mcp.reference import Peer, Seen, peers

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("B2")]

CASES = {case.name: case for case in cases()}


@dataclass(frozen=True)
class Difference:
    """We differ, in these cases, because."""

    because: str
    ours: dict[str, Any]
    theirs: dict[str, Any]
    cases: tuple[str, ...]


def both(*names: str) -> tuple[str, ...]:
    """Cases that there are in both eras."""
    return tuple(f"{era}: {name}" for era in ("modern", "legacy") for name in names)


def legacy(*names: str) -> tuple[str, ...]:
    return tuple(f"legacy: {name}" for name in names)


def modern(*names: str) -> tuple[str, ...]:
    return tuple(f"modern: {name}" for name in names)


RESULT = {"status": 200, "id": "the same", "error": None}
LISTED = {"modern": {**RESULT, "result": "complete"}, "legacy": {**RESULT, "result": "untyped"}}
MALFORMED = (
    *(f"JSON-RPC {version}" for version in ("not said", "'1.0'", "2.0", "None")),
    *(f"a method {method}" for method in ("not said", "5", "None", "['tools/list']")),
    *(f"parameters {params}" for params in ("[1]", "'x'", "5")),
)
NO_MESSAGE = ("null", "a number", "text", "a list of nothing", "a batch", "a batch of two", "an empty object")
ODD_IDS = ("'1.0' of float", "'1.5' of float", "'None' of NoneType", "'True' of bool", "'[1]' of list")
REFUSED = {"status": 400, "id": "null", "error": -32600, "result": None}

DIFFERENCES = [
    Difference(
        "a capability, or a token, that is not what it must be counts as none: nothing is done with it",
        ours=LISTED["modern"],
        theirs={"status": 400, "id": "the same", "error": -32602, "result": None},
        cases=modern("elicitation that is a number", "a token that is an object"),
    ),
    Difference(
        "the same for a client that introduces itself",
        ours={"error": None, "result": "untyped", "opens": True},
        theirs={"error": -32602, "result": None, "opens": True},
        cases=("opening: with sampling that is a number",),
    ),
    Difference(
        "we seal states, so one that we did not give is of no use; there each tool must find out for itself",
        ours={"status": 400, "error": -32600, "result": None, "is_error": None},
        theirs={"status": 200, "error": None, "result": "complete", "is_error": False},
        cases=modern("a state nobody gave"),
    ),
    Difference(
        "answers are an object, or are left out; the conformance suite wants null refused",
        ours={"status": 400, "error": -32602, "result": None, "is_error": None},
        theirs={"status": 200, "error": None, "result": "complete", "is_error": False},
        cases=modern("answers that are null"),
    ),
    Difference(
        "whatever we refuse is refused in words",
        ours={"kind": "json", "id": "null", "error": -32600},
        theirs={"kind": "nothing", "id": "none", "error": None},
        cases=modern(
            *(f"accepts {kind}" for kind in ("JSON alone", "events alone", "neither", "an empty word")),
            "GET",
            "DELETE",
        ),
    ),
    Difference(
        "a client that does not say what it takes, takes anything: so HTTP has it",
        ours={**LISTED["modern"], "kind": "json"},
        theirs={"status": 406, "kind": "nothing", "id": "none", "error": None, "result": None},
        cases=modern("accepts nothing it says"),
    ),
    Difference(
        "a client with a session gets what it can be given: without events nothing is said before the answer",
        ours=LISTED["legacy"],
        theirs={"status": 406, "id": "null", "error": -32600, "result": None},
        cases=legacy(
            *(f"accepts {kind}" for kind in ("JSON alone", "events alone", "neither", "an empty word")),
            "accepts nothing it says",
        ),
    ),
    Difference(
        "what we refuse for its media type is refused in the words of the protocol too",
        ours={"kind": "json", "id": "null", "error": -32600},
        theirs={"kind": "something else", "id": "none", "error": None},
        cases=both("sends None", "sends text/plain", "too large"),
    ),
    Difference(
        "media types are the same in capitals",
        ours=LISTED["legacy"],
        theirs={"status": 415, "id": "null", "error": -32600, "result": None},
        cases=legacy("sends APPLICATION/JSON"),
    ),
    Difference(
        "a media type is not judged by how it begins",
        ours=REFUSED,
        theirs=LISTED["modern"],
        cases=modern("sends application/jsonp"),
    ),
    Difference(
        "what is wrong with a request is 400, its media type included",
        ours={"status": 400},
        theirs={"status": 415},
        cases=legacy("sends application/jsonp"),
    ),
    Difference(
        "a request that can be told from others by its id is refused by it",
        ours={"id": "the same"},
        theirs={"id": "null"},
        cases=(
            *legacy("no session", "an unknown session", "an empty session"),
            *modern(*MALFORMED, "an answer", "an error", "an error that is text", "an answer that is text"),
            *modern("an answer and an error"),
        ),
    ),
    Difference(
        "the same; and in JSON-RPC what is no request is -32600, not a fault of its parameters",
        ours={"id": "the same", "error": -32600},
        theirs={"id": "null", "error": -32602},
        cases=legacy(*MALFORMED),
    ),
    Difference(
        "members that differ in case alone are refused: a reader that ignores case would take the other one",
        ours={"status": 400, "error": -32600, "result": None},
        theirs={"status": 200, "error": None, "result": "complete"},
        cases=modern("a member of another case"),
    ),
    Difference(
        "the same before the modern era",
        ours={"status": 400, "error": -32600, "result": None},
        theirs={"status": 200, "error": None, "result": "untyped"},
        cases=legacy("a member of another case"),
    ),
    Difference(
        "in JSON-RPC what is no request is -32600, not a fault of its parameters",
        ours={"error": -32600},
        theirs={"error": -32602},
        cases=legacy(*NO_MESSAGE, "a notification with a list", "an answer to nobody", "an answer to null"),
    ),
    Difference(
        "batches belong to 2025-03-26, where we take them",
        ours=LISTED["legacy"],
        theirs={"status": 400, "id": "null", "error": -32602, "result": None},
        cases=legacy("a batch in 2025-03-26"),
    ),
    Difference(
        "JSON begins with no byte order mark",
        ours={**REFUSED, "error": -32700},
        theirs=LISTED["modern"],
        cases=modern("a byte order mark"),
    ),
    Difference(
        "NaN is no JSON",
        ours={"id": "null", "error": -32700},
        theirs={"id": "the same", "error": -32602},
        cases=modern("NaN"),
    ),
    Difference(
        "NaN is no JSON, in any era",
        ours={**REFUSED, "error": -32700},
        theirs=LISTED["legacy"],
        cases=legacy("NaN"),
    ),
    Difference(
        "an id is kept while its request is answered, so it may not be of any length; numbers have 64 bits",
        ours=REFUSED,
        theirs=LISTED["modern"],
        cases=modern("an id '11805916207174113034' of int", "an id 'xxxxxxxxxxxxxxxxxxxx' of str"),
    ),
    Difference(
        "the same in a session",
        ours=REFUSED,
        theirs=LISTED["legacy"],
        cases=legacy("an id '11805916207174113034' of int", "an id 'xxxxxxxxxxxxxxxxxxxx' of str"),
    ),
    Difference(
        "a request whose id is none is not taken for a notification: its client waits for an answer",
        ours={"status": 400, "kind": "json", "id": "null", "error": -32600},
        theirs={"status": 202, "kind": "nothing", "id": "none", "error": None},
        cases=legacy(*(f"an id {each}" for each in (*ODD_IDS, "\"{'a': 1}\" of dict"))),
    ),
    Difference(
        "an answer to a question is given to whoever asked, who is told where it makes no sense",
        ours={"status": 202, "kind": "nothing", "id": "none", "error": None},
        theirs={"status": 400, "kind": "json", "id": "null", "error": -32602},
        cases=legacy("an error that is text", "an answer that is text"),
    ),
    Difference(
        "what is both an answer and an error is neither",
        ours={"status": 400, "kind": "json", "id": "the same", "error": -32600},
        theirs={"status": 202, "kind": "nothing", "id": "none", "error": None},
        cases=legacy("an answer and an error"),
    ),
    Difference(
        "whoever introduces itself gets a session, whichever it had before",
        ours={**LISTED["legacy"], "opens": True},
        theirs={"status": 404, "id": "null", "error": -32600, "result": None, "opens": False},
        cases=("opening: with an unknown session",),
    ),
    Difference(
        "an introduction that is none opens nothing",
        ours={"opens": False},
        theirs={"opens": True},
        cases=tuple(
            f"opening: {how}"
            for how in (
                *(f"without {field}" for field in (*INTRODUCTION, "parameters")),
                *(f"with {field} {wrong}" for field in INTRODUCTION for wrong in ("None", "5", "[1]")),
                "with a client without a version",
            )
        ),
    ),
    Difference(
        "a verb that we have no route for is refused by the router, which knows no eras, as on all routes",
        ours={"kind": "json", "error": "METHOD_NOT_ALLOWED", "allow": "DELETE, GET, POST"},
        theirs={"kind": "nothing", "error": None, "allow": "POST"},
        cases=modern("PUT"),
    ),
    Difference(
        "the same",
        ours={"id": "none", "error": "METHOD_NOT_ALLOWED", "allow": "DELETE, GET, POST"},
        theirs={"id": "null", "error": -32600, "allow": "GET, POST, DELETE"},
        cases=legacy("PUT"),
    ),
]


@pytest.fixture(scope="module")
async def servers() -> AsyncGenerator[tuple[Peer, Peer]]:
    async with peers() as running:
        yield running


def listed(case: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The known answers of both servers where they differ."""
    found = [each for each in DIFFERENCES if case in each.cases]
    assert len(found) <= 1, f"{case} is listed twice"
    return (found[0].ours, found[0].theirs) if found else ({}, {})


def compared(case: Case, one: Seen, other: Seen) -> tuple[dict[str, Any], dict[str, Any]]:
    names = [each.name for each in fields(Seen) if getattr(one, each.name) != getattr(other, each.name)]
    if case.legacy and one.kind != other.kind and other.kind == "events":
        # Both are valid: ours streams only if messages precede the answer, the SDK always does.
        assert not one.before
        names.remove("kind")
    return ({name: getattr(one, name) for name in names}, {name: getattr(other, name) for name in names})


@pytest.mark.parametrize("name", CASES)
async def test_answers_equal_the_reference_or_are_listed(servers: tuple[Peer, Peer], name: str) -> None:
    ours, theirs = servers
    case = CASES[name]
    differing = compared(case, await ours.seen(case), await theirs.seen(case))
    known = listed(name)
    shown = tuple(
        {key: value for key, value in side.items() if known[0][key] != known[1][key]} for side in known
    )
    assert differing == shown


def test_every_difference_is_of_a_case_and_has_a_reason() -> None:
    for each in DIFFERENCES:
        assert each.because
        assert each.ours.keys() == each.theirs.keys()
        assert set(each.cases) <= set(CASES), each.because


def test_the_corpus_has_every_method_of_both_eras() -> None:
    methods = {case.method for case in CASES.values()}
    tools = {"tools/list", "tools/call"}
    resources = {
        f"resources/{each}" for each in ("list", "templates/list", "read", "subscribe", "unsubscribe")
    }
    others = {"prompts/list", "prompts/get", "completion/complete", "ping", "logging/setLevel", "initialize"}
    assert methods >= tools | resources | others | {"server/discover", "subscriptions/listen"}
