"""Lists of snapshots, of findings, growth and chains are tables in notebooks."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import statetool
from statetool.html.fragment import fragment
from statetool.html.markup import table
from statetool.html.numbers import count
from statetool.html.records import RecordList, record_table
from tools import sandbox


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(sandbox.create(tmp_path_factory.mktemp("sandbox")) / "checkpoints")


def test_snapshots_are_a_table_and_still_a_list(checkpoints: str) -> None:
    rows: Any = statetool.list_snapshots(checkpoints)
    page = rows._repr_html_()
    assert rows == list(rows)
    assert ">3 rows</caption>" in page
    assert re.search(r'<td class="moment" style="[^"]*white-space:nowrap"><time>2026-03-02 18:41:00 UTC<', page)
    assert f'title="{rows[0].own_bytes:,} bytes"' in page
    assert "<th" in page
    assert ">problem<" not in page  # empty columns go


def test_growth_is_a_table(checkpoints: str) -> None:
    rows: Any = statetool.growth(checkpoints)
    assert len(rows) > 3
    assert rows._repr_html_().count("<tr>") == len(rows) + 1


def test_findings_and_advice_are_tables(checkpoints: str) -> None:
    findings: Any = statetool.lint(str(Path(checkpoints).parent / "config.yaml"))
    assert "execution.checkpointing.min-pause" in findings._repr_html_()
    advice: Any = statetool.advise(checkpoints)
    assert "retention" in advice._repr_html_()
    orphans: Any = statetool.orphans(checkpoints, min_age=0)
    assert "no rows" in orphans._repr_html_()


def test_a_chain_is_its_checkpoints_with_its_files_folded(corpus: Path) -> None:
    chain: Any = statetool.chain(str(corpus / "v2_3_0-rocksdb-native"))
    page = chain._repr_html_()
    assert page.count("<table>") == 2
    assert f"<summary>{len(chain.files)} files</summary>" in page


def test_names_in_tables_are_text_and_long_lists_are_cut(checkpoints: str, tmp_path: Path) -> None:
    (first, *_) = statetool.list_snapshots(checkpoints)
    many = RecordList([first] * 501)
    assert "1 row more" in many._repr_html_()
    odd = tmp_path / "<b>" / "chk-7"
    odd.mkdir(parents=True)
    (odd / "_metadata").write_bytes(b"")
    page = record_table(statetool.list_snapshots(str(tmp_path)))
    assert "&lt;b&gt;" in page
    assert "<b>" not in page
    assert record_table([], "none") == '<p class="soft">none</p>'


def test_notebooks_that_are_not_trusted_keep_alignment_and_dollars() -> None:
    """JupyterLab removes style sheets from them, aligns cells to the right, and takes texts between two dollars for formulas."""
    page = fragment(table(("name", "rows"), [("a$B, c$D", count(3)), ("x" * 60, count(4))], "t"))
    assert 'class="statetool tex2jax_ignore mathjax_ignore"' in page
    assert (
        re.findall(r'<td class="(\w+)" style="text-align:(\w+);[^"]*">', page)
        == [("long", "left"), ("number", "right")] * 2
    )
    assert page.count("overflow-wrap:anywhere;min-width") == 3  # the heading and both cells
    assert '<caption style="text-align:left;' in page
    assert "a$B, c$D" in page
