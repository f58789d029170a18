"""The zip for ``spark-submit --py-files``."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import statetool
from statetool.jobs import package

ROOT: Final = Path(statetool.__file__).parent
#: Files that no module reads: documents, marks and types for tools, the file of an image.
_UNREAD: Final = {".md", ".typed", ".pyi", ".pyc", ""}


def test_the_zip_has_all_kinds_of_files_that_modules_read() -> None:
    """The snapshots of the demo are for the machine on which one tries it."""
    files = [f for f in ROOT.rglob("*") if f.is_file() and f.relative_to(ROOT).parts[0] != "demo"]
    assert {f.suffix for f in files if f.name != "py.typed"} - _UNREAD == {".py", *package._DATA}
