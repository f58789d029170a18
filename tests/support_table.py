"""The support table of the README: the table of serializers, with what bytes of Flink have shown of each.

``tests/serializers/verified.tsv`` is written by ``python -m tests.support_facts`` from real snapshots; a class that none of them has is
marked as unproved: its reader follows Flink's sources only. ``python -m tests.support_table`` prints the table.
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Final

from statetool.serializers.table import FAMILIES

START: Final = "<!-- support:start -->"
END: Final = "<!-- support:end -->"
COLUMNS: Final = ("read", "written", "kernel", "versions")


def verified() -> dict[str, dict[str, str]]:
    """Return ``read``, ``written``, ``kernel`` and ``versions`` by snapshot class."""
    text = (Path(__file__).parent / "serializers" / "verified.tsv").read_text("utf-8")
    return {row["class"]: row for row in csv.DictReader(text.splitlines(), delimiter="\t")}


def support_table() -> str:
    """Return the table as Markdown, between its markers."""
    facts = verified()
    lines = [
        START,
        "| family | snapshot class | read | written | kernel | verified on Flink |",
        "|---|---|---|---|---|---|",
    ]
    for family, readers in FAMILIES.items():
        for name in sorted(readers):
            cells = [facts[name][c] for c in COLUMNS] if name in facts else ["unproved", "unproved", "", ""]
            lines.append(f"| {family} | `{name}` | {' | '.join(cells)} |")
    return "\n".join([*lines, END])


if __name__ == "__main__":
    print(support_table())
