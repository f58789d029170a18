"""A bundled notebook is run in an environment of JupyterLab."""

from __future__ import annotations

from typing import Final

import nbformat

from tests.journeys.steps import Steps
from tests.support.notebooks import NOTEBOOKS, printed

PACKAGES: Final = ("statetool[notebook]",)
_NAME: Final = "open-a-savepoint"


def run(steps: Steps) -> None:
    """Run a notebook: it prints what is stored in it."""
    steps.run("jupyter lab --version")
    options = "--to notebook --execute --ExecutePreprocessor.timeout=600 --output-dir $PWD"
    steps.run(f"jupyter nbconvert {options} {NOTEBOOKS}/{_NAME}.ipynb")
    text = (steps.folder / f"{_NAME}.ipynb").read_text("utf-8").replace(f"{NOTEBOOKS.parent}/", "")
    stored = nbformat.read(NOTEBOOKS / f"{_NAME}.ipynb", as_version=4)
    assert printed(nbformat.reads(text, as_version=4)) == printed(stored)
