"""Results as REST payloads, and as stored for repeated idempotency keys."""

from dataclasses import asdict, replace
from typing import Any

import orjson

from toolcrib import hints
from toolcrib.errors import CODES, problem, problem_json
from toolcrib.model import Evidence, Hints, JsonObject, Problem, Result, Tool, Voice
from toolcrib.payloads import model_description

# --- REST format of tools and results, shared with the CLI and the web page ---


class RestFormat:
    """The most complete format: all that a caller may know about a tool."""

    name = "rest"

    def tool(self, tool: Tool, name: str) -> JsonObject:
        """Declare one tool."""
        spelled: dict[str, Any] = {
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
        spelled.update(_optional_fields(tool))
        return spelled


def _optional_fields(tool: Tool) -> dict[str, Any]:
    """Return the optional fields that the tool sets."""
    more: dict[str, Any] = {
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
        more["rateLimit"] = {"maxCalls": tool.rate_limit.max_calls, "windowMs": tool.rate_limit.window_ms}
    if tool.deprecated is not None:
        gone = tool.deprecated
        more["deprecated"] = {
            "since": gone.since,
            "replacement": gone.replacement,
            "removalDate": gone.removal_date,
            **({} if gone.announced is None else {"announced": gone.announced}),
        }
    return {key: value for key, value in more.items() if value is not None}


def status(result: Result) -> int:
    """Return the HTTP status of a result."""
    return 200 if result.problem is None else CODES[result.problem.code].status


def encode(result: Result) -> bytes:
    """Encode a completed result as JSON bytes; data encoded earlier is spliced in."""
    return orjson.dumps(_payload(result, splice=True))


def as_json(result: Result) -> dict[str, Any]:
    """Return a completed result as plain JSON values."""
    return _payload(result, splice=False)


def _payload(result: Result, *, splice: bool) -> dict[str, Any]:
    problem = result.problem
    data = orjson.Fragment(result.encoded) if splice and result.encoded else result.data
    spelled: dict[str, Any] = {
        "success": problem is None,
        "status": "success" if problem is None else "error",
        "content": _content(result, data) if problem is None else _joined_text(result) or problem.message,
        "message": result.message,
    }
    if problem is None and result.ask is None:
        spelled["data"] = data
    if result.hints is not None:
        raw = result.hints.encoded
        spelled["agentHints"] = orjson.Fragment(raw) if splice and raw else result.hints.as_json()
    if result.metadata is not None:
        spelled["metadata"] = result.metadata.as_json()
    spelled["mentraExtensions"] = result.voice.as_json()
    if problem is not None:
        spelled["error"] = problem_json(problem)
    if result.ask is not None:
        spelled["inputRequired"] = {"questions": result.ask.questions, "state": result.ask.state}
    return spelled


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
    fault, said, voice = result.problem, result.hints, result.voice
    return orjson.dumps(
        {
            "data": orjson.Fragment(result.encoded) if result.encoded else result.data,
            "structured": result.structured,
            "content": result.content,
            "problem": None if fault is None else _problem_fields(fault),
            "message": result.message,
            "voice": {"suppress": voice.suppress, "follow_ups": voice.follow_ups},
            "hints": None if said is None else said.as_json(),
            "evidence": None if said is None or said.evidence is None else asdict(said.evidence),
            "meta": result.meta,
        }
    )


def decode_stored(kept: str) -> Result:
    """Deserialize what `spell` returned."""
    fields: dict[str, Any] = orjson.loads(kept)
    fault, said, voice = fields["problem"], fields["hints"], fields["voice"]
    return Result(
        data=fields["data"],
        structured=fields["structured"],
        content=tuple(fields["content"]),
        problem=None if fault is None else problem(**fault),
        message=fields["message"],
        voice=Voice(suppress=voice["suppress"], follow_ups=tuple(voice["follow_ups"])),
        hints=None if said is None else _hints(said, fields["evidence"]),
        encoded=b"" if fields["data"] is None else orjson.dumps(fields["data"]),
        meta=fields["meta"],
    )


def _problem_fields(fault: Problem) -> dict[str, Any]:
    """Return all fields but the kind, which follows from the code."""
    return {name: value for name, value in asdict(fault).items() if name != "kind"}


def _hints(said: JsonObject, evidence: dict[str, Any] | None) -> Hints:
    found = hints.read(said)
    return found if evidence is None else replace(found, evidence=Evidence(**evidence))
