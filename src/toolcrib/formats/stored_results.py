"""How a result is spelled to be kept, and read back: what its tool said, without what each answer adds."""

from dataclasses import asdict, replace
from typing import Any

import orjson

from toolcrib import hints
from toolcrib.errors import problem
from toolcrib.model import Evidence, Hints, JsonObject, Problem, Result, Voice


def spell(result: Result) -> bytes:
    """Spell a result as JSON; a TypeError says that something in it is none."""
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
    """Read back what `spell` has written."""
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
    """All of it but the kind, which its code has."""
    return {name: value for name, value in asdict(fault).items() if name != "kind"}


def _hints(said: JsonObject, evidence: dict[str, Any] | None) -> Hints:
    found = hints.read(said)
    return found if evidence is None else replace(found, evidence=Evidence(**evidence))
