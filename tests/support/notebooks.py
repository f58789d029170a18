"""Run the notebooks and store them with their outputs: ``python -m tests.support.notebooks [NAME ...]``, after a change in one."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Final

import nbformat
from nbclient import NotebookClient

NOTEBOOKS: Final = Path(__file__).parents[2] / "notebooks"
#: What a program says on the way (Spark's start, warnings) is no result.
_WORDS: Final = "stderr"


def executed(path: Path) -> Any:
    """Return a notebook with the outputs of a run, without what differs from run to run."""
    notebook = nbformat.read(path, as_version=4)
    # Not in the folder of the notebooks: a run leaves nothing behind there.
    NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        if cell.cell_type == "code":
            cell.outputs = [o for o in cell.outputs if o.get("name") != _WORDS]
    return notebook


def printed(notebook: Any) -> list[str]:
    """Return what each cell printed, and the values that it shows as text; plots and styles of tables are left out."""
    shown = []
    for cell in notebook.cells:
        if cell.cell_type == "code":
            texts = [o.get("text") or o.get("data", {}).get("text/plain", "") for o in cell.outputs]
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
