"""Run the notebooks and store them with their outputs: ``python -m tests.support.notebooks [NAME ...]``. Run it after changing one."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any, Final

import nbformat
from nbclient import NotebookClient

NOTEBOOKS: Final = Path(__file__).parents[2] / "notebooks"
#: Messages of a program (Spark's start, warnings) are not results.
_WORDS: Final = "stderr"


def executed(path: Path) -> Any:
    """Return a notebook with the outputs of a run, without those that differ between runs."""
    notebook = nbformat.read(path, as_version=4)
    # Jupyter runs a notebook in its folder. Here it is a copy by links, so that a run leaves no files there.
    with tempfile.TemporaryDirectory() as work:
        for folder in filter(Path.is_dir, NOTEBOOKS.iterdir()):
            (Path(work) / folder.name).symlink_to(folder)
        resources = {"metadata": {"path": work}}
        NotebookClient(notebook, timeout=1500, kernel_name="python3", resources=resources).execute()
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        if cell.cell_type == "code":
            cell.outputs = [o for o in cell.outputs if o.get("name") != _WORDS]
    # Paths of this machine are no results.
    return nbformat.reads(nbformat.writes(notebook).replace(f"{NOTEBOOKS.parent}/", ""), as_version=4)


def printed(notebook: Any) -> list[str]:
    """Return the output of each cell, and the values that it shows as text, without messages, plots and table styles."""
    shown = []
    for cell in notebook.cells:
        if cell.cell_type == "code":
            texts = [
                o.get("text") or o.get("data", {}).get("text/plain", "")
                for o in cell.outputs
                if o.get("name") != _WORDS
            ]
            shown.append("".join(t for t in texts if not t.startswith("<Figure")))
    return shown


def main() -> None:
    """Run the command line."""
    for path in sorted(NOTEBOOKS.glob("*.ipynb")):
        if not sys.argv[1:] or path.stem in sys.argv[1:]:
            notebook = executed(path)
            nbformat.write(notebook, path)
            print(path.name, flush=True)


if __name__ == "__main__":
    main()
