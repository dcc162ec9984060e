"""Writes the results: results.json, the SVG charts and the generated block of docs/speed.md."""

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
BEGIN_MARKER, END_MARKER = "<!-- bench:begin -->", "<!-- bench:end -->"


def write_results(results: RunResults, folder: Path | None) -> list[Path]:
    """Write all files to the project, or to one folder if given; return their paths."""
    json_folder, chart_folder = (HERE, ROOT / "docs/pictures") if folder is None else (folder, folder)
    json_folder.mkdir(parents=True, exist_ok=True)
    written = [_write(json_folder / "results.json", _json(results))]
    written += [_write(chart_folder / name, draw(results)) for name, draw in CHARTS.items()]
    page = ROOT / "docs/speed.md"
    if folder is None and page.is_file():
        old_text = page.read_text(encoding="utf-8")
        new_text = replace_block(old_text, "\n\n".join((*CHART_LINKS, markdown_report(results))))
        if new_text != old_text:
            written.append(_write(page, new_text))
    return written


def replace_block(page: str, block: str) -> str:
    """Return the page with the text between its markers replaced; a page without markers is unchanged."""
    before, begin, rest = page.partition(BEGIN_MARKER)
    _, end, after = rest.partition(END_MARKER)
    return f"{before}{BEGIN_MARKER}\n\n{block}\n\n{END_MARKER}{after}" if begin and end else page


def _json(results: RunResults) -> str:
    return json.dumps(results.as_json(), indent=2, ensure_ascii=False) + "\n"


def _write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path
