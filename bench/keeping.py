"""Where an outcome is kept: JSON, the pictures, and the marked block of the page on speed."""

import json
from pathlib import Path

from bench.outcome import Outcome
from bench.picture import contest, picture
from bench.report import markdown
from tests.parts.install import ROOT

HERE = Path(__file__).resolve().parent
PICTURES = {"bench.svg": picture, "bench-gateways.svg": contest}
SHOWN = (
    "![Calls per second through gateways, as bars](pictures/bench-gateways.svg)",
    "![Calls per second compared with an echo server, as bars with the goals marked](pictures/bench.svg)",
)
BEGIN, END = "<!-- bench:begin -->", "<!-- bench:end -->"


def keep(outcome: Outcome, folder: Path | None) -> list[Path]:
    """Write everything to its place, or into one folder; return what was written."""
    numbers, pictures = (HERE, ROOT / "docs/pictures") if folder is None else (folder, folder)
    numbers.mkdir(parents=True, exist_ok=True)
    written = [_write(numbers / "results.json", _json(outcome))]
    written += [_write(pictures / name, draw(outcome)) for name, draw in PICTURES.items()]
    page = ROOT / "docs/speed.md"
    if folder is None and page.is_file():
        before = page.read_text(encoding="utf-8")
        after = filled(before, "\n\n".join((*SHOWN, markdown(outcome))))
        if after != before:
            written.append(_write(page, after))
    return written


def filled(page: str, block: str) -> str:
    """Return the page with a new block between its marks; one without marks stays as it is."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{block}\n\n{END}{after}" if begin and end else page


def _json(outcome: Outcome) -> str:
    return json.dumps(outcome.as_json(), indent=2, ensure_ascii=False) + "\n"


def _write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path
