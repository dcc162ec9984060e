"""Migrates the stored tools of apps from the old definition format to the new one, and back."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from time import time

from toolcrib.apps.definition import definition_faults, duplicate_names
from toolcrib.apps.errors import DefinitionFault, first_faults
from toolcrib.apps.file_migration import ToolMigration, UnmigratableFile
from toolcrib.apps.migration import is_old, migrated
from toolcrib.interfaces import AppRecord, AppTool, StoredApps


@dataclass(frozen=True, slots=True)
class _AppMigration:
    """The migration of one app."""

    app: AppRecord
    tools: tuple[AppTool, ...]

    def changes(self) -> Iterator[ToolMigration]:
        for index, (before, after) in enumerate(zip(self.app.tools, self.tools, strict=True)):
            if after is not before:
                yield ToolMigration(f"{self.app.package}.tools[{index}]", before.definition, after.definition)


async def migrate_apps(
    apps: StoredApps, *, undo: bool = False, write: bool = True
) -> Sequence[ToolMigration]:
    """Migrate or restore every app; raise UnmigratableFile on any faulty definition, and change nothing."""
    every = await apps.all()
    if not undo and (faults := first_faults(fault for app in every for fault in _faults(app))):
        raise UnmigratableFile(*faults)
    convert = _restored if undo else _migrated
    plans = [_AppMigration(app, tuple(map(convert, app.tools))) for app in every]
    changed = [plan for plan in plans if any(plan.changes())]
    for plan in changed if write else ():
        await apps.define(plan.app.package, plan.tools, time())
    return [change for plan in changed for change in plan.changes()]


def _migrated(tool: AppTool) -> AppTool:
    old = tool.definition
    return AppTool(definition=migrated(old), original=old) if is_old(old) else tool


def _restored(tool: AppTool) -> AppTool:
    return tool if tool.original is None else AppTool(definition=tool.original)


def _faults(app: AppRecord) -> Iterator[DefinitionFault]:
    definitions = [tool.definition for tool in app.tools]
    if not any(map(is_old, definitions)):
        return
    old = ((index, each) for index, each in enumerate(definitions) if is_old(each))
    faults = [fault for index, each in old for fault in definition_faults(each, f"tools[{index}]")]
    for fault in faults or duplicate_names(definitions):
        yield DefinitionFault(f"{app.package}.{fault.path}", fault.message)
