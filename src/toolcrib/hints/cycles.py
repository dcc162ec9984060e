"""Finds whether things that wait for each other wait in a circle."""

from collections.abc import Collection
from graphlib import CycleError, TopologicalSorter


def circle(waits: Collection[tuple[str, tuple[str, ...]]]) -> tuple[str, ...]:
    """Return names that wait for each other in turn, the first again at the end; empty where none do."""
    names = {name for name, _ in waits}
    # Only what waits and is waited for can be part of a circle, and as a rule nothing is both.
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
