"""The documents as one site: ``python -m tests.support.site DIR`` builds it and lists dead links.

The site has all README pages, the notebooks with their outputs, and the API reference from the docstrings (by pdoc). Source files that
pages link to are copied.
"""

from __future__ import annotations

import re
import shutil
import sys
import warnings
from collections.abc import Iterator
from functools import partial
from html import escape, unescape
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

import nbformat
from markdown_it import MarkdownIt

ROOT: Final = Path(__file__).parents[2]
#: Public modules, and those with the inherited methods of their classes; internal modules are documented next to the code.
_PUBLIC: Final = (
    "statetool",
    *(f"statetool.{name}" for name in ("api.writer", "api.operator", "declaring.flink_types", "errors", "pyflink")),
)
_LINK: Final = re.compile(r'(?:href|src)="([^"]*)"')
_ANCHOR: Final = re.compile(r'id="([^"]*)"')
_HEADING: Final = re.compile(r"<h([1-4])>(.*?)</h\1>")
_STYLE: Final = (
    "body{font:16px/1.5 sans-serif;max-width:60em;margin:2em auto;padding:0 1em}pre{background:#f4f4f4;padding:.7em;overflow:auto}"
    "table{border-collapse:collapse}td,th{border:1px solid #ccc;padding:.2em .6em;text-align:left;vertical-align:top}img{max-width:100%}"
)


def pages() -> list[Path]:
    """Return the documents of the repository."""
    files = [
        ROOT / "README.md",
        *(ROOT / ".github").glob("*.md"),
        *ROOT.glob("notebooks/*.*"),
        *ROOT.glob("statetool/**/*.md"),
    ]
    return sorted(p for p in files if p.suffix in (".md", ".ipynb"))


def build(target: Path) -> None:
    """Write the site into a new folder."""
    markdown = MarkdownIt("commonmark", {"html": True}).enable("table")
    for page in pages():
        if page.suffix == ".ipynb":
            body = "".join(_cells(page, markdown))
        else:
            body = markdown.render(page.read_text())
        body = _HEADING.sub(lambda m: f'<h{m[1]} id="{_slug(m[2])}">{m[2]}</h{m[1]}>', body)
        targets = {link: _target_of(link, page, target) for link in _LINK.findall(body)}
        body = _LINK.sub(partial(_replaced, targets), body)
        place = _place(page, target)
        place.parent.mkdir(parents=True, exist_ok=True)
        up = "../" * len(page.relative_to(ROOT).parent.parts)
        head = f'<p><a href="{up}index.html">statetool</a> · <a href="{up}statetool/README.html">map</a> · '
        head += f'<a href="{up}notebooks/README.html">guides</a> · <a href="{up}api/statetool.html">API</a></p>'
        title = f"<!doctype html><meta charset=utf-8><title>{escape(page.stem)}</title><style>{_STYLE}</style>"
        place.write_text(f"{title}{head}{body}")
    _reference(target / "api")


def _reference(folder: Path) -> None:
    import pdoc

    pdoc.render.configure(docformat="numpy", show_source=False, search=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # annotations from packages that only annotations need
        pdoc.pdoc(*_PUBLIC, "!statetool\\.(?!api|declaring|errors|pyflink).*", output_directory=folder)


def _cells(notebook: Path, markdown: MarkdownIt) -> Iterator[str]:
    for cell in nbformat.read(notebook, as_version=4).cells:
        if cell.cell_type == "markdown":
            yield markdown.render(cell.source)
            continue
        yield f"<pre>{escape(cell.source)}</pre>"
        for output in cell.outputs:
            yield _output(output.get("data", {}), output.get("text", ""))


def _output(data: Any, text: str) -> str:
    if "image/png" in data:
        return f'<img alt="plot" src="data:image/png;base64,{data["image/png"].strip()}">'
    return str(data["text/html"]) if "text/html" in data else f"<pre>{escape(data.get('text/plain', text))}</pre>"


def _replaced(targets: dict[str, str], link: re.Match[str]) -> str:
    return link[0].replace(link[1], targets[link[1]])


def _slug(heading: str) -> str:
    words = re.sub(r"<[^>]*>", "", unescape(heading)).lower()
    return re.sub(r"[^\w\- ]", "", words).replace(" ", "-")


def _place(page: Path, target: Path) -> Path:
    inside = page.relative_to(ROOT)
    return target / ("index.html" if inside == Path("README.md") else inside.with_suffix(".html"))


def _target_of(link: str, page: Path, target: Path) -> str:
    """Return the target of a page's link on the site; source files are copied to it."""
    path, hash_, anchor = link.partition("#")
    if ":" in link or not path:
        return link
    file = (page.parent / unquote(unescape(path))).resolve()
    if not file.is_relative_to(ROOT) or not file.exists():
        return link
    if file in pages():
        place = _place(file, target)
    elif file.is_dir():
        place = target / file.relative_to(ROOT) / "files.html"
        names = "".join(f"<li>{escape(p.name)}</li>" for p in sorted(file.iterdir()) if not p.name.startswith("_"))
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(f"<!doctype html><meta charset=utf-8><ul>{names}</ul>")
    else:
        place = target / file.relative_to(ROOT)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, place)
    return f"{'../' * len(page.relative_to(ROOT).parent.parts)}{place.relative_to(target)}{hash_}{anchor}"


def dead_links(site: Path) -> list[str]:
    """Return the dead links of a site: the file or the heading does not exist."""
    anchors = {p: set(_ANCHOR.findall(p.read_text())) for p in site.rglob("*.html")}
    dead = []
    for page in anchors:
        for link in _LINK.findall(page.read_text()):
            path, _, anchor = unescape(link).partition("#")
            if re.match(r"[a-z]+:", link) or link.startswith("//"):
                continue
            file = (page.parent / unquote(path)).resolve() if path else page.resolve()
            known = (
                anchors.get(site / file.relative_to(site.resolve())) if file.is_relative_to(site.resolve()) else None
            )
            if not file.exists() or (anchor and known is not None and anchor not in known):
                dead.append(f"{page.relative_to(site)}: {link}")
    return dead


def main() -> None:
    """Run the command line."""
    target = Path(sys.argv[1])
    if target.exists():
        raise SystemExit(f"{target} is there already")
    build(target)
    dead = dead_links(target)
    print("\n".join(dead) or f"{len(list(target.rglob('*.html')))} pages in {target}, no dead link")
    if dead:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
