"""The page in a browser: its numbers, width and colors, narrow and wide, light and dark."""

from __future__ import annotations

import json
import re
import subprocess
from html import escape, unescape
from pathlib import Path
from typing import Any

import pytest

import statetool as st
from statetool.html.numbers import size_text
from tests.support.zoo import ZOO

pytestmark = pytest.mark.full

NOW = 1_800_000_000_000
#: A page around the report, whose policy blocks scripts: it inspects its frame and writes down the result.
AROUND = """<!DOCTYPE html><body><iframe id="f" style="border:0;width:{width}px;height:900px" srcdoc="{page}"></iframe><pre id="seen"></pre>
<script>document.getElementById("f").onload = e => {{
  const d = e.target.contentDocument;
  for (const block of d.querySelectorAll("details")) block.open = true;
  const numbers = id => [...d.querySelectorAll(`#${{id}} data`)].map(n => Number(n.value));
  const cards = [...d.querySelectorAll(".cards div")].map(c => [c.children[0].textContent, c.children[1].textContent]);
  const wide = [...d.querySelectorAll("body *")].filter(n => !n.closest(".scroll") && n.getBoundingClientRect().right > {width} + 1);
  document.getElementById("seen").textContent = JSON.stringify({{
    operators: numbers("operators"), cards: Object.fromEntries(cards), title: d.title,
    over: d.documentElement.scrollWidth - d.documentElement.clientWidth, wide: wide.map(n => n.outerHTML.slice(0, 80)),
    back: getComputedStyle(d.body).backgroundColor, text: getComputedStyle(d.body).color,
    size: parseFloat(getComputedStyle(d.querySelector("td")).fontSize),
    cut: [...d.querySelectorAll(".scroll")].filter(n => n.scrollWidth > n.clientWidth).map(n => n.textContent.slice(0, 80)),
    first: d.querySelector("section").id,
    heat: d.querySelectorAll("#key-groups rect").length,
  }});
}};</script>"""


@pytest.fixture(scope="module")
def browser(pytestconfig: pytest.Config) -> str:
    return str(pytestconfig.getoption("--browser"))


def seen(browser: str, folder: Path, page: str, width: int, *, dark: bool) -> Any:
    around = folder / "around.html"
    around.write_text(AROUND.format(width=width, page=escape(page)))
    done = subprocess.run(
        [
            browser,
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            f"--user-data-dir={folder / 'profile'}",
            f"--blink-settings=preferredColorScheme={0 if dark else 1}",
            f"--window-size={width + 100},1000",
            "--dump-dom",
            around.as_uri(),
        ],
        capture_output=True,
        text=True,
        check=True,
        timeout=1500,
    )
    match = re.search('<pre id="seen">(.*?)</pre>', done.stdout, re.DOTALL)
    assert match, done.stderr
    return json.loads(unescape(match.group(1)))


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [390, 1200, 1600])
def test_numbers_fit_and_can_be_read(browser: str, tmp_path: Path, width: int, dark: bool) -> None:
    sp = st.load(ZOO)
    sp.report(str(tmp_path / "report.html"), sp, now_ms=NOW, parallelism=5)
    measures = seen(browser, tmp_path, (tmp_path / "report.html").read_text(), width, dark=dark)
    measured = sp.stats(now_ms=NOW).rows("operators")
    rows = sp.metadata_rows("operators")
    stored = [r.state_bytes + r.coordinator_bytes for r in rows]
    numbers = [*stored, *(m.entries for m in measured), *(m.entries_bytes for m in measured)]
    assert sorted(measures["operators"]) == sorted(numbers + [m.keys for m in measured if m.keys is not None])
    assert measures["cards"]["operators"] == str(len(rows))
    assert measures["cards"]["entries"] == f"{sum(m.entries for m in measured):,}"
    assert measures["cards"]["stored"] == size_text(sum(stored))
    assert measures["cards"]["uncompressed"] == size_text(sum(m.entries_bytes for m in measured))
    assert measures["cards"]["restores"] == "unknown"
    assert measures["first"] == "findings"
    assert (measures["over"], measures["wide"]) == (0, [])
    assert width < 1200 or measures["cut"] == []
    assert measures["size"] >= 12
    assert measures["heat"] > 0
    back, text = (sum(map(int, re.findall(r"\d+", measures[name]))) for name in ("back", "text"))
    assert (back < 150 and text > 600) if dark else (back > 700 and text < 200)


def test_no_column_is_cut_at_1200_pixels(
    browser: str, corpus: Path, connector_cases: Path, sql_corpus: Path, tmp_path: Path
) -> None:
    sql, other = (str(sql_corpus / case / "snapshot") for case in ("sql_join_types", "sql_group_agg_rocksdb"))
    history = corpus / "v2_3_0-rocksdb-incremental"
    newest = next(r.path for r in st.list_snapshots(str(history)) if r.newest)
    reports: dict[str, tuple[str, str | None, dict[str, Any]]] = {
        "sql": (sql, other, {"parallelism": 4}),
        "growth": (newest, None, {"history": str(history), "ttl_ms": 1000}),
        "sources": (
            str(connector_cases / "v2_3_0-kafka-source-inconsistent" / "snapshot"),
            None,
            {"flink_version": "1.20"},
        ),
        "sinks": (str(connector_cases / "v2_3_0-file-sink-compact" / "snapshot"), None, {}),
    }
    for name, (path, after, options) in reports.items():
        file = tmp_path / f"{name}.html"
        st.load(path).report(str(file), None if after is None else st.load(after), now_ms=NOW, **options)
        measures = seen(browser, tmp_path, file.read_text(), 1200, dark=False)
        assert (measures["cut"], measures["over"], measures["wide"]) == ([], 0, []), name
