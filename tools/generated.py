"""The generated parts of the documentation: tables of what is supported, the reference of the command line, and JSON Schemas.

``python -m tools.generated [PAGE ...]`` writes them into the pages again, between ``<!-- generated: NAME -->`` and ``<!-- end -->``, so that
they are there for whoever reads the pages without the site. The build of the site fails if they are not those of the code.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Final

from statetool.cli.json_schema import ANSWERS, json_schema_text
from tools import (
    architecture,
    backend_table,
    cli_reference,
    licences,
    network_table,
    public_names,
    support_tables,
    verb_table,
)
from tools.examples import GENERATED, ROOT, pages

SCHEMAS: Final = ROOT / "schemas"


@cache
def _snapshot_kinds() -> Mapping[support_tables.Kind, set[support_tables.Release]]:
    with tempfile.TemporaryDirectory() as work:
        return support_tables.snapshot_kinds(support_tables.unpack_cases(Path(work)))


@cache
def _connector_table() -> str:
    with tempfile.TemporaryDirectory() as work:
        return support_tables.connector_table(Path(work))


def _schema(command: str) -> str:
    return json_schema_text(command) + "\n"


PARTS: Final[Mapping[str, Callable[[], str]]] = {
    "packages": architecture.map_of_packages,
    "commands": cli_reference.page,
    "serializers": cache(support_tables.support_table),
    "snapshots": lambda: support_tables.snapshot_table(_snapshot_kinds()),
    "versions": cache(lambda: support_tables.version_table(_snapshot_kinds())),
    "backends": cache(backend_table.backend_table),
    "verbs": cache(verb_table.verb_table),
    "requirements": support_tables.requirement_table,
    "connectors": _connector_table,
    "licences": licences.licence_table,
    "network": network_table.network_table,
    "restore-rules": cache(support_tables.rule_table),
    "columns": cache(support_tables.column_table),
}
#: Files that are generated as a whole.
FILES: Final[Mapping[Path, Callable[[], str]]] = {
    ROOT / "docs" / "images" / "packages.svg": architecture.picture,
    **{SCHEMAS / f"{name.replace(' ', '-')}.json": partial(_schema, name) for name in ANSWERS},
    public_names.STUB: public_names.stub,
    licences.SBOM: licences.sbom,
}


def stale_parts(text: str) -> Iterator[str]:
    """Yield the names of a page's parts that are not those of the code."""
    for part in GENERATED.finditer(text):
        if part["text"] != _text(part):
            yield part["name"]


def write_again(text: str) -> str:
    """Return a page with the parts of the code."""
    return GENERATED.sub(lambda part: f"{part['begin']}{_text(part)}{part['end']}", text)


def _text(part: re.Match[str]) -> str:
    return f"\n{PARTS[part['name']]().strip()}\n\n"


def main() -> None:
    """Run the command line."""
    for page in [Path(name).resolve() for name in sys.argv[1:]] or pages():
        text = page.read_text("utf-8")
        if (new := write_again(text)) != text:
            page.write_text(new, "utf-8")
            print(page, "changed")
    for file, make in FILES.items():
        file.write_text(make(), "utf-8")


if __name__ == "__main__":
    main()
