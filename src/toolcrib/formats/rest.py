"""Results as REST payloads, and as stored for repeated idempotency keys."""

from dataclasses import asdict, replace
from typing import Any

import orjson

from toolcrib.errors import CODES, problem, problem_json
from toolcrib.hints import read
from toolcrib.hints.hint_text import actionable_hints
from toolcrib.model import Evidence, Hints, JsonObject, Result, Tool, Voice
from toolcrib.payloads import model_description

# --- REST format of tools and results, shared with the CLI and the web page ---


class RestFormat:
    """The most complete format: all that a caller may know about a tool."""

    name = "rest"

    def tool(self, tool: Tool, name: str) -> JsonObject:
        """Declare one tool."""
        declared: dict[str, Any] = {
            "name": name,
            "description": model_description(tool),
            "inputSchema": tool.input_schema,
            "source": tool.source,
            "category": tool.category,
            "responseTime": tool.response_time,
            "version": tool.version,
            "permissions": sorted(tool.permissions),
            "tags": list(tool.tags),
            "cacheable": tool.cache_ttl is not None,
            "idempotent": tool.idempotent,
            "examples": [
                {"description": each.description, "params": each.params, "expectedResult": each.expected}
                for each in tool.examples
            ],
            "names": {"qualified": tool.name, "safe": tool.exposed, "flat": tool.local},
        }
        declared.update(_optional_fields(tool))
        return declared


def _optional_fields(tool: Tool) -> dict[str, Any]:
    """Return the optional fields that the tool sets."""
    fields: dict[str, Any] = {
        "title": tool.title,
        "outputSchema": tool.output_schema,
        "cacheTTL": tool.cache_ttl,
        "serverId": tool.source if tool.family == "mcp" else None,
        "aliases": list(tool.aliases) or None,
        "degraded": tool.degraded or None,
        "hardwareRequirements": [each.as_json() for each in tool.hardware] or None,
        "mentraExtensions": tool.extensions or None,
    }
    if tool.rate_limit is not None:
        fields["rateLimit"] = {"maxCalls": tool.rate_limit.max_calls, "windowMs": tool.rate_limit.window_ms}
    if tool.deprecated is not None:
        deprecation = tool.deprecated
        fields["deprecated"] = {
            "since": deprecation.since,
            "replacement": deprecation.replacement,
            "removalDate": deprecation.removal_date,
            **({} if deprecation.announced is None else {"announced": deprecation.announced}),
        }
    return {key: value for key, value in fields.items() if value is not None}


_BRIEF_FIELDS = ("success", "status", "message", "data", "error", "inputRequired")


def status(result: Result) -> int:
    """Return the HTTP status of a result."""
    return 200 if result.problem is None else CODES[result.problem.code].status


def encode(result: Result) -> bytes:
    """Encode a completed result as JSON bytes; data encoded earlier is spliced in."""
    return orjson.dumps(_payload(result, splice=True))


def encode_brief(result: Result) -> bytes:
    """Encode a completed result with what an agent acts on: outcome, message, data or error, such hints."""
    payload, hints = _payload(result, splice=True), result.hints
    brief = {name: payload[name] for name in _BRIEF_FIELDS if name in payload}
    if "data" in brief and result.data is None and result.content:
        # The result is the content alone, which is left out otherwise.
        brief["data"] = payload["content"]
    actionable: JsonObject = {} if hints is None else actionable_hints(hints)
    return orjson.dumps({**brief, "agentHints": actionable} if actionable else brief)


def as_json(result: Result) -> dict[str, Any]:
    """Return a completed result as plain JSON values."""
    return _payload(result, splice=False)


def _payload(result: Result, *, splice: bool) -> dict[str, Any]:
    problem = result.problem
    data = orjson.Fragment(result.encoded) if splice and result.encoded else result.data
    payload: dict[str, Any] = {
        "success": problem is None,
        "status": "success" if problem is None else "error",
        "content": _content(result, data) if problem is None else _joined_text(result) or problem.message,
        "message": result.message,
    }
    if problem is None and result.ask is None:
        payload["data"] = data
    if result.hints is not None:
        raw = result.hints.encoded
        payload["agentHints"] = orjson.Fragment(raw) if splice and raw else result.hints.as_json()
    if result.metadata is not None:
        payload["metadata"] = result.metadata.as_json()
    payload["mentraExtensions"] = result.voice.as_json()
    if problem is not None:
        payload["error"] = problem_json(problem)
    if result.ask is not None:
        payload["inputRequired"] = {"questions": result.ask.questions, "state": result.ask.state}
    return payload


def _content(result: Result, data: Any) -> Any:
    """Return text if there is only text, blocks if there are others, else the data."""
    if not result.content:
        return data if result.ask is None else result.message
    if all(block.get("type") == "text" for block in result.content):
        return _joined_text(result)
    return list(result.content)


def _joined_text(result: Result) -> str:
    return "\n".join(block["text"] for block in result.content if block.get("type") == "text")


# --- Serializes results for storage: the tool's output, without what each response adds ---


def encode_stored(result: Result) -> bytes:
    """Serialize a result as JSON; raise TypeError if a part of it is not JSON."""
    fault, hints, voice = result.problem, result.hints, result.voice
    return orjson.dumps(
        {
            "data": orjson.Fragment(result.encoded) if result.encoded else result.data,
            "structured": result.structured,
            "content": result.content,
            # The kind follows from the code.
            "problem": fault and {name: value for name, value in asdict(fault).items() if name != "kind"},
            "message": result.message,
            "voice": {"suppress": voice.suppress, "follow_ups": voice.follow_ups},
            "hints": None if hints is None else hints.as_json(),
            "evidence": None if hints is None or hints.evidence is None else asdict(hints.evidence),
            "meta": result.meta,
        }
    )


def decode_stored(stored: str) -> Result:
    """Deserialize what `encode_stored` returned."""
    fields: dict[str, Any] = orjson.loads(stored)
    fault, hints, voice = fields["problem"], fields["hints"], fields["voice"]
    return Result(
        data=fields["data"],
        structured=fields["structured"],
        content=tuple(fields["content"]),
        problem=None if fault is None else problem(**fault),
        message=fields["message"],
        voice=Voice(suppress=voice["suppress"], follow_ups=tuple(voice["follow_ups"])),
        hints=None if hints is None else _parsed_hints(hints, fields["evidence"]),
        encoded=b"" if fields["data"] is None else orjson.dumps(fields["data"]),
        meta=fields["meta"],
    )


def _parsed_hints(fields: JsonObject, evidence: dict[str, Any] | None) -> Hints:
    hints = read(fields)
    return hints if evidence is None else replace(hints, evidence=Evidence(**evidence))
