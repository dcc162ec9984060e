"""Start mutmut in a process of its own: our test tools first, then what its environment has beside them."""

import importlib
import sys

import pytest


def main() -> None:
    beside, sys.argv = sys.argv[1], ["mutmut", *sys.argv[2:]]
    sys.path.append(beside)
    # It reads the test name from an attribute that pytest removed.
    setattr(pytest.Item, "_nodeid", property(lambda item: item.nodeid))  # noqa: B010 - a new name for pytest's class
    importlib.import_module("mutmut.__main__").cli()


if __name__ == "__main__":
    main()
