"""The gateway with the tool contract taken out, to see what that costs: `python no_contract.py serve …`."""

import sys
from typing import Any

import orjson

from toolcrib.cli import main
from toolcrib.gateway import Completion
from toolcrib.interfaces import Handler, Stage
from toolcrib.model import Call, Result, Tool
from toolcrib.observe import CallRecorder, Sequences
from toolcrib.steps.validate import Validate
from toolcrib.steps.verify import Verify


def _as_it_came(_completion: Completion, result: Result, *_: Any) -> Result:
    """No hints, no metadata, no sentence."""
    return result


def _only_encoded(_verify: Verify, tool: Tool) -> Stage:
    """Nothing is looked at; JSON must be made all the same."""
    del tool

    async def verify(call: Call, proceed: Handler) -> Result:
        result = await proceed(call)
        return result.replace(encoded=orjson.dumps(result.data))

    return verify


def _nothing(*_: Any) -> None:
    """No step, and nothing to note."""


def strip() -> None:
    """Take the contract out of this process: checks before and after, hints, metadata, notes of the start."""
    for owner, name, instead in (
        (Completion, "complete", _as_it_came),
        (Validate, "fit", _nothing),
        (Verify, "fit", _only_encoded),
        (CallRecorder, "begun", None),
        (Sequences, "take", _nothing),
    ):
        setattr(owner, name, instead)


if __name__ == "__main__":
    strip()
    sys.exit(main())
