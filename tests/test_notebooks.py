from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOKS = Path(__file__).parents[1] / "notebooks"
EXPECTED = {
    "open-a-savepoint.ipynb": [
        "operators: 19",
        "tables: ",
        "state bytes: 103705",
        "key groups of timers: 128, not empty: 14",
        "keys: 14",
        "timers: {'event': 62, 'processing': 88}",
    ]
}


def test_every_notebook_is_checked() -> None:
    assert {p.name for p in NOTEBOOKS.glob("*.ipynb")} == set(EXPECTED)


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_notebooks_are_stored_without_outputs_and_print_what_is_expected(name: str, tmp_path: Path) -> None:
    notebook = nbformat.read(NOTEBOOKS / name, as_version=4)
    code = [c for c in notebook.cells if c.cell_type == "code"]
    assert all(not c.outputs and c.execution_count is None for c in code)
    NotebookClient(notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": tmp_path}}).execute()
    printed = "".join(o.get("text", "") for c in code for o in c.outputs)
    for words in EXPECTED[name]:
        assert words in printed
    assert any("image/png" in o.get("data", {}) for c in code for o in c.outputs)
