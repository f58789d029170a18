"""Hooks of ``mkdocs build``: the check of generated parts, and the notebooks as guides."""

from __future__ import annotations

import atexit
import logging
import re
import shutil
import tempfile
from functools import cache
from pathlib import Path
from typing import Any, Final

from mkdocs.exceptions import PluginError
from mkdocs.plugins import event_priority
from mkdocs.structure.files import File

from tools import generated

ROOT: Final = Path(__file__).parents[1]
#: Sphinx's roles, with which docstrings mark names.
_ROLE: Final = re.compile(r":(?:class|mod|func|meth|data|attr|exc):(<code>)~?")


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
    """Fail if a generated part is not that of the code."""
    for name in generated.stale_parts(markdown):
        raise PluginError(
            f"{page.file.src_uri}: {name} is not that of the code: run python -m tools.generated docs/{page.file.src_uri}"
        )
    return markdown


def on_page_content(html: str, page: Any, config: Any, files: Any) -> str:
    """Remove the roles in docstrings, which Markdown shows as text."""
    return _ROLE.sub(r"\1", html)


def on_startup(command: str, dirty: bool) -> None:
    """Keep messages of libraries that the hooks call out of the build's warnings, which end a strict build."""
    logging.getLogger("py4j").setLevel(logging.ERROR)
