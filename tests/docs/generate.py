"""Regenerates the tables of the pages: `python -m tests.docs.generate`."""

from tests.docs.pages import DOCS
from tests.docs.tables import fill


def main() -> None:
    """Rewrite the changed pages and print their names."""
    for page in sorted(DOCS.rglob("*.md")):
        before = page.read_text(encoding="utf-8")
        after = fill(before)
        if after != before:
            page.write_text(after, encoding="utf-8")
            print(f"wrote {page.name}")


if __name__ == "__main__":
    main()
