"""Hooks of ``mkdocs build``: generated tables, the reference of the command line, and the notebooks as guides."""

from __future__ import annotations

import atexit
import logging
import re
import shutil
import tempfile
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

from mkdocs.plugins import event_priority
from mkdocs.structure.files import File

from tools import cli_reference, support_tables

ROOT: Final = Path(__file__).parents[1]
#: A line that the build replaces.
_GENERATED: Final = re.compile(r"^<!-- generated: ([\w-]+) -->$", re.MULTILINE)
#: Sphinx's roles, with which docstrings mark names.
_ROLE: Final = re.compile(r":(?:class|mod|func|meth|data|attr|exc):(<code>)~?")


@cache
def _snapshot_table() -> str:
    with tempfile.TemporaryDirectory() as work:
        return support_tables.snapshot_table(support_tables.unpack_cases(Path(work)))


@cache
def _connector_table() -> str:
    with tempfile.TemporaryDirectory() as work:
        return support_tables.connector_table(Path(work))


TABLES: Final[Mapping[str, Callable[[], str]]] = {
    "commands": cli_reference.page,
    "serializers": cache(support_tables.support_table),
    "snapshots": _snapshot_table,
    "connectors": _connector_table,
    "restore-rules": cache(support_tables.rule_table),
    "columns": cache(support_tables.column_table),
}


@event_priority(100)  # type: ignore[untyped-decorator]  # before mkdocs-jupyter looks for notebooks
def on_files(files: Any, config: Any) -> Any:
    """Add the notebooks, which are stored beside the documentation, to the guides."""
    for notebook in sorted((ROOT / "notebooks").glob("*.ipynb")):
        files.append(File(f"guides/{notebook.name}", _guides(), config.site_dir, config.use_directory_urls))
    return files


@cache
def _guides() -> str:
    """Return a folder in which ``guides`` is the folder of the notebooks: mkdocs-jupyter reads files of a source folder only."""
    folder = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, folder)
    (Path(folder) / "guides").symlink_to(ROOT / "notebooks")
    return folder


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Replace the lines that name a generated table."""
    return _GENERATED.sub(lambda line: TABLES[line[1]](), markdown)


def on_page_content(html: str, page: Any, config: Any, files: Any) -> str:
    """Remove the roles in docstrings, which Markdown shows as text."""
    return _ROLE.sub(r"\1", html)


def on_startup(command: str, dirty: bool) -> None:
    """Keep messages of libraries that the hooks call out of the build's warnings, which end a strict build."""
    logging.getLogger("py4j").setLevel(logging.ERROR)
