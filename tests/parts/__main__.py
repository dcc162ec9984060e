"""Fetch every part and say in a line what is there and what is not; `lock` resolves the Node tools again."""

import sys
import time

from tests.parts.node import write_lock
from tests.parts.shelf import PARTS, Missing, take


def fetch() -> None:
    for name, part in PARTS.items():
        began = time.monotonic()
        try:
            where = take(name)
        except Missing as missing:
            print(f"  missing  {name:<12} {part.purpose}: {missing}", flush=True)
            continue
        took = time.monotonic() - began
        note = f" (fetched in {took:.0f} s)" if took > 1 else ""
        print(f"  ready    {name:<12} {part.purpose}: {where}{note}", flush=True)


if __name__ == "__main__":
    write_lock() if sys.argv[1:] == ["lock"] else fetch()
