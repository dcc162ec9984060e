"""Makes the catalog, with the name claims and definitions that the store has kept."""

from collections.abc import Sequence

from anyio.abc import TaskGroup

from toolcrib.background_tasks import keep_running
from toolcrib.catalog import Catalog
from toolcrib.config import Document
from toolcrib.interfaces import Store, StoredDefinition
from toolcrib.observe import CallRecorder
from toolcrib.runtime.convert import overrides_of
from toolcrib.runtime.reload import pin_modes
from toolcrib.runtime.store_sync import StoreWriter


def watch_definition_changes(catalog: Catalog, journal: CallRecorder) -> None:
    """Show among the metrics how often a definition was another than the one seen before it."""
    what = "Definitions of tools that were another than the one seen before."
    journal.watch("definition_changes_total", "counter", what, catalog.definition_changes.total)


async def make_catalog(document: Document, order: Sequence[str], store: Store, tasks: TaskGroup) -> Catalog:
    """Make the catalog of sources in this order; what it learns is stored in the background."""
    claims: StoreWriter[str] = StoreWriter("name claims", store.claims.put, store.claims.drop)
    definitions: StoreWriter[StoredDefinition] = StoreWriter(
        "definitions",
        lambda fresh: store.definitions.put(tuple(fresh.values())),
        store.definitions.drop,
    )
    tasks.start_soon(keep_running, claims.run)
    tasks.start_soon(keep_running, definitions.run)
    catalog = Catalog(
        order,
        added=document.added,
        overrides=overrides_of(document),
        claims=await store.claims.all(),
        claimed=claims.note,
        known=await store.definitions.all(),
        seen=lambda fresh, stale: definitions.note({each.name: each for each in fresh}, stale),
    )
    catalog.pin(document.pins, pin_modes(document))
    return catalog
