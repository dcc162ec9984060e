"""`make check`: runs the static checkers and the shape rules; prints the output of those that fail."""

import sys

import pytest

from tests.gates.static import CHECKS, check
from tests.gates.tree import ROOT


def main() -> int:
    failed = 0
    for name in CHECKS:
        ok, output = check(name)
        print(f"{'ok  ' if ok else 'FAIL'} {name}", flush=True)
        if not ok:
            failed += 1
            print(output, flush=True)
    gate = ROOT / "tests/gates/test_shape.py"
    return 1 if pytest.main(["-q", "--no-header", str(gate)]) or failed else 0


if __name__ == "__main__":
    sys.exit(main())
