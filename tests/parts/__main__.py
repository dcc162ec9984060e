"""Fetch every part and print its state in a line; `lock` resolves npm's packages again."""

import sys
import time
from concurrent.futures import ThreadPoolExecutor

from tests.parts import conformance, mentra, node, others, proxies
from tests.parts.registry import PARTS, Missing, take

AT_ONCE = 4
"""Fetching mostly waits for the network."""


def told(name: str) -> str:
    purpose, began = PARTS[name].purpose, time.monotonic()
    try:
        where = take(name)
    except Missing as missing:
        return f"  missing  {name:<14} {purpose}: {missing}"
    took = time.monotonic() - began
    note = f" (fetched in {took:.0f} s)" if took > 1 else ""
    return f"  ready    {name:<14} {purpose}: {where}{note}"


def fetch() -> None:
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for line in pool.map(told, (name for name, part in PARTS.items() if not part.late)):
            print(line, flush=True)


def lock() -> None:
    for recipe in (node.RECIPE, conformance.RECIPE, others.RECIPE, mentra.RECIPE, proxies.RECIPE):
        node.write_lock(recipe)


if __name__ == "__main__":
    lock() if sys.argv[1:] == ["lock"] else fetch()
