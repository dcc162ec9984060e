"""Next actions after a result: its next page, what callers did next, and calls that take its values."""

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import orjson

from toolcrib.cooperative import map_cooperatively
from toolcrib.gateway.data_flow import DataFlow, FlowPlan, ParameterIndex, is_query, is_value, plain
from toolcrib.gateway.related_tools import is_usable, kebab_case
from toolcrib.gateway.result_fields import value_at
from toolcrib.gateway.result_pages import Paging, next_page, paging_of
from toolcrib.hints.parts import impact_of
from toolcrib.interfaces import LearnedStep
from toolcrib.model import Call, Caller, Hints, Json, JsonObject, Result, Tool
from toolcrib.model.hints import Impact, NextAction

log = logging.getLogger(__name__)

MAX_SUGGESTIONS = 3
"""Maximum actions that are suggested after a result, those of its author included."""
FETCH_MORE = "fetch-more"
"""The action by which authors point at the next page."""
CHECK_OUTCOME = "check-outcome"
"""The action after an unknown outcome."""
_CONTINUATION = 0.9
"""Confidence of the call for the next page."""
_LEAST_LEARNED, _LEARNED_RANGE = 0.45, 0.14
"""Confidence of a learned call: between the one of a format and the one of a name, by its share."""
_MAX_TOOLS_AT_ONCE = 200
"""A larger catalog is indexed in slices that yield to the event loop, as it takes longer than a call."""
_AGREEMENT = 0.04
"""What is added where callers really make a call that the values make possible."""
_KNOWN = 0.8
"""Factor for values that the caller gave itself, and that the result only repeats."""
_LIKELY = 0.8
"""Confidence from which a suggestion has medium priority."""

_MAX_ARGUMENT_BYTES = 1_024
"""Maximum size of arguments that are suggested again for the next page, in bytes of JSON."""
_NO_ACTIONS, _NO_IMPACT = (
    b'"suggestedNextActions":[]',
    b'"estimatedImpact":' + orjson.dumps(Impact().as_json()),
)
"""Both in serialized hints without actions; quotes are escaped in texts, so neither occurs in one."""
_STRUCTURED = (dict, list)

Learned = Callable[[str, str], tuple[LearnedStep, ...]]
"""Returns what follows a tool, for a caller."""


class Suggestion(NamedTuple):
    """A complete call, how likely it is wanted, and why."""

    tool: Tool
    arguments: JsonObject
    confidence: float
    reason: str

    def action(self) -> NextAction:
        """Return the suggestion as an action."""
        reads = is_query(self.tool)
        return NextAction(
            action=kebab_case(self.tool.local),
            priority="medium" if self.confidence >= _LIKELY else "low",
            data={"tool": self.tool.name, "arguments": self.arguments},
            description=self.reason,
            category="exploration" if reads else None,
            reversible=True if reads else None,
            confidence=self.confidence,
        )


def nothing_learned(tool: str, caller: str) -> tuple[LearnedStep, ...]:
    """Return nothing, where no sequences are recorded."""
    del tool, caller
    return ()


class NextActions:
    """Derives next actions from results; what depends on the tools alone is prepared once per catalog."""

    def __init__(self, visible: Callable[[Tool, Caller], bool], learned: Learned) -> None:
        self._visible, self._learned = visible, learned
        self._tools: Mapping[str, Tool] = {}
        self._index = ParameterIndex()
        self._flow: DataFlow | None = DataFlow(self._index)
        self._preparing: asyncio.Task[None] | None = None
        self._paging: dict[str, tuple[Tool, Paging | None]] = {}

    def adopt(self, tools: Mapping[str, Tool]) -> None:
        """Use another catalog; its parameters are indexed at the first call."""
        self.close()
        self._tools, self._flow, self._paging = tools, None, {}

    def close(self) -> None:
        """Stop indexing."""
        if self._preparing is not None:
            self._preparing.cancel()
            self._preparing = None

    async def prepared(self) -> None:
        """Wait until the parameters of the catalog are indexed."""
        self._data_flow()
        if self._preparing is not None:
            await asyncio.wait([self._preparing])

    def _data_flow(self) -> DataFlow | None:
        """Return the data flow of this catalog; None while a large one is being indexed."""
        if self._flow is None and self._preparing is None:
            index, tools = ParameterIndex(self._index), tuple(self._tools.values())
            if len(tools) <= _MAX_TOOLS_AT_ONCE:
                for tool in tools:
                    index.add(tool)
                self._index, self._flow = index, DataFlow(index)
            else:
                self._preparing = asyncio.get_running_loop().create_task(self._prepare(index, tools))
        return self._flow

    async def _prepare(self, index: ParameterIndex, tools: Sequence[Tool]) -> None:
        await map_cooperatively(tools, index.add)
        self._index, self._flow, self._preparing = index, DataFlow(index), None

    def after(self, call: Call, result: Result) -> tuple[NextAction, ...]:
        """Return the calls to suggest after a result, best first; mostly there is none."""
        try:
            return self._after(call, result)
        except Exception:  # boundary: a bug in a suggestion must not cost the caller the result
            log.exception("no next actions for a result of %s", call.tool.name)
            return ()

    def _after(self, call: Call, result: Result) -> tuple[NextAction, ...]:
        data, problem = result.data, result.problem
        if problem is not None:
            return self._checks(call) if problem.code == "OUTCOME_UNKNOWN" else ()
        if result.ask is not None or type(data) not in _STRUCTURED:
            return ()
        tool = call.tool
        paging = self._paging_of(tool)
        steps = self._learned(tool.name, call.caller.id)
        flow = self._flow or self._data_flow()
        plans = () if flow is None else flow.plans(tool, data)
        own = () if result.hints is None else result.hints.suggested_next_actions
        if flow is None or not (paging or steps or plans or own):
            return ()
        pages = () if paging is None else tuple(_continuations(paging, call, data))
        named = tuple(self._named_calls(own, call, data, flow)) if own else ()
        if pages and any(each.action == FETCH_MORE and each.data is None for each in own):
            # The author's words, with the call that they lack.
            (named, pages) = ((*named, replace(pages[0].action(), action=FETCH_MORE)), ())
        found = (
            *pages,
            *(self._learned_calls(steps, call, data) if steps else ()),
            *_flowing_calls(flow, plans, call, data),
        )
        if not found or len(own) >= MAX_SUGGESTIONS:
            return named
        fitting = [each for each in _distinct(found, own) if self._fits(each, flow, call)]
        return (*named, *[each.action() for each in _best(fitting, MAX_SUGGESTIONS - len(own))])

    def _checks(self, call: Call) -> tuple[NextAction, ...]:
        """Return the call that shows whether a call with an unknown outcome took effect."""
        flow = self._data_flow()
        for plan in () if flow is None else flow.checks(call.tool):
            arguments = flow.arguments(plan, {}, call.arguments) if flow is not None else None
            if flow is not None and arguments is not None:
                reason = f"{plan.tool.local} shows whether the call took effect."
                check = Suggestion(plan.tool, arguments, plan.confidence, reason)
                if self._fits(check, flow, call):
                    return (replace(check.action(), action=CHECK_OUTCOME, category="correction"),)
        return ()

    def _paging_of(self, tool: Tool) -> Paging | None:
        cached = self._paging.get(tool.name)
        if cached is None or cached[0] is not tool:
            paging = paging_of(tool) if is_query(tool) and is_usable(tool) else None
            cached = self._paging[tool.name] = (tool, paging)
        return cached[1]

    def _named_calls(
        self, own: tuple[NextAction, ...], call: Call, data: Json, flow: DataFlow
    ) -> Iterator[NextAction]:
        """Yield the calls of tools that the author only names, mutations too, with values of the result."""
        for action in own:
            tool = None if action.data is not None else self._named_tool(action.action, call.tool.source)
            arguments = None if tool is None else flow.arguments_for(tool, call, data)
            if tool is None or arguments is None or not is_usable(tool):
                continue
            named = Suggestion(tool, arguments, action.confidence or 0.0, "")
            if self._fits(named, flow, call):
                yield replace(action, data={"tool": tool.name, "arguments": arguments})

    def _named_tool(self, name: str, source: str) -> Tool | None:
        """Return the tool of a source with a name in any style; the tools of others are not an author's."""
        local = name.removeprefix(f"{source}:")
        styles = (local, local.replace("-", "_"), local.replace("_", "-"))
        return next((tool for each in styles if (tool := self._tools.get(f"{source}:{each}"))), None)

    def _learned_calls(self, steps: tuple[LearnedStep, ...], call: Call, data: Json) -> Iterator[Suggestion]:
        for step in steps:
            tool = self._tools.get(step.tool)
            if tool is not None and is_usable(tool) and (step.own or is_query(tool)):
                arguments = _learned_arguments(step, call, data)
                if arguments is not None:
                    confidence = round(_LEAST_LEARNED + _LEARNED_RANGE * step.share, 2)
                    reason = f"{tool.local} was called next before, with values found here."
                    yield Suggestion(tool, arguments, confidence, reason)

    def _fits(self, each: Suggestion, flow: DataFlow, call: Call) -> bool:
        """Whether a call is valid, allowed for this caller now, and not the one that was just made."""
        tool, given = each.tool, call.arguments
        repeated = tool.name == call.tool.name and all(
            name in given and given[name] == value for name, value in each.arguments.items()
        )
        return not repeated and flow.is_valid(tool, each.arguments) and self._visible(tool, call.caller)


def _continuations(paging: Paging, call: Call, data: Json) -> Iterator[Suggestion]:
    found = next_page(paging, call.arguments, data)
    if found is not None and _is_small(found.arguments):
        reason = f"{found.source} leads to the next page."
        yield Suggestion(call.tool, found.arguments, _CONTINUATION, reason)


def _is_small(arguments: JsonObject) -> bool:
    try:
        return len(orjson.dumps(arguments)) <= _MAX_ARGUMENT_BYTES
    except TypeError:
        return False


def _learned_arguments(step: LearnedStep, call: Call, data: Json) -> JsonObject | None:
    arguments: dict[str, Json] = {}
    for source in step.sources:
        value = value_at(data, source.path) if source.path else call.arguments.get(source.given)
        if not is_value(value, ""):
            return None
        arguments[source.argument] = plain(value)
    return arguments


def _flowing_calls(
    flow: DataFlow, plans: tuple[FlowPlan, ...], call: Call, data: Json
) -> Iterator[Suggestion]:
    given = call.arguments.values()
    for plan in plans:
        arguments = flow.arguments(plan, call.arguments, data)
        if arguments is None:
            continue
        confidence = plan.confidence
        if given and all(value in given for value in arguments.values()):
            # The caller knows it already: after a change there is nothing to look up by it.
            if not is_query(call.tool):
                continue
            confidence = round(confidence * _KNOWN, 2)
        yield Suggestion(plan.tool, arguments, confidence, plan.reason)


def _distinct(found: Sequence[Suggestion], own: tuple[NextAction, ...]) -> list[Suggestion]:
    """Leave out what the author suggests already; equal calls support each other."""
    authors = {each.action for each in own}
    distinct: list[Suggestion] = []
    for each in found:
        if authors and kebab_case(each.tool.local) in authors:
            continue
        for place, other in enumerate(distinct):
            if other.tool is each.tool and other.arguments == each.arguments:
                sure = round(min(0.99, max(other.confidence, each.confidence) + _AGREEMENT), 2)
                distinct[place] = each._replace(confidence=sure)
                break
        else:
            distinct.append(each)
    return distinct


def _best(fitting: list[Suggestion], room: int) -> list[Suggestion]:
    """Return the best suggestions; the next page is always among them."""
    if len(fitting) > 1:
        fitting.sort(key=_by_confidence)
    best = fitting[:room]
    for each in fitting[room:]:
        if each.confidence == _CONTINUATION:
            best[-1] = each
    return best


def _by_confidence(suggestion: Suggestion) -> float:
    return -suggestion.confidence


def suggesting(result: Result, actions: tuple[NextAction, ...]) -> Result:
    """Return a completed result with more suggested actions."""
    return result.replace(hints=None if result.hints is None else _with_actions(result.hints, actions))


def _with_actions(hints: Hints, actions: tuple[NextAction, ...]) -> Hints:
    """Append actions, and estimate their impact."""
    own, encoded = hints.suggested_next_actions, hints.encoded
    if own:
        merged = _merged(own, actions)
        changed = hints.but(
            suggested_next_actions=merged, estimated_impact=impact_of(merged, hints.confidence)
        )
        return changed.replace(encoded=orjson.dumps(changed.as_json()))
    # Most hints have no actions of their own, and are serialized already: the rest is spliced in.
    impact = impact_of(actions, hints.confidence)
    listed = b",".join([orjson.dumps(each.as_json()) for each in actions])
    spliced = encoded.replace(_NO_ACTIONS, b'"suggestedNextActions":[%b]' % listed, 1)
    return hints.replace(
        suggested_next_actions=actions,
        estimated_impact=impact,
        encoded=spliced.replace(_NO_IMPACT, b'"estimatedImpact":' + orjson.dumps(impact.as_json()), 1),
    )


def _merged(own: tuple[NextAction, ...], actions: tuple[NextAction, ...]) -> tuple[NextAction, ...]:
    """Append actions; one that is there by its name gets its call."""
    calls = {each.action: each.data for each in actions}
    complete = tuple(
        replace(each, data=calls[each.action]) if each.data is None and each.action in calls else each
        for each in own
    )
    present = {each.action for each in own if each.data is None}
    return complete + tuple(each for each in actions if each.action not in present)
