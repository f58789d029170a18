"""The savepoint written by the notebook ``correct-a-value`` restores: Flink sees the corrected value, and everything else unchanged."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import nbformat
import pytest

from tests.support.flink import judge, windows
from tests.support.flink.corpus_cases import expected_of, metadata_of, own_case
from tests.support.flink.machine import FlinkMachine
from tests.support.notebooks import NOTEBOOKS

pytestmark = pytest.mark.full


def variables_of(notebook: str) -> dict[str, Any]:
    """Run the cells of a notebook and return its variables."""
    names: dict[str, Any] = {}
    for cell in nbformat.read(NOTEBOOKS / f"{notebook}.ipynb", as_version=4).cells:
        if cell.cell_type == "code":
            exec(cell.source, names)
    return names


@pytest.mark.case("rocksdb-canonical-compressed")
@pytest.mark.parametrize("backend", ["rocksdb", "hashmap"])
def test_the_corrected_savepoint_restores(
    flink: FlinkMachine, corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, backend: str
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    cells = variables_of("correct-a-value")
    case = own_case(corpus, flink, "rocksdb-canonical-compressed")
    original = Path(cells["SAVEPOINT"])
    assert (original / "_metadata").read_bytes() == metadata_of(case).read_bytes(), "it is another savepoint"
    target = Path(cells["command"][cells["command"].index("-s") + 1])

    expected = expected_of(case)
    job = judge.requests_for(original, expected)
    answer = judge.restore(flink, target, job, backend=backend, savepoint=tmp_path / "again")
    (difference,) = judge.differences(answer, expected)
    assert difference == "with-ttl.plain: [2, null] is 7, expected 1700000080000"
    (row,) = [r for r in expected["with-ttl"]["keyed_state"]["states"]["plain"]["rows"] if r["key"] == 2]
    row["value"] = 7
    assert judge.differences(answer, expected) == []
    assert judge.read_back(Path(answer["savepoint"]), expected, parallelism=2) == []
    assert windows.wrongly_continued(flink, target, expected, backend=backend) == []
