"""Cycle detection in dependencies."""

from collections.abc import Collection
from graphlib import CycleError, TopologicalSorter


def circle(waits: Collection[tuple[str, tuple[str, ...]]]) -> tuple[str, ...]:
    """Return the names of a dependency cycle, the first one repeated at the end; empty if there is none."""
    names = {name for name, _ in waits}
    # Fast path: a cycle needs a name that both waits and is waited for, which is rare.
    if all(map(names.isdisjoint, (others for _, others in waits))):
        return ()
    order: TopologicalSorter[str] = TopologicalSorter()
    for name, others in waits:
        order.add(name, *others)
    try:
        order.prepare()
    except CycleError as error:
        return tuple(reversed(error.args[1]))
    return ()
