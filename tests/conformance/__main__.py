"""Run the suite against an address and print what fails: `python -m tests.conformance URL [REVISION]`."""

import sys
import time

from tests.conformance import suite


def main(url: str, *revisions: str) -> int:
    worst = 0
    for revision in revisions or suite.REVISIONS:
        began = time.monotonic()
        report = suite.run(url, revision)
        verdict = suite.judged(report, suite.expected(revision), suite.required(revision))
        for line in verdict.unexpected:
            print(f"  {line}")
        took = time.monotonic() - began
        print(
            f"{revision}: {len(report.passed)} passed, {len(verdict.unexpected)} failed in {took:.1f} s",
            flush=True,
        )
        worst |= bool(verdict.unexpected or verdict.missing)
    return worst


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
