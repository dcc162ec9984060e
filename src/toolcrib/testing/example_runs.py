"""Tries tools out: their examples run in a gateway of their own, which is looked at from all sides."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from io import StringIO
from json import loads
from typing import Any, cast

from toolcrib.config import default_document
from toolcrib.identity import new_key
from toolcrib.model import Caller, Hints, JsonObject, Origin, Result, Tool
from toolcrib.observe import Log, Redactor
from toolcrib.observe.log import LineWriterThread
from toolcrib.runtime import Runtime, build
from toolcrib.schemas import compile_schema
from toolcrib.sdk import AnyTool, ToolResult
from toolcrib.sdk.evidence import ExampleRun, ToolEvidence

SOURCE = "tools"
_IN_MEMORY = "sqlite://"
_START_SECONDS = 10.0
_ORIGIN = Origin(agent_id="toolcrib-check", face="library")
_UNFIT_VALUES: tuple[Any, ...] = (None, [], {}, "", -1.5, True)
"""One value of each kind: at least one of them does not fit a parameter that takes anything in particular."""


async def run_examples(
    tools: Sequence[AnyTool], *, run_mutations: bool = False, user: str | None = None
) -> dict[str, ToolEvidence]:
    """Run the examples of tools that change nothing, of others only if told to; return what was seen of each.

    Nothing is cached and no rate is limited meanwhile, so that every run is a real one.
    """
    heard = [_RecordedTool(tool) for tool in tools]
    written = StringIO()
    log = Log(LineWriterThread(written), Redactor())
    document = replace(default_document({}), store=_IN_MEMORY)
    document = replace(document, auth=replace(document.auth, admin_key=new_key()))
    try:
        async with build(document, env={}, tools=[each.tool for each in heard], journal_to=log) as runtime:
            await runtime.settled(_START_SECONDS)
            bench = _ExampleRunner(runtime, run_mutations=run_mutations, user=user)
            seen = {each.name: await bench.tried(each) for each in heard}
            metrics = runtime.console.metrics().decode()
    finally:
        log.close()
    traces = _logged_traces(written.getvalue())
    return {
        name: _with_observability(name, found, bench.traces, traces, metrics) for name, found in seen.items()
    }


class _RecordedTool:
    """A tool whose function is overheard, and which is neither cached nor limited."""

    def __init__(self, tool: AnyTool) -> None:
        self.name = tool.name
        self.gave: Any = None
        definition = replace(tool.definition, cache_ttl=None, shared_cache=False, rate_limit=None)
        overheard = self._overheard(tool.function) if tool.is_async else self._overheard_sync(tool.function)
        self.tool: AnyTool = replace(tool, definition=definition, function=overheard)

    def _overheard(self, function: Callable[..., Any]) -> Callable[..., Any]:
        async def run(**arguments: Any) -> Any:
            self.gave = await function(**arguments)
            return self.gave

        return run

    def _overheard_sync(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def run(**arguments: Any) -> Any:
            self.gave = function(**arguments)
            return self.gave

        return run

    def claimed(self) -> float | None:
        """The confidence the tool gave with its last answer, without saying what it rests on."""
        gave, self.gave = self.gave, None
        hints = cast("ToolResult[Any]", gave).hints if isinstance(gave, ToolResult) else None
        if isinstance(hints, Hints):
            return hints.confidence if hints.evidence is None else None
        confidence = hints.get("confidence") if isinstance(hints, Mapping) else None
        return float(confidence) if isinstance(confidence, int | float) else None


@dataclass(frozen=True)
class _ExampleRunner:
    """Calls tools in a gateway, as one who may do everything."""

    runtime: Runtime
    run_mutations: bool
    user: str | None
    traces: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    """The traces of the calls of each tool."""

    async def tried(self, heard: _RecordedTool) -> ToolEvidence:
        tool = heard.tool.definition
        offered = {each.name: each for each in self.runtime.gateway.tools(self._caller())}
        withheld = [
            each
            for each in self.runtime.console.status()["withheld"]
            if each["name"] == _canonical(tool.local)
        ]
        if _canonical(tool.local) not in offered:
            return ToolEvidence(listed=False, withheld=withheld[0]["reason"] if withheld else "")
        runs: list[ExampleRun] = []
        again: bool | None = None
        if tool.read_only or self.run_mutations:
            for number, example in enumerate(tool.examples, 1):
                result = await self._call(tool, example.params)
                runs.append(ExampleRun(example=number, result=result, stated_confidence=heard.claimed()))
        if runs and tool.read_only and runs[0].result.problem is None:
            second = await self._call(tool, tool.examples[0].params)
            again = second.data == runs[0].result.data
        wrong = _invalid_arguments(tool.input_schema)
        refusal = None if wrong is None else await self._call(tool, wrong)
        return ToolEvidence(runs=tuple(runs), equal_results=again, refusal=refusal, listed=True)

    async def _call(self, tool: Tool, arguments: JsonObject) -> Result:
        name = _canonical(tool.local)
        result = await self.runtime.gateway.call(name, arguments, self._caller(), origin=_ORIGIN)
        if result.metadata is not None:
            self.traces.setdefault(tool.local, []).append(_trace_digits(result.metadata.trace_id))
        return result

    def _caller(self) -> Caller:
        called = f"user:{self.user}" if self.user else "local"
        return Caller(id=called, user=self.user, key="local", permissions=frozenset({"*"}))


def _with_observability(
    name: str, seen: ToolEvidence, called: Mapping[str, Sequence[str]], logged: set[str], metrics: str
) -> ToolEvidence:
    """Add what the log and the counters say; where nothing was called there is nothing to say."""
    traces = called.get(name, ())
    if not traces:
        return seen
    counted = f'tool="{_canonical(name)}"' in metrics
    return replace(seen, logged=logged.issuperset(traces), counted=counted)


def _logged_traces(log: str) -> set[str]:
    """The traces whose call was logged."""
    events: dict[str, set[str]] = {}
    for line in log.splitlines():
        event = loads(line)
        if "trace_id" in event:
            events.setdefault(_trace_digits(event["trace_id"]), set()).add(event["event"])
    return {trace for trace, seen in events.items() if "call" in seen}


def _trace_digits(trace: str) -> str:
    """A trace's digits, however it is spelled."""
    return trace.replace("-", "")


def _invalid_arguments(schema: JsonObject) -> JsonObject | None:
    """Arguments the schema refuses, so that the tool itself is never reached; None where there are none."""
    check = compile_schema(schema)
    names = cast("Mapping[str, Any]", schema.get("properties", {}))
    tries: list[JsonObject] = [{}, *({name: wrong} for name in names for wrong in _UNFIT_VALUES)]
    return next((each for each in tries if not check.ok(each)), None)


def _canonical(name: str) -> str:
    return f"{SOURCE}:{name}"
