"""A server with resources and prompts, in either era, from the standard library alone.

    python -m tests.servers.resource_server old|new [NAME]

Its tools change what it has and tell of it: `edit` a resource, `acquire` a resource or a prompt, `crash`.
"""

import json
import os
import sys
from collections.abc import Callable
from typing import Any

MODERN = "2026-07-28"
CAPABILITIES: Any = {
    "tools": {"listChanged": True},
    "resources": {"subscribe": True, "listChanged": True},
    "prompts": {"listChanged": True},
    "completions": {},
}
TOOLS = ("edit", "acquire", "crash")
NOT_FOUND = {"old": -32002, "new": -32602}
ODD = {"odd://contents": {"contents": "none"}, "odd://content": {"contents": [{"uri": "odd://content"}]}}


class Refused(Exception):
    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.error = {"code": code, "message": message, **({} if data is None else {"data": data})}


class ResourceServer:
    """One server over its pipes; `era` is `old` or `new`."""

    def __init__(self, era: str, name: str) -> None:
        self.era = era
        self.texts = {
            "doc://shared": f"shared by {name}",
            f"doc://{name}/one": "one",
            "doc://large": "a" * 40_000,
        }
        self.prompts = {"greet": ["who"], f"{name}-only": [], "ask": [], "odd": []}
        self.followed: set[str] = set()
        self.streams: dict[Any, Any] = {}
        self.answers: dict[str, Callable[[Any], Any]] = {
            "tools/list": self.list_tools,
            "tools/call": self.call,
            "resources/list": lambda _: {"resources": [{"uri": uri, "name": uri} for uri in self.texts]},
            "resources/templates/list": lambda _: {
                "resourceTemplates": [{"uriTemplate": f"doc://{name}/by/{{id}}", "name": "by id"}]
            },
            "resources/read": self.read,
            "prompts/list": self.list_prompts,
            "prompts/get": self.get,
            "completion/complete": self.complete,
        }
        if era == "old":
            self.answers |= {
                "initialize": self.greet,
                "resources/subscribe": self.subscribe,
                "resources/unsubscribe": lambda params: self.followed.discard(params["uri"]) or {},
            }
        else:
            self.answers["server/discover"] = lambda _: {
                "supportedVersions": [MODERN],
                "capabilities": CAPABILITIES,
            }

    def greet(self, _: Any) -> Any:
        return {
            "protocolVersion": "2025-11-25",
            "capabilities": CAPABILITIES,
            "serverInfo": {"name": "librarian", "version": "1"},
        }

    # --- what there is ---

    def list_tools(self, _: Any) -> Any:
        return {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in TOOLS]}

    def list_prompts(self, _: Any) -> Any:
        return {
            "prompts": [
                {"name": name, "arguments": [{"name": each, "required": True} for each in wanted]}
                for name, wanted in self.prompts.items()
            ]
        }

    def read(self, params: Any) -> Any:
        uri = params["uri"]
        if uri in ODD:
            return ODD[uri]
        text = self.texts.get(uri) or (f"made of {uri}" if "/by/" in uri else None)
        if text is None:
            data = {"uri": uri} if self.era == "new" else None
            raise Refused(NOT_FOUND[self.era], f"Resource not found: {uri}", data)
        return {
            "contents": [{"uri": uri, "mimeType": "text/plain", "text": text}],
            "_meta": {"vendor/page": 1},
        }

    def get(self, params: Any) -> Any:
        name, arguments = params["name"], params.get("arguments", {})
        if name == "ask" and self.era == "new" and "who" not in params.get("inputResponses", {}):
            schema = {"type": "object", "properties": {"name": {"type": "string"}}}
            asked = {"method": "elicitation/create", "params": {"message": "Who?", "requestedSchema": schema}}
            return {
                "resultType": "input_required",
                "inputRequests": {"who": asked},
                "requestState": "raw state",
            }
        said = json.dumps(
            {**params.get("inputResponses", {}), "state": params.get("requestState", ""), **arguments}
        )
        content = {"type": "hologram"} if name == "odd" else {"type": "text", "text": f"{name}: {said}"}
        blocks = [content, {"type": "resource_link", "uri": "doc://shared", "name": "shared"}]
        return {
            "description": f"About {name}.",
            "messages": [{"role": "user", "content": each} for each in blocks],
        }

    def complete(self, params: Any) -> Any:
        about = params["ref"].get("name") or params["ref"]["uri"]
        if params["argument"]["value"] == "many":
            return {"completion": {"values": [str(number) for number in range(150)]}}
        return {
            "completion": {"values": [f"{about} {params['argument']['value']}"], "total": 1, "hasMore": False}
        }

    # --- what changes ---

    def subscribe(self, params: Any) -> Any:
        if params["uri"] not in self.texts:
            raise Refused(-32002, f"Resource not found: {params['uri']}")
        self.followed.add(params["uri"])
        return {}

    def call(self, params: Any) -> Any:
        tool, arguments = params["name"], params.get("arguments", {})
        if tool == "crash":
            os._exit(3)
        if tool == "edit":
            self.texts[arguments["uri"]] = arguments["text"]
            self.tell("notifications/resources/updated", {"uri": arguments["uri"]})
        if "resource" in arguments:
            self.texts[arguments["resource"]] = "new"
            self.tell("notifications/resources/list_changed", {})
        if "prompt" in arguments:
            self.prompts[arguments["prompt"]] = []
            self.tell("notifications/prompts/list_changed", {})
        followed = sorted(
            self.followed.union(*(each.get("resourceSubscriptions", ()) for each in self.streams.values()))
        )
        return {"content": [{"type": "text", "text": json.dumps(followed)}]}

    def tell(self, method: str, params: Any) -> None:
        """Send a notification: to all in the old era, on subscribed streams in the new."""
        if self.era == "old":
            if "uri" not in params or params["uri"] in self.followed:
                say({"jsonrpc": "2.0", "method": method, "params": params})
            return
        flag = f"{method.split('/')[1]}ListChanged" if "uri" not in params else ""
        for stream, wanted in self.streams.items():
            if wanted.get(flag) or params.get("uri") in wanted.get("resourceSubscriptions", ()):
                self.tell_on(stream, method, params)

    def tell_on(self, stream: Any, method: str, params: Any) -> None:
        tagged = {**params, "_meta": {"io.modelcontextprotocol/subscriptionId": stream}}
        say({"jsonrpc": "2.0", "method": method, "params": tagged})

    # --- messages ---

    def take(self, message: Any) -> None:
        number, method, params = message.get("id"), message["method"], message.get("params", {})
        if method == "notifications/cancelled":
            self.streams.pop(params.get("requestId"), None)
        elif number is not None and method == "subscriptions/listen" and self.era == "new":
            wanted = self.streams[number] = params["notifications"]
            self.tell_on(number, "notifications/subscriptions/acknowledged", {"notifications": wanted})
        elif number is not None:
            say({"jsonrpc": "2.0", "id": number, **self.answered(method, params)})

    def answered(self, method: str, params: Any) -> Any:
        if method not in self.answers:
            return {"error": {"code": -32601, "message": f"There is no method {method} here."}}
        try:
            found = self.answers[method](params)
        except Refused as refused:
            return {"error": refused.error}
        fresh = {"resultType": "complete", "ttlMs": 1000, "cacheScope": "public"} if self.era == "new" else {}
        return {"result": {**fresh, **found}}


def say(message: Any) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def main(era: str, name: str = "lib") -> None:
    librarian = ResourceServer(era, name)
    for line in sys.stdin:
        librarian.take(json.loads(line))


if __name__ == "__main__":
    main(*sys.argv[1:])
