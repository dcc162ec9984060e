"""Data flow: calls of other tools whose required arguments are in a result."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from toolcrib.gateway.author_actions import ArgumentCheck
from toolcrib.gateway.field_names import (
    CHECKING_VERBS,
    IDENTIFIERS,
    READING_VERBS,
    SELF_IDENTIFYING,
    noun_of_tool,
    removes,
    verb_of_tool,
)
from toolcrib.gateway.related_tools import is_usable
from toolcrib.gateway.result_fields import (
    Field,
    Path,
    fields_of_data,
    fields_of_schema,
    outline_of,
    parameters_of,
    value_at,
)
from toolcrib.model import Call, Json, JsonObject, Tool
from toolcrib.model.value import is_secret_name

MAX_PLANS = 12
"""Plans that are kept for one result, best first; more than are suggested, as some targets are hidden."""
MAX_CACHED_SHAPES = 2_048
"""Shapes of results whose plans are cached; the cache is cleared when it is full."""
_MAX_VALUE_CHARACTERS = 256
"""A longer text is content, not an identifier."""
_MAX_TOOLS_PER_KEY = 64
"""Tools that are compared for one field: one that half the catalog takes carries little information."""
_MAX_COMPARED = 512
"""Tools that are compared with all fields of a result, some of them repeatedly."""
_MAX_OUTLINES = 64
"""Outlines of one tool's results: a tool with more has data for names, and its results have no fields."""
_MAX_NAME_CHARACTERS = 64
_MAX_PATHS = 3
"""Fields of the result that are tried for one parameter."""

_PREFIX, _ENTITY, _OTHER_SOURCE, _NAMED, _FORMAT = 0.95, 0.85, 0.65, 0.6, 0.4
"""Confidence by evidence: the form of the id, its entity, that of another source, a name, a format."""
_CARRIED = 0.9
"""Factor for arguments that are carried over from the call."""
_FORMATS = frozenset(("uri", "email", "date-time"))

_Key = tuple[str, ...]


def is_query(tool: Tool) -> bool:
    """Whether a tool may be suggested: it changes nothing, by its category or its server's annotation.

    The annotation counts here only: a wrong one costs a suggestion, not a repeated effect.
    """
    if tool.read_only:
        return True
    claimed = tool.annotations.get("readOnlyHint") is True and not tool.destructive
    return claimed and not tool.declared_mutation


class ToolParameters(NamedTuple):
    """The parameters of one tool, as far as results may contain their values."""

    tool: Tool
    optional: tuple[Field, ...]
    required: tuple[Field, ...] | None
    """None where a required parameter takes no single value, so that no result contains it."""


class Match(NamedTuple):
    """A field of a result that fits a parameter, and how certain that is."""

    path: Path
    certainty: float
    prefix: str = ""
    """What values of the field begin with."""


class Binding(NamedTuple):
    """Where the argument for one parameter comes from."""

    name: str
    paths: tuple[Path, ...]
    """Paths in the result, best first; empty where it is carried over from the call's arguments."""
    listed: bool = False
    """Whether the parameter takes a list of such values."""
    prefix: str = ""
    """What the value must begin with, where that is known."""
    entity: str = ""

    @classmethod
    def of(cls, parameter: Field, matches: Sequence[Match]) -> "Binding":
        """Return the binding of a parameter to fields of the result."""
        paths = tuple(match.path for match in matches)
        prefix = parameter.prefix or next((match.prefix for match in matches), "")
        return cls(
            _name(parameter), paths, parameter.listed and bool(paths), prefix, parameter.meaning.entity
        )


class FlowPlan(NamedTuple):
    """A call that results of one kind make possible."""

    tool: Tool
    bindings: tuple[Binding, ...]
    confidence: float
    source: str
    """The name of the field that the call takes."""
    reason: str


class ParameterIndex:
    """Index of the parameters of a catalog by what they mean; tools are added one after another."""

    def __init__(self, previous: "ParameterIndex | None" = None) -> None:
        self._previous: Mapping[str, ToolParameters] = {} if previous is None else previous.known
        self.prefixes: dict[str, None] = {}
        """What the values of parameters begin with, such as `deck_`."""
        self.known: dict[str, ToolParameters] = {}
        self._tools_by_key: dict[_Key, list[ToolParameters]] = {}

    def add(self, tool: Tool) -> None:
        """Index a tool that may be suggested; others are ignored."""
        if not (is_query(tool) and is_usable(tool)):
            return
        known = self.parameters(tool)
        if known.required is None:
            return
        fields = known.required or known.optional
        for key in {key for field in fields for key in _keys_of_parameter(field, tool)}:
            # By source too: the tools of one server must not be crowded out by those of others.
            for bucket in (key, (*key, tool.source)):
                tools = self._tools_by_key.setdefault(bucket, [])
                if len(tools) < _MAX_TOOLS_PER_KEY:
                    tools.append(known)
        for field in fields:
            self.prefixes.update(dict.fromkeys(_prefixes_of(field)))

    def parameters(self, tool: Tool) -> ToolParameters:
        """Return the parameters of a tool."""
        known = self.known.get(tool.name) or self._previous.get(tool.name)
        if known is not None and known.tool is tool:
            pass
        elif known is not None and known.tool.input_schema is tool.input_schema:
            known = known._replace(tool=tool)
        else:
            known = ToolParameters(tool, *parameters_of(tool.input_schema, noun_of_tool(tool.local)))
        self.known[tool.name] = known
        return known

    def with_format(self, format: str) -> list[ToolParameters]:
        """Return the tools with a parameter in a format."""
        return self._tools_by_key.get(("format", "uri" if format == "url" else format), [])

    def candidates(self, field: Field, source: str) -> Iterator[ToolParameters]:
        """Yield tools of which a parameter may fit a field, those of the same source first."""
        for key in _keys_of_field(field):
            yield from self._tools_by_key.get((*key, source), ())
            yield from self._tools_by_key.get(key, ())


def _prefixes_of(field: Field) -> Iterator[str]:
    """Yield what the values of a parameter begin with, or may begin with: `deck_` for a `deck_id`."""
    if field.prefix:
        yield field.prefix
    elif field.meaning.attribute == "id" and field.meaning.entity:
        yield from (f"{field.meaning.entity}{mark}" for mark in "_-:")


def _keys_of_parameter(field: Field, tool: Tool) -> Iterator[_Key]:
    meaning = field.meaning
    if field.prefix:
        yield "prefix", field.prefix
    if meaning.entity:
        yield "entity", meaning.entity
    if meaning.name in SELF_IDENTIFYING or meaning.attribute in ("uri", "email", "path"):
        yield "name", meaning.attribute or meaning.name
    if not meaning.attribute and meaning.name == noun_of_tool(tool.local):
        yield "entity", meaning.name
    if field.format in _FORMATS:
        yield "format", _format(field)


def _keys_of_field(field: Field) -> Iterator[_Key]:
    meaning = field.meaning
    if field.prefix:
        yield "prefix", field.prefix
        yield "entity", field.prefix[:-1].lower()
    if meaning.entity or not meaning.attribute:
        yield "entity", meaning.entity or meaning.name
    yield "name", meaning.attribute or meaning.name


def _format(field: Field) -> str:
    return "uri" if field.format == "url" else field.format


def certainty(field: Field, parameter: Field, *, same_source: bool) -> float:
    """Return how certain it is that a field of a result is what a parameter takes; 0 where it is not."""
    if field.closed or parameter.closed or not _types_fit(field, parameter):
        return 0.0
    if field.prefix or parameter.prefix:
        found = _certainty_of_prefix(field, parameter)
        if found is not None:
            return found
    mine, wanted = field.meaning, parameter.meaning
    if wanted.attribute in ("uri", "email", "path") and mine.attribute == wanted.attribute:
        return _NAMED if same_source or wanted.attribute != "path" else 0.0
    if mine.entity and mine.entity == wanted.entity and mine.attribute == wanted.attribute:
        return _certainty_of_entity(field, parameter, same_source=same_source)
    if not same_source:
        return 0.0
    if not wanted.attribute and wanted.name in (mine.entity, mine.name if not mine.attribute else ""):
        # `deck` takes the id of a deck, or what another tool calls `deck`.
        return _NAMED if mine.attribute in ("id", "name", "") else 0.0
    return _NAMED if mine.name == wanted.name and mine.name in SELF_IDENTIFYING else 0.0


def _certainty_of_prefix(field: Field, parameter: Field) -> float | None:
    """Compare the forms of two ids; None where one of them has none."""
    if field.prefix and parameter.prefix:
        return _PREFIX if field.prefix == parameter.prefix else 0.0
    if field.prefix and parameter.meaning.attribute == "id":
        return _ENTITY if field.prefix[:-1].lower() == parameter.meaning.entity else None
    return None


def _certainty_of_entity(field: Field, parameter: Field, *, same_source: bool) -> float:
    mine, wanted = field.meaning, parameter.meaning
    identifies = mine.attribute in IDENTIFIERS
    if same_source:
        return _ENTITY if identifies else _NAMED
    # Two systems may call different things an id of the same entity, so both must name the entity.
    return _OTHER_SOURCE if identifies and mine.explicit and wanted.explicit else 0.0


def _types_fit(field: Field, parameter: Field) -> bool:
    return bool(field.types & parameter.types) or (
        "integer" in field.types and "number" in parameter.types and field.meaning.attribute in IDENTIFIERS
    )


class DataFlow:
    """Plans which calls a result makes possible, once for each tool or shape of results."""

    def __init__(self, index: ParameterIndex) -> None:
        self.index = index
        self._plans_by_tool: dict[str, tuple[Tool, tuple[FlowPlan, ...] | None]] = {}
        self._plans_by_shape: dict[tuple[object, ...], tuple[FlowPlan, ...]] = {}
        self._outlines: Counter[str] = Counter()
        self._plans_by_target: dict[tuple[object, ...], FlowPlan | None] = {}
        self._checks: dict[str, tuple[Tool, tuple[FlowPlan, ...]]] = {}
        self._accepts = ArgumentCheck()

    def plans(self, tool: Tool, data: Json) -> tuple[FlowPlan, ...]:
        """Return the calls that a result of this tool makes possible, best first."""
        cached = self._plans_by_tool.get(tool.name)
        if cached is None or cached[0] is not tool:
            cached = self._plans_by_tool[tool.name] = (tool, self._plans_of_schema(tool))
        plans = cached[1]
        return plans if plans is not None else self._plans_of_shape(tool, data)

    @staticmethod
    def arguments(plan: FlowPlan, given: JsonObject, data: Json) -> JsonObject | None:
        """Return the arguments of a planned call; None where a value is missing."""
        arguments: dict[str, Json] = {}
        for binding in plan.bindings:
            prefix = binding.prefix
            if not binding.paths:
                value = given.get(binding.name)
                if not is_value(value, prefix):
                    return None
            else:
                for path in binding.paths:
                    value = value_at(data, path)
                    if is_value(value, prefix):
                        break
                else:
                    return None
            arguments[binding.name] = [plain(value)] if binding.listed else plain(value)
        return arguments

    def arguments_for(self, target: Tool, call: Call, data: Json) -> JsonObject | None:
        """Return arguments from a result for a tool that its author names, which may be a mutation."""
        tool = call.tool
        fields = self._fields(tool, data)
        key = (target.name, tool.name, *(field.path for field in fields))
        if key not in self._plans_by_target:
            if len(self._plans_by_target) >= MAX_CACHED_SHAPES:
                self._plans_by_target.clear()
            self._plans_by_target[key] = plan_for(self.index.parameters(target), fields, tool)
        plan = self._plans_by_target[key]
        arguments = None if plan is None else self.arguments(plan, call.arguments, data)
        return arguments if arguments is not None and self.is_valid(target, arguments) else None

    def checks(self, tool: Tool) -> tuple[FlowPlan, ...]:
        """Return the reads of what a call was about, by its own arguments."""
        cached = self._checks.get(tool.name)
        if cached is None or cached[0] is not tool:
            optional, required = parameters_of(tool.input_schema, noun_of_tool(tool.local))
            plans = self.plans_for(tool, (*(required or ()), *optional))
            reads = tuple(
                plan
                for plan in plans
                if plan.tool.source == tool.source and verb_of_tool(plan.tool.local) in CHECKING_VERBS
            )
            cached = self._checks[tool.name] = (tool, reads)
        return cached[1]

    def is_valid(self, tool: Tool, arguments: JsonObject) -> bool:
        """Whether arguments are complete and valid for a tool."""
        return self._accepts(tool, arguments)

    def plans_for(self, tool: Tool, fields: Iterable[Field]) -> tuple[FlowPlan, ...]:
        """Return the calls that values of these fields make possible, best first."""
        known = tuple(field for field in fields if not field.closed)
        candidates = (each for field in known for each in self.index.candidates(field, tool.source))
        compared = {each.tool.name: each for each in islice(candidates, _MAX_COMPARED)}
        plans = [plan for each in compared.values() if (plan := plan_for(each, known, tool)) is not None]
        plans += self._plans_by_format(known, tool, compared)
        return tuple(sorted(plans, key=lambda plan: -_rank(plan, tool)))[:MAX_PLANS]

    def _fields(self, tool: Tool, data: Json) -> tuple[Field, ...]:
        """Return the declared fields of a tool's results, else those of the data."""
        noun = noun_of_tool(tool.local)
        declared = fields_of_schema(tool.output_schema, noun) if tool.output_schema is not None else ()
        return declared or fields_of_data(data, noun, self.index.prefixes)

    def _plans_of_schema(self, tool: Tool) -> tuple[FlowPlan, ...] | None:
        """Return the plans for the declared results of a tool; None where it declares no fields."""
        if tool.output_schema is None:
            return None
        fields = fields_of_schema(tool.output_schema, noun_of_tool(tool.local))
        return self.plans_for(tool, _remaining(tool, fields)) if fields else None

    def _plans_of_shape(self, tool: Tool, data: Json) -> tuple[FlowPlan, ...]:
        shape = (tool.name, outline_of(data, self.index.prefixes))
        if not shape[1]:
            return ()
        plans = self._plans_by_shape.get(shape)
        if plans is None:
            if self._outlines[tool.name] >= _MAX_OUTLINES:
                return ()
            self._outlines[tool.name] += 1
            if len(self._plans_by_shape) >= MAX_CACHED_SHAPES:
                self._plans_by_shape.clear()
                self._outlines.clear()
            fields = fields_of_data(data, noun_of_tool(tool.local), self.index.prefixes)
            plans = self._plans_by_shape[shape] = self.plans_for(tool, _remaining(tool, fields))
        return plans

    def _plans_by_format(
        self, fields: tuple[Field, ...], tool: Tool, compared: Collection[str]
    ) -> Iterator[FlowPlan]:
        """Yield plans from formats alone: one field, one tool, and it needs nothing else."""
        for each in _FORMATS:
            matching = [field for field in fields if field.format == each]
            targets = self.index.with_format(each)
            if len(matching) != 1 or len(targets) != 1 or targets[0].tool.name in {*compared, tool.name}:
                continue
            target, required = targets[0].tool, targets[0].required or ()
            if len(required) == 1 and required[0].format == each and _types_fit(matching[0], required[0]):
                bindings = (Binding.of(required[0], [Match(matching[0].path, _FORMAT)]),)
                source = _last_key(matching[0].path)
                yield FlowPlan(target, bindings, _FORMAT, source, _reason(target, source))


def plan_for(target: ToolParameters, fields: tuple[Field, ...], tool: Tool) -> FlowPlan | None:
    """Return how to call a tool with values of some fields; None where a required argument is unknown."""
    same_source = target.tool.source == tool.source
    if target.required is None:
        return None
    bindings: list[Binding] = []
    confidence, taken = 1.0, ""
    for parameter in target.required:
        matches = _matches(parameter, fields, same_source=same_source)
        if matches:
            bindings.append(Binding.of(parameter, matches))
            confidence, taken = min(confidence, matches[0].certainty), taken or _last_key(matches[0].path)
        elif _is_carried(parameter, tool, same_source=same_source):
            bindings.append(Binding.of(parameter, ()))
        else:
            return None
    if not taken:
        # No required argument is in the result: an optional one that is certain makes a call of it.
        options = [
            (matches[0], parameter)
            for parameter in target.optional
            if (matches := _matches(parameter, fields, same_source=same_source))
        ]
        best = max(options, key=lambda each: each[0].certainty, default=None)
        if best is None or best[0].certainty < _ENTITY or bindings:
            return None
        match, parameter = best
        confidence, taken = match.certainty, _last_key(match.path)
        bindings.append(Binding.of(parameter, [match]))
    if not all(each.paths for each in bindings):
        confidence *= _CARRIED
    reason = _reason(target.tool, taken)
    return FlowPlan(target.tool, tuple(bindings), round(confidence, 2), taken, reason)


def _reason(target: Tool, source: str) -> str:
    return f"{target.local[:_MAX_NAME_CHARACTERS]} takes the {source or 'value'} found here."


def _matches(parameter: Field, fields: tuple[Field, ...], *, same_source: bool) -> list[Match]:
    found = [
        Match(each.path, certainty(each, parameter, same_source=same_source), each.prefix) for each in fields
    ]
    return sorted((each for each in found if each.certainty), key=lambda each: -each.certainty)[:_MAX_PATHS]


def _is_carried(parameter: Field, tool: Tool, *, same_source: bool) -> bool:
    """Whether the call has an argument with the same name and type, which means the same to both tools."""
    name = _name(parameter)
    properties: JsonObject = tool.input_schema.get("properties") or {}
    if name not in properties or is_secret_name(name):
        return False
    own = parameters_of({"properties": {name: properties[name]}, **_definitions(tool)}, "")[0]
    same_type = bool(own) and own[0].types == parameter.types and own[0].listed == parameter.listed
    return same_type and (same_source or (bool(parameter.prefix) and own[0].prefix == parameter.prefix))


def _definitions(tool: Tool) -> JsonObject:
    return {key: tool.input_schema[key] for key in ("$defs", "definitions") if key in tool.input_schema}


def _remaining(tool: Tool, fields: tuple[Field, ...]) -> tuple[Field, ...]:
    """Leave out what a tool has removed: its id is of no use any more."""
    if not (tool.destructive or removes(tool.local)):
        return fields
    noun = noun_of_tool(tool.local)
    return tuple(
        field
        for field in fields
        if field.meaning.entity not in ("", noun) and field.prefix[:-1].lower() != noun
    )


def _rank(plan: FlowPlan, tool: Tool) -> float:
    """Return a plan's confidence, with a preference for tools that read what the result names."""
    target = plan.tool
    reads = verb_of_tool(target.local) in READING_VERBS
    about = any(each.entity == noun_of_tool(target.local) for each in plan.bindings)
    return plan.confidence + 0.02 * reads + 0.02 * about + 0.01 * (target.source == tool.source)


def _last_key(path: Path) -> str:
    return next((step for step in reversed(path) if isinstance(step, str)), "")


def _name(parameter: Field) -> str:
    return str(parameter.path[0])


def is_value(value: Json, prefix: str) -> bool:
    """Whether a value can identify something: a short text in one line, or a number."""
    if isinstance(value, str):
        return 0 < len(value) <= _MAX_VALUE_CHARACTERS and value.startswith(prefix) and "\n" not in value
    return type(value) is int or type(value) is float


def plain(value: Json) -> Json:
    """Return a value without its subclass, such as that of a branded id, which the validator refuses."""
    return str.__str__(value) if isinstance(value, str) else value
