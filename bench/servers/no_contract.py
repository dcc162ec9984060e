"""Toolcrib without the tool contract, to measure its cost: `python no_contract.py serve …`."""

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


def _unchanged(_completion: Completion, result: Result, *_: Any) -> Result:
    """Return the result without hints, metadata and message."""
    return result


def _encode_only(_verify: Verify, tool: Tool) -> Stage:
    """Return a step that only encodes the result as JSON, without validation."""
    del tool

    async def verify(call: Call, proceed: Handler) -> Result:
        result = await proceed(call)
        return result.replace(encoded=orjson.dumps(result.data))

    return verify


def _skip(*_: Any) -> None:
    """Do nothing: no step is added, nothing is recorded."""


def remove_contract() -> None:
    """Disable the contract in this process: validation, hints, metadata and start records."""
    for owner, name, replacement in (
        (Completion, "complete", _unchanged),
        (Validate, "fit", _skip),
        (Verify, "fit", _encode_only),
        (CallRecorder, "begun", None),
        (Sequences, "take", _skip),
    ):
        setattr(owner, name, replacement)


if __name__ == "__main__":
    remove_contract()
    sys.exit(main())
