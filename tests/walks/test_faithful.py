"""What a client gets of the reference server through the gateway is what it gets of it directly.

Every answer is compared whole, field by field. Where the two may differ stands here, each with its reason.
"""

import json
import os
import re
import subprocess
import sys
from base64 import b64decode
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from itertools import zip_longest
from pathlib import Path
from typing import Any, cast

import pytest

from tests.servers.raw_client import Raw
from tests.servers.settings import config
from tests.servers.third_party import known, npm
from toolcrib.mcp.meta import CAPABILITIES_KEY, CLIENT_KEY, LEVEL_KEY, VERSION_KEY
from toolcrib.mcp.revisions import LEGACY, MODERN

pytestmark = [pytest.mark.slow, pytest.mark.requirement("D14"), pytest.mark.needs("node", "npm_servers")]

CAPABILITIES: dict[str, Any] = {"roots": {}, "sampling": {}, "elicitation": {"form": {}, "url": {}}}
CLIENT = {"name": "test", "version": "1"}
ANSWERS: dict[str, Any] = {
    "roots/list": {"roots": [{"uri": "file:///home/ann", "name": "home"}]},
    "sampling/createMessage": {
        "role": "assistant",
        "content": {"type": "text", "text": "Paris."},
        "model": "a person",
        "stopReason": "endTurn",
    },
    "elicitation/create": {"action": "accept", "content": {"name": "Ann", "check": True, "integer": 3}},
}

TEXTS, BLOBS = "demo://resource/dynamic/text/{resourceId}", "demo://resource/dynamic/blob/5"
DOCUMENT = "demo://resource/static/document/features.md"
COMPLETABLE = {"type": "ref/prompt", "name": "completable-prompt"}
LISTS = ("tools/list", "resources/list", "resources/templates/list", "prompts/list")
READ = (DOCUMENT, TEXTS.format(resourceId=4), BLOBS, TEXTS.format(resourceId="x"), "demo://nowhere")
PROMPTS: tuple[tuple[str, Any], ...] = (
    ("simple-prompt", {}),
    ("args-prompt", {"city": "Bern", "state": "BE"}),
    ("args-prompt", {}),
    ("completable-prompt", {"department": "Engineering", "name": "Alice"}),
    ("resource-prompt", {"resourceType": "Text", "resourceId": "1"}),
    ("no-such-prompt", {}),
)
COMPLETED: tuple[Any, ...] = (
    {"ref": COMPLETABLE, "argument": {"name": "department", "value": "E"}},
    {
        "ref": COMPLETABLE,
        "argument": {"name": "name", "value": "A"},
        "context": {"arguments": {"department": "Engineering"}},
    },
    {"ref": {"type": "ref/resource", "uri": TEXTS}, "argument": {"name": "resourceId", "value": "1"}},
)
CALLS: tuple[tuple[str, Any], ...] = (
    ("echo", {"message": "a saw, 😀 and \u2028"}),
    ("echo", {}),
    ("get-sum", {"a": 2, "b": 3.5}),
    ("get-tiny-image", {}),
    ("get-annotated-message", {"messageType": "error", "includeImage": True}),
    ("get-annotated-message", {"messageType": "debug"}),
    ("get-structured-content", {"location": "New York"}),
    ("get-resource-links", {"count": 4}),
    ("get-resource-reference", {"resourceType": "Text", "resourceId": 3}),
    ("get-resource-reference", {"resourceType": "Blob", "resourceId": -2}),
    ("trigger-long-running-operation", {"duration": 0.2, "steps": 4}),
    ("trigger-elicitation-request", {}),
    ("trigger-sampling-request", {"prompt": "Where?", "maxTokens": 5}),
    ("get-roots-list", {}),
    ("trigger-url-elicitation", {"url": "https://example.com/x"}),
    ("trigger-url-elicitation", {"url": "https://example.com/x", "errorPath": True}),
    ("simulate-research-query", {"topic": "saws"}),
    ("no-such-tool", {}),
)

ALLOWED = {
    r"begin: capabilities\.tasks\..*": "tasks are not relayed",
    r"begin: instructions .*": "one text for all servers; what each tells models unasked is not passed on",
    r"tools/list: .*\.execution\.taskSupport .*": "it says how a tool goes with tasks, which are not relayed",
    r"tools/call .*: result\.isError nothing -> False": "what is left out and what is said mean the same",
    r".*\.(_meta|data)\.toolcrib/(agentHints|metadata|message|error).* nothing -> .*": "what we add",
    r"tools/call .*: result\.content\[1\]\.(type|text|annotations)\b.* nothing -> .*": "hints of an error",
    r"resources/read .*: error\.data\.uri nothing -> .*": "a client may want to know which one is not there",
    r"tools/call echo {}: result\.content\[0\]\.text .*": "arguments are checked before they leave the house",
    r"tools/call no-such-tool .*": "the protocol has an error for it, the server says so in a result",
    r"(prompts/get|completion/complete) .*no-such-prompt.*: error\.message .*": "we know all the names",
}
"""What may differ between an answer and the one through us, and why."""
OF_THE_ERA = {
    r".*: result\.(resultType|ttlMs|cacheScope) nothing -> .*": "this era has it in every answer",
    r".*: result\._meta\.io\.modelcontextprotocol/serverInfo\..* nothing -> .*": "and who gave it",
}
"""What differs besides for a client of the modern era, while the server is of the one before."""
MOMENTS = re.compile(r"\d{1,2}:\d\d:\d\d [AP]M|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class Talker(Raw):
    """A client of either era that answers what it is asked, and notes what it hears meanwhile."""

    def __init__(self, process: subprocess.Popen[bytes], revision: str) -> None:
        super().__init__(process)
        self._modern = revision == MODERN
        self.heard: list[Any] = []
        self.asked: list[Any] = []

    def begin(self) -> Any:
        """Introduce itself; what it is told of the server."""
        if self._modern:
            return self.told("server/discover", {})["result"]
        hello = {"protocolVersion": LEGACY, "capabilities": CAPABILITIES, "clientInfo": CLIENT}
        welcome = self.told("initialize", hello)
        self.tell("notifications/initialized")
        return welcome["result"]

    def told(self, method: str, params: Mapping[str, Any], meta: Mapping[str, Any] | None = None) -> Any:
        """The whole answer to a request, after as many rounds of questions as it takes."""
        meta = dict(meta or {})
        if self._modern:
            meta |= {VERSION_KEY: MODERN, CAPABILITIES_KEY: CAPABILITIES, CLIENT_KEY: CLIENT}
            meta |= {LEVEL_KEY: "debug"}
        while True:
            answer = self._answer(method, {**params, **({"_meta": meta} if meta else {})})
            result = answer.get("result", {})
            if result.get("resultType") != "input_required":
                return answer
            questions = result["inputRequests"]
            self.asked += questions.values()
            answers = {name: ANSWERS[each["method"]] for name, each in questions.items()}
            params = {**params, "inputResponses": answers, "requestState": result["requestState"]}

    def _answer(self, method: str, params: Any) -> Any:
        self._asked += 1
        self._write({"jsonrpc": "2.0", "id": self._asked, "method": method, "params": params})
        assert self.process.stdout is not None
        for line in self.process.stdout:
            message = json.loads(line)
            assert message.pop("jsonrpc") == "2.0"
            if "method" not in message:
                assert message.pop("id") == self._asked
                return message
            if "id" in message:
                self._write({"jsonrpc": "2.0", "id": message.pop("id"), "result": ANSWERS[message["method"]]})
                self.asked.append(message)
            else:
                self.heard.append(message)
        raise AssertionError(f"it ended instead of answering {method}")


@contextmanager
def talking(command: Sequence[str], revision: str = LEGACY, home: Path | None = None) -> Generator[Talker]:
    env = {**os.environ, **({} if home is None else {"TOOLCRIB_HOME": str(home)})}
    pipe, nowhere = subprocess.PIPE, subprocess.DEVNULL
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=nowhere, env=env) as process:
        try:
            yield Talker(process, revision)
        finally:
            process.terminate()


def everything() -> tuple[str, ...]:
    return npm("mcp-server-everything", "stdio")


def behind_us(folder: Path, servers: Mapping[str, Any], style: str) -> list[str]:
    """The command of a gateway over these servers."""
    tools = [f"{name}:*" for name in servers]
    file = folder / "toolcrib.yaml"
    file.write_text(config(servers, contexts={"default": {"tools": tools, "style": style}}))
    return [sys.executable, "-m", "toolcrib", "stdio", "-c", str(file)]


def walked(client: Talker) -> dict[str, Any]:
    """All that a client gets, by what it asked for."""
    greeting = client.begin()
    found: dict[str, Any] = {"begin": {key: greeting[key] for key in ("capabilities", "instructions")}}
    requests = [(method, cast("dict[str, Any]", {})) for method in LISTS]
    requests += [("resources/read", {"uri": uri}) for uri in READ]
    requests += [("prompts/get", {"name": name, "arguments": given}) for name, given in PROMPTS]
    requests += [("completion/complete", params) for params in COMPLETED]
    requests += [("completion/complete", {**COMPLETED[0], "ref": {**COMPLETABLE, "name": "no-such-prompt"}})]
    requests += [("tools/call", {"name": name, "arguments": given}) for name, given in CALLS]
    for method, params in requests:
        client.heard, client.asked = [], []
        meta = {"progressToken": "mine", "vendor/x": 1} if method == "tools/call" else None
        answer = client.told(method, params, meta)
        about = params.get("name") or params.get("uri") or params.get("ref", {}).get("name", "")
        given = json.dumps(params["arguments"]) if "arguments" in params else ""
        key = " ".join(filter(None, (method, about, given)))
        heard, asked = (
            [each for each in said if not _of_the_moment(each)] for said in (client.heard, client.asked)
        )
        found[key] = {**answer, "heard": heard, "asked": asked}
    return found


def _of_the_moment(message: Any) -> bool:
    """Whether something is heard or asked when it comes about, and not because of a request.

    That the lists have changed, and the question for roots a moment after the server was connected to.
    """
    return (
        message["method"].endswith("/list_changed")
        or message["method"] == "roots/list"
        or "Roots updated" in str(message.get("params", {}).get("data"))
    )


def differences(one: Any, two: Any, path: str = "") -> Generator[str]:
    """Every place where two answers are not the same. What is not there is None, or has nothing in it."""
    kinds: set[Any] = {type(one), type(two)}
    if kinds <= {dict, type(None)} and (one or two):
        left, right = cast("dict[str, Any]", one or {}), cast("dict[str, Any]", two or {})
        for key in {**left, **right}:
            before, after = (_still(key, each.get(key)) for each in (left, right))
            yield from differences(before, after, f"{path}.{key}" if path else key)
    elif kinds == {list}:
        pairs: list[tuple[Any, Any]] = list(zip_longest(one, two))
        for place, pair in enumerate(pairs):
            yield from differences(*pair, f"{path}[{place}]")
    elif one != two or len(kinds) > 1:
        yield f"{path} {_short(one)} -> {_short(two)}"


def _still(key: str, value: Any) -> Any:
    """Without the time of day and other things that are never the same."""
    if not isinstance(value, str):
        return value
    text = b64decode(value).decode("latin-1") if key == "blob" else value
    return MOMENTS.sub("…", text)


def _short(value: Any) -> str:
    return "nothing" if value is None else repr(value)[:200]


def by_name(answer: Any) -> Any:
    """A list of definitions by their names, so that a difference says which one differs."""
    (key,) = (each for each in answer["result"] if isinstance(answer["result"][each], list))
    return {
        **answer,
        "result": {**answer["result"], key: {each["name"]: each for each in answer["result"][key]}},
    }


def compared(direct: Mapping[str, Any], through: Mapping[str, Any], allowed: Mapping[str, str]) -> None:
    """Fail for every difference that is not allowed, and for everything allowed that is no difference."""
    found: list[str] = []
    for asked in direct.keys() | through.keys():
        one, two = direct[asked], through[asked]
        if asked in LISTS:
            one, two = by_name(one), by_name(two)
        found += [f"{asked}: {each}" for each in differences(one, two)]
    assert [each for each in found if not any(re.fullmatch(rule, each) for rule in allowed)] == []
    stale = [rule for rule in allowed if not any(re.fullmatch(rule, each) for each in found)]
    assert stale == [], "these are the same by now"


@pytest.fixture(scope="module")
def direct() -> dict[str, Any]:
    with talking(everything()) as client:
        return walked(client)


@pytest.mark.parametrize("revision", [LEGACY, MODERN], ids=["legacy", "modern"])
def test_relayed_answers_equal_direct_answers(revision: str, direct: dict[str, Any], tmp_path: Path) -> None:
    relay = sorted(CAPABILITIES)
    server = {"transport": "stdio", "command": list(everything()), "relay": relay}
    with talking(behind_us(tmp_path, {"everything": server}, "flat"), revision, tmp_path) as client:
        through = walked(client)
    compared(direct, through, ALLOWED if revision == LEGACY else {**ALLOWED, **OF_THE_ERA})
    assert len(through["tools/call trigger-elicitation-request {}"]["asked"]) == 1
    steps = through['tools/call trigger-long-running-operation {"duration": 0.2, "steps": 4}']["heard"]
    assert [each["params"]["progress"] for each in steps] == [1, 2, 3, 4]


def test_nothing_is_lost_among_others(direct: dict[str, Any], tmp_path: Path) -> None:
    """Beside another server definitions have other names and nothing else, and links lead to their server."""
    others = known("memory", tmp_path / "memory", "").settings()
    servers = {"memory": others, "everything": {"transport": "stdio", "command": list(everything())}}
    with talking(behind_us(tmp_path, servers, "safe"), LEGACY, tmp_path) as client:
        client.begin()
        lists = {method: client.told(method, {}) for method in LISTS}
        data = {"name": "saw.gz", "data": "data:text/plain,saw", "outputType": "resourceLink"}
        made = client.told("tools/call", {"name": "mcp_everything_gzip_file_as_resource", "arguments": data})
        (link,) = made["result"]["content"]
        read = client.told("resources/read", {"uri": link["uri"]})
    for method, key in (("tools/list", "tools"), ("prompts/list", "prompts")):
        own = direct[method]["result"][key]
        ours = {each["name"]: each for each in lists[method]["result"][key]}
        for each in own:
            renamed = ours[f"mcp_everything_{each['name'].replace('-', '_')}"]
            assert set(differences({**each, "execution": None, "name": renamed["name"]}, renamed)) == set()
    uris = {each["uri"] for each in lists["resources/list"]["result"]["resources"]}
    assert uris > {each["uri"] for each in direct["resources/list"]["result"]["resources"]}
    assert link["type"] == "resource_link"
    assert read["result"]["contents"][0]["uri"] == link["uri"]
