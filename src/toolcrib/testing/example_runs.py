"""Runs the examples of tools in a separate in-memory gateway and collects the evidence for the checklist."""

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
_SAMPLE_VALUES: tuple[Any, ...] = (None, [], {}, "", -1.5, True)
"""One value of each JSON type: every parameter whose schema restricts it rejects at least one of them."""


async def run_examples(
    tools: Sequence[AnyTool], *, run_mutations: bool = False, user: str | None = None
) -> dict[str, ToolEvidence]:
    """Run the examples of tools and return the evidence by tool name; mutating tools need `run_mutations`.

    Caches and rate limits of the tools are disabled, so that every run calls the function.
    """
    recorded = [_RecordedTool(tool) for tool in tools]
    log_output = StringIO()
    log = Log(LineWriterThread(log_output), Redactor())
    document = replace(default_document({}), store=_IN_MEMORY)
    document = replace(document, auth=replace(document.auth, admin_key=new_key()))
    try:
        async with build(document, env={}, tools=[each.tool for each in recorded], journal_to=log) as runtime:
            await runtime.settled(_START_SECONDS)
            runner = _ExampleRunner(runtime, run_mutations=run_mutations, user=user)
            evidence = {each.name: await runner.run(each) for each in recorded}
            metrics = runtime.console.metrics().decode()
    finally:
        log.close()
    traces = _logged_traces(log_output.getvalue())
    return {
        name: _with_observability(name, each, runner.traces, traces, metrics)
        for name, each in evidence.items()
    }


class _RecordedTool:
    """A tool without cache and rate limit, whose function is wrapped to record its return value."""

    def __init__(self, tool: AnyTool) -> None:
        self.name = tool.name
        self.returned: Any = None
        definition = replace(tool.definition, cache_ttl=None, shared_cache=False, rate_limit=None)
        recording = self._record_async(tool.function) if tool.is_async else self._record_sync(tool.function)
        self.tool: AnyTool = replace(tool, definition=definition, function=recording)

    def _record_async(self, function: Callable[..., Any]) -> Callable[..., Any]:
        async def run(**arguments: Any) -> Any:
            self.returned = await function(**arguments)
            return self.returned

        return run

    def _record_sync(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def run(**arguments: Any) -> Any:
            self.returned = function(**arguments)
            return self.returned

        return run

    def take_stated_confidence(self) -> float | None:
        """Return the confidence that the last result stated without evidence, and reset the record."""
        returned, self.returned = self.returned, None
        hints = cast("ToolResult[Any]", returned).hints if isinstance(returned, ToolResult) else None
        if isinstance(hints, Hints):
            return hints.confidence if hints.evidence is None else None
        confidence = hints.get("confidence") if isinstance(hints, Mapping) else None
        return float(confidence) if isinstance(confidence, int | float) else None


@dataclass(frozen=True)
class _ExampleRunner:
    """Calls tools in a gateway with all permissions."""

    runtime: Runtime
    run_mutations: bool
    user: str | None
    traces: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    """Trace ids of the calls, by tool."""

    async def run(self, recorded: _RecordedTool) -> ToolEvidence:
        tool = recorded.tool.definition
        offered = {each.name: each for each in self.runtime.gateway.tools(self._caller())}
        withheld = [
            each
            for each in self.runtime.console.status()["withheld"]
            if each["name"] == _canonical(tool.local)
        ]
        if _canonical(tool.local) not in offered:
            return ToolEvidence(listed=False, withheld=withheld[0]["reason"] if withheld else "")
        runs: list[ExampleRun] = []
        equal_results: bool | None = None
        if tool.read_only or self.run_mutations:
            for number, example in enumerate(tool.examples, 1):
                result = await self._call(tool, example.params)
                confidence = recorded.take_stated_confidence()
                runs.append(ExampleRun(example=number, result=result, stated_confidence=confidence))
        if runs and tool.read_only and runs[0].result.problem is None:
            second = await self._call(tool, tool.examples[0].params)
            equal_results = second.data == runs[0].result.data
        invalid_arguments = _invalid_arguments(tool.input_schema)
        refusal = None if invalid_arguments is None else await self._call(tool, invalid_arguments)
        return ToolEvidence(runs=tuple(runs), equal_results=equal_results, refusal=refusal, listed=True)

    async def _call(self, tool: Tool, arguments: JsonObject) -> Result:
        name = _canonical(tool.local)
        result = await self.runtime.gateway.call(name, arguments, self._caller(), origin=_ORIGIN)
        if result.metadata is not None:
            self.traces.setdefault(tool.local, []).append(_trace_digits(result.metadata.trace_id))
        return result

    def _caller(self) -> Caller:
        caller_id = f"user:{self.user}" if self.user else "local"
        return Caller(id=caller_id, user=self.user, key="local", permissions=frozenset({"*"}))


def _with_observability(
    name: str,
    evidence: ToolEvidence,
    traces_by_tool: Mapping[str, Sequence[str]],
    logged_traces: set[str],
    metrics: str,
) -> ToolEvidence:
    """Add whether all calls were logged and counted; without calls there is no evidence of either."""
    traces = traces_by_tool.get(name, ())
    if not traces:
        return evidence
    counted = f'tool="{_canonical(name)}"' in metrics
    return replace(evidence, logged=logged_traces.issuperset(traces), counted=counted)


def _logged_traces(log: str) -> set[str]:
    """Return the traces with a log event for the call."""
    events: dict[str, set[str]] = {}
    for line in log.splitlines():
        event = loads(line)
        if "trace_id" in event:
            events.setdefault(_trace_digits(event["trace_id"]), set()).add(event["event"])
    return {trace for trace, names in events.items() if "call" in names}


def _trace_digits(trace: str) -> str:
    """Return the digits of a trace id, which may be written with dashes."""
    return trace.replace("-", "")


def _invalid_arguments(schema: JsonObject) -> JsonObject | None:
    """Return arguments that the schema rejects, so that no function is called; None if there are none."""
    check = compile_schema(schema)
    names = cast("Mapping[str, Any]", schema.get("properties", {}))
    candidates: list[JsonObject] = [{}, *({name: value} for name in names for value in _SAMPLE_VALUES)]
    return next((each for each in candidates if not check.ok(each)), None)


def _canonical(name: str) -> str:
    return f"{SOURCE}:{name}"
