"""Serializes results for storage: the tool's output, without what each response adds."""

from dataclasses import asdict, replace
from typing import Any

import orjson

from toolcrib import hints
from toolcrib.errors import problem
from toolcrib.model import Evidence, Hints, JsonObject, Problem, Result, Voice


def spell(result: Result) -> bytes:
    """Serialize a result as JSON; raise TypeError if a part of it is not JSON."""
    fault, said, voice = result.problem, result.hints, result.voice
    return orjson.dumps(
        {
            "data": orjson.Fragment(result.encoded) if result.encoded else result.data,
            "structured": result.structured,
            "content": result.content,
            "problem": None if fault is None else _plain(fault),
            "message": result.message,
            "voice": {"suppress": voice.suppress, "follow_ups": voice.follow_ups},
            "hints": None if said is None else said.as_json(),
            "evidence": None if said is None or said.evidence is None else asdict(said.evidence),
            "meta": result.meta,
        }
    )


def read(kept: str) -> Result:
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


def _plain(fault: Problem) -> dict[str, Any]:
    """Return all fields but the kind, which follows from the code."""
    return {name: value for name, value in asdict(fault).items() if name != "kind"}


def _hints(said: JsonObject, evidence: dict[str, Any] | None) -> Hints:
    found = hints.read(said)
    return found if evidence is None else replace(found, evidence=Evidence(**evidence))
