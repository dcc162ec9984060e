"""The first example runs standalone, and as a module of the gateway."""

import subprocess
import sys
from pathlib import Path

from toolcrib.sdk import Registry
from toolcrib.sources.functions import Functions, load_module, source_id
from toolcrib.testing import a_call

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_it_runs_by_itself() -> None:
    done = subprocess.run(
        [sys.executable, EXAMPLES / "hello_tool.py"], capture_output=True, text=True, check=True
    )
    assert done.stdout == "{'greeting': 'Hello, Ada!'}\n"


async def test_the_gateway_finds_and_calls_it() -> None:
    (hello,) = load_module("hello_tool", folder=EXAMPLES)
    assert Registry().validate(hello) == []
    source = Functions(source_id("hello_tool"), [hello])
    call = a_call(hello.bind(source.id), arguments={"name": "Ada"})
    assert call.tool.name == "hello_tool:say-hello"
    assert (await source.call(call)).data == {"greeting": "Hello, Ada!"}
