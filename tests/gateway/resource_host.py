"""Sources with resources and prompts, and a gateway over them."""

from collections.abc import Sequence
from typing import Any

from toolcrib.catalog import Catalog, Overrides, ToolOverride
from toolcrib.catalog.entries import SourceExtras, source_extras
from toolcrib.gateway import Completion, Gateway
from toolcrib.interfaces import Handler, Offer, SourceResources
from toolcrib.model import Tool
from toolcrib.pipeline import compose
from toolcrib.policy import Context, Contexts, DisabledRule, PermissionsRule, PinnedRule, Policy, RemovedRule
from toolcrib.steps.limit import Limit
from toolcrib.steps.recover import Recover
from toolcrib.steps.shape import Shape
from toolcrib.steps.validate import Validate
from toolcrib.steps.verify import Verify
from toolcrib.store.shared.memory import MemoryShared
from toolcrib.testing import Recordings, echo


def materials(
    uris: Sequence[str] = (), templates: Sequence[str] = (), prompts: Sequence[str] = (), **flags: Any
) -> SourceResources:
    """The resources of a source; flags default to what the lists contain."""
    flags = {"has_resources": bool(uris or templates), "has_prompts": bool(prompts), **flags}
    return SourceResources(
        resources=tuple({"uri": uri, "name": uri} for uri in uris),
        templates=tuple({"uriTemplate": text, "name": text} for text in templates),
        prompts=tuple({"name": name} for name in prompts),
        **flags,
    )


def holding(source: str, *lists: Sequence[str], **flags: Any) -> SourceExtras:
    """The same with pseudo-tools."""
    return source_extras(source, materials(*lists, **flags), Overrides({}), degraded=False)


class ResourceHost:
    """A gateway over sources without tools, with the steps that may refuse or change results."""

    def __init__(
        self,
        *,
        answer: Handler = echo,
        contexts: dict[str, Context] | None = None,
        overrides: dict[str, ToolOverride] | None = None,
        servers: Sequence[str] = (),
        **offers: SourceResources,
    ) -> None:
        self.answer, self.recordings = answer, Recordings()
        self.composed: list[str] = []
        self.catalog = Catalog(list(offers), overrides=Overrides(overrides or {}))
        rule, ids = Contexts(contexts or {}), iter(range(100_000))
        self._steps = (Recover(), Limit(MemoryShared()), Validate(), Shape(2_000), Verify())
        self.gateway = Gateway(
            Policy([rule, DisabledRule(), PinnedRule(), PermissionsRule(), RemovedRule()]),
            self._compose,
            Completion(lambda _tool: (1.0, 0.0, 0)),
            self.recordings,
            new_id=lambda: f"id-{next(ids)}",
            contexts=lambda: rule.contexts,
            servers=lambda: servers,
        )
        self.library = self.gateway.resource_access
        self.catalog.listen(self.gateway.adopt)
        for source, offered in offers.items():
            self.offer(source, offered)

    def offer(self, source: str, offered: SourceResources, *tools: Tool) -> None:
        self.catalog.replace(source, Offer(tools=tools, materials=offered))

    def _compose(self, tool: Tool) -> Handler:
        self.composed.append(tool.name)
        return compose(self._steps, tool, self.answer)
