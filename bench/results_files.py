"""Where an outcome is kept: JSON, the pictures, and the marked block of the page on speed."""

import json
from pathlib import Path

from bench.charts import echo_chart, gateway_chart
from bench.report import markdown_report
from bench.run_results import RunResults
from tests.parts.install import ROOT

HERE = Path(__file__).resolve().parent
CHARTS = {"bench.svg": echo_chart, "bench-gateways.svg": gateway_chart}
CHART_LINKS = (
    "![Calls per second through gateways, as bars](pictures/bench-gateways.svg)",
    "![Calls per second compared with an echo server, as bars with the goals marked](pictures/bench.svg)",
)
BEGIN, END = "<!-- bench:begin -->", "<!-- bench:end -->"


def write_results(results: RunResults, folder: Path | None) -> list[Path]:
    """Write everything to its place, or into one folder; return what was written."""
    json_folder, chart_folder = (HERE, ROOT / "docs/pictures") if folder is None else (folder, folder)
    json_folder.mkdir(parents=True, exist_ok=True)
    written = [_write(json_folder / "results.json", _json(results))]
    written += [_write(chart_folder / name, draw(results)) for name, draw in CHARTS.items()]
    page = ROOT / "docs/speed.md"
    if folder is None and page.is_file():
        old = page.read_text(encoding="utf-8")
        new = replace_block(old, "\n\n".join((*CHART_LINKS, markdown_report(results))))
        if new != old:
            written.append(_write(page, new))
    return written


def replace_block(page: str, block: str) -> str:
    """Return the page with a new block between its marks; one without marks stays as it is."""
    old, begin, rest = page.partition(BEGIN)
    _, end, new = rest.partition(END)
    return f"{old}{BEGIN}\n\n{block}\n\n{END}{new}" if begin and end else page


def _json(results: RunResults) -> str:
    return json.dumps(results.as_json(), indent=2, ensure_ascii=False) + "\n"


def _write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path
