"""Builds the catalog from the name claims and tool definitions in the store."""

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
    """Export a counter of tool definitions that differ from the ones seen before."""
    what = "Definitions of tools that were another than the one seen before."
    journal.watch("definition_changes_total", "counter", what, catalog.definition_changes.total)


async def make_catalog(document: Document, order: Sequence[str], store: Store, tasks: TaskGroup) -> Catalog:
    """Build the catalog with sources in this order; new claims and definitions are written behind."""
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
