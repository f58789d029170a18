"""Hooks of ``mkdocs build``: the check of generated parts, the notebooks as guides, and the Chinese pages."""

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

from tools import generated, translations

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
    """Fail if a generated part is not that of the code. Give the headings of a Chinese page the anchors of its English page."""
    for name in generated.stale_parts(markdown):
        raise PluginError(
            f"{page.file.src_uri}: {name} is not that of the code: run python -m tools.generated docs/{page.file.src_uri}"
        )
    english = translations.english_of(Path(page.file.abs_src_path))
    if english is None:
        return markdown
    page.meta["search"] = {"boost": 0.5}  # searches are in English, for whose words the English page comes first
    return translations.with_english_anchors(markdown, english.read_text("utf-8"))


def on_page_content(html: str, page: Any, config: Any, files: Any) -> str:
    """Remove the roles in docstrings, which Markdown shows as text."""
    return _ROLE.sub(r"\1", html)


def on_post_page(output: str, page: Any, config: Any) -> str:
    """Declare the language of a Chinese page, by which browsers choose fonts and voices."""
    chinese = translations.english_of(Path(page.file.abs_src_path)) is not None
    return output.replace('<html lang="en"', '<html lang="zh-Hans"', 1) if chinese else output


def on_startup(command: str, dirty: bool) -> None:
    """Keep messages of libraries that the hooks call out of the build's warnings, which end a strict build."""
    logging.getLogger("py4j").setLevel(logging.ERROR)
