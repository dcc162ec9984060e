"""`make check`: the static checkers and the shape of the tree, a line each, and in full where one fails."""

import sys

import pytest

from tests.gates.static import CHECKS, check
from tests.gates.tree import ROOT


def main() -> int:
    failed = 0
    for name in CHECKS:
        content, said = check(name)
        print(f"{'ok  ' if content else 'FAIL'} {name}", flush=True)
        if not content:
            failed += 1
            print(said, flush=True)
    gate = ROOT / "tests/gates/test_shape.py"
    return 1 if pytest.main(["-q", "--no-header", str(gate)]) or failed else 0


if __name__ == "__main__":
    sys.exit(main())
