"""Messages to an MCP server, right and wrong, of both eras: each with the headers it is sent with."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

from toolcrib.mcp.revisions import LEGACY, LEGACY_REVISIONS, MODERN

Pairs = tuple[tuple[str, str], ...]

SESSION = "the session of this case"
"""Stands in a header for the id of a session that is opened for the case."""
BOTH = "application/json, text/event-stream"
PLAIN: Pairs = (("accept", BOTH), ("content-type", "application/json"))
VERSION, CAPABILITIES, CLIENT, LEVEL = (
    f"io.modelcontextprotocol/{key}"
    for key in ("protocolVersion", "clientCapabilities", "clientInfo", "logLevel")
)
ENVELOPE: dict[str, Any] = {VERSION: MODERN, CAPABILITIES: {}}
NAMES = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
INTRODUCTION: dict[str, Any] = {
    "protocolVersion": LEGACY,
    "capabilities": {},
    "clientInfo": {"name": "corpus", "version": "1"},
}
LEFT_OUT: Any = object()


@dataclass(frozen=True)
class Case:
    """One HTTP request, and what must be known to judge its answer."""

    name: str
    headers: Pairs
    body: bytes = b""
    verb: str = "POST"
    method: str = ""
    """Of the message, where its result is to be looked at."""
    revision: str = MODERN
    """In an older one than this it may have a session, which is opened in it."""

    @property
    def legacy(self) -> bool:
        return self.revision != MODERN

    @property
    def needs_session(self) -> bool:
        return any(value == SESSION for _, value in self.headers)


def message(method: Any, params: Any = LEFT_OUT, id: Any = 1, **more: Any) -> dict[str, Any]:
    said = {"jsonrpc": "2.0", "id": id, "method": method, "params": params, **more}
    return {key: value for key, value in said.items() if value is not LEFT_OUT}


def swapped(headers: Pairs, **others: str | None) -> Pairs:
    """The same headers but for these; `mcp_name=None` leaves one out."""
    given = {name.replace("_", "-"): value for name, value in others.items()}
    kept = tuple((name, value) for name, value in headers if name not in given)
    return kept + tuple((name, value) for name, value in given.items() if value is not None)


def mirrored(method: str, params: Any) -> Pairs:
    """The headers that mirror a modern request."""
    said = cast("dict[Any, Any]", params) if isinstance(params, dict) else {}
    named: Any = said.get(NAMES.get(method))
    name: Pairs = (("mcp-name", named),) if isinstance(named, str) else ()
    return (*PLAIN, ("mcp-protocol-version", MODERN), ("mcp-method", method), *name)


def modern(name: str, method: str, params: Any = None, *, meta: Any = None, **headers: str | None) -> Case:
    """A request of the modern era, complete by default."""
    given: Any = LEFT_OUT
    if params is not LEFT_OUT:
        given = dict[str, Any](params or {})
        if meta is not LEFT_OUT:
            given["_meta"] = ENVELOPE if meta is None else meta
    said = message(method, given)
    sent = swapped(mirrored(method, given), **headers)
    return Case(f"modern: {name}", sent, json.dumps(said).encode(), method=method)


def legacy(
    name: str, method: str, params: Any = LEFT_OUT, *, revision: str = LEGACY, **headers: str | None
) -> Case:
    """A request in a session."""
    sent = swapped((*PLAIN, ("mcp-session-id", SESSION), ("mcp-protocol-version", revision)), **headers)
    body = json.dumps(message(method, params)).encode()
    return Case(f"legacy: {name}", sent, body, method=method, revision=revision)


def opening(name: str, params: Any = INTRODUCTION, **headers: str | None) -> Case:
    body = json.dumps(message("initialize", params)).encode()
    return Case(f"opening: {name}", swapped(PLAIN, **headers), body, method="initialize", revision=LEGACY)


def raw(name: str, body: Any, **headers: str | None) -> Iterator[Case]:
    """A body that is not one whole request, in both eras."""
    sent = body if isinstance(body, bytes) else json.dumps(body).encode()
    method = "tools/list"
    yield Case(f"modern: {name}", swapped(mirrored(method, {}), **headers), sent, method=method)
    in_session = swapped((*PLAIN, ("mcp-session-id", SESSION)), **headers)
    yield Case(f"legacy: {name}", in_session, sent, method=method, revision=LEGACY)


def requests() -> Iterator[tuple[str, str, Any]]:
    """Valid and invalid requests of both eras: name, method, parameters."""
    yield "a list of tools", "tools/list", {}
    yield "a cursor that is no text", "tools/list", {"cursor": 5}
    yield "a call", "tools/call", {"name": "say", "arguments": {"text": "hi"}}
    yield "a call without arguments", "tools/call", {"name": "hello"}
    yield "a call with progress", "tools/call", {"name": "walk", "arguments": {}}
    yield "a call of a tool that fails", "tools/call", {"name": "refuse", "arguments": {}}
    yield "a call of no tool", "tools/call", {"name": "nothing", "arguments": {}}
    yield "a call without a name", "tools/call", {"arguments": {}}
    yield "a call whose name is a number", "tools/call", {"name": 5, "arguments": {}}
    yield "a call whose arguments are a list", "tools/call", {"name": "say", "arguments": [1]}
    yield "a call whose arguments are null", "tools/call", {"name": "hello", "arguments": None}
    yield "a list of resources", "resources/list", {}
    yield "a list of templates", "resources/templates/list", {}
    yield "a resource that is not there", "resources/read", {"uri": "shelf://nothing"}
    yield "a resource without an address", "resources/read", {}
    yield "a list of prompts", "prompts/list", {}
    yield "a prompt that is not there", "prompts/get", {"name": "nothing"}
    yield "a prompt without a name", "prompts/get", {}
    complete = {"ref": {"type": "ref/prompt", "name": "nothing"}, "argument": {"name": "a", "value": "b"}}
    yield "a completion of nothing", "completion/complete", complete
    yield "a completion without an argument", "completion/complete", {"ref": complete["ref"]}
    yield "a completion of an unknown kind", "completion/complete", {**complete, "ref": {"type": "ref/x"}}
    yield "an unknown method", "tools/steal", {}
    yield "a method without a name", "", {}


def of_the_other_era() -> Iterator[Case]:
    """Methods that only one of the eras has."""
    yield modern("discover", "server/discover")
    yield modern("listen", "subscriptions/listen", {"notifications": {"toolsListChanged": True}})
    yield modern("listen to nothing", "subscriptions/listen", {"notifications": {}})
    yield modern("listen to an unknown kind", "subscriptions/listen", {"notifications": {"x": True}})
    yield modern("listen without saying to what", "subscriptions/listen")
    yield modern("listen to a list", "subscriptions/listen", {"notifications": [1]})
    yield legacy("a call in the older wording", "tools/call", {"name": "hello"}, mcp_protocol_version=None)
    yield legacy("ping", "ping")
    yield legacy("ping with parameters", "ping", {"_meta": {"a": 1}})
    yield legacy("a level", "logging/setLevel", {"level": "warning"})
    yield legacy("a level that is none", "logging/setLevel", {"level": "loud"})
    yield legacy("a level that is not said", "logging/setLevel", {})
    yield legacy("follow what is not there", "resources/subscribe", {"uri": "shelf://nothing"})
    yield legacy("follow nothing", "resources/subscribe", {})
    yield legacy("unfollow", "resources/unsubscribe", {"uri": "shelf://nothing"})
    yield legacy("no parameters", "tools/list")
    yield legacy("a second introduction", "initialize", INTRODUCTION)
    for method in ("initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"):
        yield modern(f"{method} of the other era", method, INTRODUCTION)
    for method in ("server/discover", "subscriptions/listen"):
        yield legacy(f"{method} of the other era", method, {"notifications": {}})


def envelopes() -> Iterator[Case]:
    """Envelopes of modern requests."""
    yield modern("no _meta", "tools/list", meta=LEFT_OUT)
    yield modern("no parameters", "tools/list", LEFT_OUT)
    yield modern("_meta that is a list", "tools/list", meta=[1])
    yield modern("no version", "tools/list", meta={CAPABILITIES: {}})
    yield modern("no capabilities", "tools/list", meta={VERSION: MODERN})
    yield modern("capabilities that are a list", "tools/list", meta={**ENVELOPE, CAPABILITIES: []})
    yield modern("capabilities that are null", "tools/list", meta={**ENVELOPE, CAPABILITIES: None})
    yield modern(
        "elicitation that is a number", "tools/list", meta={**ENVELOPE, CAPABILITIES: {"elicitation": 5}}
    )
    yield modern("a client", "tools/list", meta={**ENVELOPE, CLIENT: INTRODUCTION["clientInfo"]})
    yield modern("a client without a version", "tools/list", meta={**ENVELOPE, CLIENT: {"name": "x"}})
    yield modern("a client that is text", "tools/list", meta={**ENVELOPE, CLIENT: "x"})
    yield modern("a level", "tools/list", meta={**ENVELOPE, LEVEL: "info"})
    yield modern("a level that is none", "tools/list", meta={**ENVELOPE, LEVEL: "loud"})
    yield modern("a version that is a number", "tools/list", meta={**ENVELOPE, VERSION: 5})
    yield modern("a version that is null", "tools/list", meta={**ENVELOPE, VERSION: None})
    later = {**ENVELOPE, VERSION: "2099-01-01"}
    yield modern("an unknown version", "tools/list", meta=later, mcp_protocol_version="2099-01-01")
    yield modern("an unknown version in the header", "tools/list", mcp_protocol_version="2099-01-01")
    yield modern("an unknown version in the body", "tools/list", meta=later)
    yield modern("an older version in the body", "tools/list", meta={**ENVELOPE, VERSION: LEGACY})
    yield modern("a token that is a number", "tools/list", meta={**ENVELOPE, "progressToken": 5})
    yield modern("a token that is an object", "tools/list", meta={**ENVELOPE, "progressToken": {}})
    call: dict[str, Any] = {"name": "hello", "arguments": {}}
    yield modern("a state that is a number", "tools/call", {**call, "requestState": 5})
    yield modern("a state nobody gave", "tools/call", {**call, "requestState": "made up"})
    yield modern("answers that are a list", "tools/call", {**call, "inputResponses": [1]})
    yield modern("answers that are null", "tools/call", {**call, "inputResponses": None})
    yield modern("an answer that is a number", "tools/call", {**call, "inputResponses": {"a": 5}})
    yield modern("answers to nothing", "tools/call", {**call, "inputResponses": {"a": {"action": "decline"}}})


def headers() -> Iterator[Case]:
    """What stands beside the message."""
    call: dict[str, Any] = {"name": "hello", "arguments": {}}
    yield modern("no Mcp-Method", "tools/list", mcp_method=None)
    yield modern("another Mcp-Method", "tools/list", mcp_method="tools/call")
    yield modern("Mcp-Method in capitals", "tools/list", mcp_method="TOOLS/LIST")
    yield modern("no Mcp-Name", "tools/call", call, mcp_name=None)
    yield modern("another Mcp-Name", "tools/call", call, mcp_name="say")
    yield modern("an Mcp-Name nobody needs", "tools/list", mcp_name="say")
    yield modern("Mcp-Name in base64", "tools/call", call, mcp_name="=?base64?aGVsbG8=?=")
    yield modern("Mcp-Name in bad base64", "tools/call", call, mcp_name="=?base64?aGVsbG8?=")
    yield modern("an Mcp-Name beside a number", "tools/call", {**call, "name": 5}, mcp_name="5")
    found = {"name": "find", "arguments": {"place": "shelf"}}
    yield modern("an argument that is not repeated", "tools/call", found)
    yield modern("an argument that is repeated", "tools/call", found, mcp_param_place="shelf")
    yield modern("an argument in base64", "tools/call", found, mcp_param_place="=?base64?c2hlbGY=?=")
    yield modern("another argument", "tools/call", found, mcp_param_place="floor")
    nothing: dict[str, Any] = {"name": "find", "arguments": {}}
    yield modern("an argument in the header alone", "tools/call", nothing, mcp_param_place="shelf")
    yield modern("a header for no argument", "tools/call", found, mcp_param_place="shelf", mcp_param_x="1")
    for name in ("mcp-method", "mcp-protocol-version", "mcp-name"):
        whole = modern(f"{name} twice", "tools/call", call)
        again = next(pair for pair in whole.headers if pair[0] == name)
        yield Case(whole.name, (*whole.headers, again), whole.body, method=whole.method)
    twice = modern("an argument repeated twice", "tools/call", found, mcp_param_place="shelf")
    yield Case(twice.name, (*twice.headers, ("mcp-param-place", "shelf")), twice.body, method=twice.method)
    yield from accepting()
    yield legacy("no session", "tools/list", mcp_session_id=None)
    yield legacy("an unknown session", "tools/list", mcp_session_id="5f4dcc3b5aa765d61d8327deb882cf99")
    yield legacy("an empty session", "tools/list", mcp_session_id="")
    yield legacy("another revision", "tools/list", mcp_protocol_version="2025-06-18")
    for revision in LEGACY_REVISIONS:
        yield legacy(f"a list of tools in {revision}", "tools/list", {}, revision=revision)
        said = {"name": "say", "arguments": {"text": "hi"}}
        yield legacy(f"a call in {revision}", "tools/call", said, revision=revision)
    batch = json.dumps([message("ping"), message("ping", id=2)]).encode()
    in_session = (*PLAIN, ("mcp-session-id", SESSION))
    yield Case("legacy: a batch in 2025-03-26", in_session, batch, method="ping", revision="2025-03-26")


def accepting() -> Iterator[Case]:
    """Accept and content type headers."""
    kinds = {
        "anything": "*/*",
        "JSON alone": "application/json",
        "events alone": "text/event-stream",
        "neither": "text/html",
        "with weights": "application/json;q=0.9, text/event-stream;q=0.8",
        "in capitals": "APPLICATION/JSON, TEXT/EVENT-STREAM",
        "by family": "application/*, text/*",
        "nothing it says": None,
        "an empty word": "",
    }
    for name, kind in kinds.items():
        yield modern(f"accepts {name}", "tools/list", accept=kind)
        yield legacy(f"accepts {name}", "tools/list", accept=kind)
    for kind in (
        None,
        "text/plain",
        "application/json; charset=utf-8",
        "APPLICATION/JSON",
        "application/jsonp",
    ):
        yield modern(f"sends {kind}", "tools/list", content_type=kind)
        yield legacy(f"sends {kind}", "tools/list", content_type=kind)


def bodies() -> Iterator[Case]:
    """What is not one well-formed request."""
    whole = message("tools/list", {"_meta": ENVELOPE})
    yield from raw("nothing", b"")
    yield from raw("no JSON", b"{not json")
    yield from raw("half a message", json.dumps(whole).encode()[:-1])
    yield from raw("no UTF-8", b'{"jsonrpc":"2.0","id":1,"method":"\xff"}')
    yield from raw("a byte order mark", b"\xef\xbb\xbf" + json.dumps(whole).encode())
    yield from raw("NaN", b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"a":NaN}}')
    yield from raw("too deep", b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":' + b"[" * 5000)
    odd: dict[str, Any] = {"null": None, "a number": 5, "text": "hi", "a list of nothing": []}
    for name, body in odd.items():
        yield from raw(name, body)
    yield from raw("a batch", [whole])
    yield from raw("a batch of two", [whole, {**whole, "id": 2}])
    yield from raw("an empty object", {})
    yield from raw("too large", json.dumps({**whole, "x": "x" * (4 * 1024 * 1024)}).encode())
    for version in (LEFT_OUT, "1.0", 2.0, None):
        spelled = "not said" if version is LEFT_OUT else repr(version)
        yield from raw(
            f"JSON-RPC {spelled}",
            {k: v for k, v in {**whole, "jsonrpc": version}.items() if v is not LEFT_OUT},
        )
    for method in (LEFT_OUT, 5, None, ["tools/list"]):
        spelled = "not said" if method is LEFT_OUT else repr(method)
        yield from raw(f"a method {spelled}", message(method, {"_meta": ENVELOPE}))
    for wrong in (None, [1], "x", 5):
        yield from raw(f"parameters {wrong!r}", message("tools/list", wrong))
    ids: Sequence[Any] = ("text", "", 0, -1, 2**53, 2**70, 1.0, 1.5, None, True, [1], {"a": 1}, "x" * 300)
    for each in ids:
        yield from raw(f"an id {str(each)[:20]!r} of {type(each).__name__}", {**whole, "id": each})
    yield from raw("an unknown member", {**whole, "extra": {"a": 1}})
    yield from raw("a member of another case", {**whole, "ID": 5})


def unasked() -> Iterator[Case]:
    """Notifications and answers, which expect no answer."""
    said = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 9}}
    yield from raw("a cancellation", said)
    yield from raw("a cancellation of nothing", {**said, "params": {}})
    yield from raw("a notification", {"jsonrpc": "2.0", "method": "notifications/roots/list_changed"})
    yield from raw("an unknown notification", {"jsonrpc": "2.0", "method": "notifications/x"})
    yield from raw("a notification with a list", {**said, "params": [1]})
    yield from raw("a request that is told", {"jsonrpc": "2.0", "method": "tools/list", "params": {}})
    answer: dict[str, Any] = {"jsonrpc": "2.0", "id": 9, "result": {}}
    yield from raw("an answer", answer)
    yield from raw("an error", {"jsonrpc": "2.0", "id": 9, "error": {"code": -1, "message": "no"}})
    yield from raw("an error that is text", {"jsonrpc": "2.0", "id": 9, "error": "no"})
    yield from raw("an answer that is text", {**answer, "result": "yes"})
    yield from raw("an answer and an error", {**answer, "error": {"code": -1, "message": "no"}})
    yield from raw("an answer to nobody", {"jsonrpc": "2.0", "result": {}})
    yield from raw("an answer to null", {**answer, "id": None})


def openings() -> Iterator[Case]:
    """How a client of the handshake era introduces itself."""
    for revision in (*LEGACY_REVISIONS, MODERN, "2099-01-01", "", "x"):
        yield opening(f"in {revision!r}", {**INTRODUCTION, "protocolVersion": revision})
    yield opening("with its revision as a header", mcp_protocol_version=LEGACY)
    yield opening("with an older one as a header", mcp_protocol_version="2024-11-05")
    yield opening("with an unknown session", mcp_session_id="5f4dcc3b5aa765d61d8327deb882cf99")
    for field in INTRODUCTION:
        yield opening(f"without {field}", {key: INTRODUCTION[key] for key in INTRODUCTION if key != field})
        for wrong in (None, 5, [1]):
            yield opening(f"with {field} {wrong!r}", {**INTRODUCTION, field: wrong})
    yield opening("with a client without a version", {**INTRODUCTION, "clientInfo": {"name": "x"}})
    yield opening("with sampling that is a number", {**INTRODUCTION, "capabilities": {"sampling": 5}})
    yield opening("without parameters", LEFT_OUT)
    told = {"jsonrpc": "2.0", "method": "initialize", "params": INTRODUCTION}
    yield Case("opening: without an id", PLAIN, json.dumps(told).encode(), revision=LEGACY)


def verbs() -> Iterator[Case]:
    """Requests without a message."""
    session = ("mcp-session-id", SESSION)
    listens: Pairs = (("accept", "text/event-stream"),)
    yield Case("legacy: a stream", (*listens, session), verb="GET", revision=LEGACY)
    yield Case(
        "legacy: a stream of JSON", (("accept", "application/json"), session), verb="GET", revision=LEGACY
    )
    yield Case("legacy: a stream without a session", listens, verb="GET", revision=LEGACY)
    unknown = ("mcp-session-id", "5f4dcc3b5aa765d61d8327deb882cf99")
    yield Case("legacy: a stream of an unknown session", (*listens, unknown), verb="GET", revision=LEGACY)
    yield Case("legacy: an end", (session,), verb="DELETE", revision=LEGACY)
    yield Case("legacy: an end of nothing", (), verb="DELETE", revision=LEGACY)
    yield Case("legacy: an end of an unknown session", (unknown,), verb="DELETE", revision=LEGACY)
    yield Case("legacy: PUT", (*PLAIN, session), verb="PUT", revision=LEGACY)
    for verb in ("GET", "DELETE", "PUT"):
        yield Case(f"modern: {verb}", (*listens, ("mcp-protocol-version", MODERN)), verb=verb)


def cases() -> list[Case]:
    """All of them, each under a name of its own."""
    token = {"progressToken": "a token"}
    found = [
        case
        for name, method, params in requests()
        for case in (
            modern(name, method, params, meta={**ENVELOPE, **(token if "progress" in name else {})}),
            legacy(name, method, {**params, **({"_meta": token} if "progress" in name else {})}),
        )
    ]
    for group in (of_the_other_era(), envelopes(), headers(), bodies(), unasked(), openings(), verbs()):
        found += group
    assert len({case.name for case in found}) == len(found), "two cases have one name"
    return found
