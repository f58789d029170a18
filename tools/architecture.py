"""The packages below ``statetool``, from the lowest up: for the test of imports, the map in the documentation, and its picture."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1] / "statetool"
#: The modules of ``statetool`` itself: the public names.
TOP: Final = "."
_WIDTH, _ROW, _GAP, _MARGIN = 960, 46, 10, 20


@dataclass(frozen=True, slots=True)
class Wing:
    """A package, what it holds, and what its own packages hold."""

    name: str
    holds: str
    parts: tuple[tuple[str, str], ...] = ()


def _wing(name: str, holds: str, **parts: str) -> Wing:
    return Wing(name, holds, tuple(parts.items()))


#: Packages on one line do not import each other. A package imports only those on lines above its own in this list, which are below it.
WINGS: Final[tuple[tuple[Wing, ...], ...]] = (
    (_wing("errors", "errors, with their place, cause and remedy"),),
    (
        _wing("io", "files by URI, and bytes within bounds", java_streams="Java serialization as data"),
        _wing("types", "types of values, and what users declare"),
    ),
    (
        _wing(
            "kernels",
            "loops over bytes, compiled where that pays off",
            core="the decorator, and compiled code on disk",
            entries="entries of keyed state",
            graphs="object graphs of Kryo",
            metadata="references to files in `_metadata`",
            rocksdb="blocks of RocksDB's table files",
            values="values into columns and back",
        ),
        _wing("html", "tables and pages as HTML"),
    ),
    (
        _wing(
            "serializers",
            "values, and the snapshots of their serializers, a file per family",
            core="what all serializers share",
            typeutils="Flink's `typeutils`",
            sql="rows and types of SQL",
            kryo="Kryo",
            avro="Avro",
            pyflink="PyFlink",
            libraries="other libraries",
        ),
    ),
    (
        _wing(
            "formats",
            "files of snapshots",
            metadata="`_metadata`",
            keyed="headers and entries of keyed state",
            backends="what each state backend stores",
            heap="the heap's layout",
            rocksdb="RocksDB's files, without a word of Flink",
            changelog="change logs",
            timers="timers as raw keyed state",
        ),
    ),
    (
        _wing("entries", "stored forms of keyed state, behind one protocol"),
        _wing("sql_plans", "compiled plans of SQL jobs, and names of their columns"),
    ),
    (
        _wing(
            "java",
            "what Java code says",
            classes="class files and jars, as data",
            declaring="declarations of classes, from jars and from users",
            hashing="hash codes and key groups of keys",
        ),
    ),
    (
        _wing("snapshot", "the inventory: operators, states, and where each piece is stored"),
        _wing("columns", "values as Arrow columns, and back", families="a module per family of types"),
    ),
    (
        _wing(
            "tables",
            "requests for tables: schema, splits, batches",
            kinds="a module per kind of table",
            keys="keys in options and conditions",
            export="results as files",
            sql="queries without Spark",
        ),
        _wing(
            "connectors",
            "state of sources and sinks",
            layouts="a file per connector",
            edits="offsets and splits that users change",
            outside="brokers, databases and tables",
        ),
    ),
    (
        _wing(
            "operations",
            "jobs and directories in operation",
            cluster="jobs, by Flink's REST API",
            directories="directories of snapshots, and their clean-up",
            advice="advice from checkpoints and configurations",
        ),
    ),
    (
        _wing(
            "analysis",
            "loops over all entries",
            verification="is it complete and undamaged",
            statistics="what is large, where, and since when",
            comparison="what differs, key by key",
        ),
    ),
    (
        _wing(
            "saving",
            "writing: composition, plan, streams, publication",
            verbs="a module per change: rescale, drop, erase",
            bootstrap="tables as new state",
            streams="entries and elements into files",
            rekeying="keys that become others",
            recomputing="whole states computed from old ones",
        ),
    ),
    (
        _wing(
            "compatibility",
            "would a job restore",
            steps="a module per step of a restore",
            rules="rules of serializers",
            classes="rules of classes in jars",
            running="Flink asked itself",
        ),
    ),
    (_wing("migration", "another type for a state: steps, plan, conversion"),),
    (
        _wing(
            "reporting",
            "answers for people and monitoring",
            verdicts="verdicts as text",
            report="answers as one page",
            openmetrics="answers as metrics",
        ),
    ),
    (
        _wing(
            "spark",
            "the same in a session of Spark",
            source="data sources",
            write="exports, and savepoints by Spark's tasks",
        ),
    ),
    (_wing("api", "the public classes and functions", write="those that write"),),
    (_wing(TOP, "the public names, and `testing`"),),
    (_wing("demo", "a bundled savepoint"),),
    (
        _wing(
            "cli",
            "the command line",
            read="commands that read",
            write="commands that write",
            operate="jobs, directories, installation",
            assistants="an MCP server",
            explorer="pages in a browser",
        ),
    ),
    (_wing("jobs", "scripts for spark-submit"),),
)


def map_of_packages() -> str:
    """Return the map as Markdown: the highest packages first, as one opens them."""
    return "\n".join(["| package | holds | its packages |", "|---|---|---|", *_rows()])


def _rows() -> Iterator[str]:
    for line in reversed(WINGS):
        for wing in line:
            parts = ", ".join(f"`{name}` ({holds})" for name, holds in wing.parts)
            name = "statetool" if wing.name == TOP else wing.name
            yield f"| `{name}` | {wing.holds} | {parts} |"


def picture() -> str:
    """Return the picture as SVG: each row stands on those below it, and imports nothing above."""
    height = 2 * _MARGIN + len(WINGS) * (_ROW + _GAP) - _GAP
    rows = [box for number, line in enumerate(reversed(WINGS)) for box in _boxes(number, line)]
    return "\n".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img" aria-labelledby="title" '
            'font-family="ui-sans-serif, system-ui, sans-serif" font-size="15">',
            '  <title id="title">Packages of statetool: each imports only from rows below its own</title>',
            "  <style>",
            "    .page { fill: #ffffff } .box { fill: #ffffff; stroke: #3f51b5; stroke-width: 1.5 }",
            "    text { fill: #1f2430 } .note { fill: #5b6275; font-size: 13px }",
            "    @media (prefers-color-scheme: dark) {",
            "      .page { fill: #14161c } .box { fill: #1e2129; stroke: #9fa8da } text { fill: #e6e8ef } .note { fill: #a9afc3 }",
            "    }",
            "  </style>",
            f'  <rect class="page" width="{_WIDTH}" height="{height}" rx="8"/>',
            *rows,
            "</svg>\n",
        )
    )


def _boxes(number: int, line: Sequence[Wing]) -> Iterator[str]:
    width = (_WIDTH - 2 * _MARGIN - _GAP * (len(line) - 1)) // len(line)
    top = _MARGIN + number * (_ROW + _GAP)
    for place, wing in enumerate(line):
        left = _MARGIN + place * (width + _GAP)
        name = "statetool" if wing.name == TOP else wing.name
        yield (
            f'  <rect class="box" x="{left}" y="{top}" width="{width}" height="{_ROW}" rx="6"/>'
            f'<text x="{left + 14}" y="{top + 28}" font-weight="600">{name}</text>'
            f'<text class="note" x="{left + 130}" y="{top + 28}">{escape(wing.holds.replace("`", ""))}</text>'
        )
