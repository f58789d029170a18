"""Facts about each snapshot class, proved by bytes of Flink, for the support table.

``python -m tests.support.facts DIR... [FILE] > tests/serializers/verified.tsv``: each ``DIR`` holds serializer cases (as for
:mod:`tests.serializer_check`) or snapshots; facts of an older ``FILE`` about other bytes are kept. Each line is a class: whether values are
decoded (or returned as exact bytes), whether they were encoded back to the same bytes, whether kernels decode them if they also decode
their parts (``parts``: never seen with such parts), and the releases whose bytes prove it.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import statetool
from statetool.errors import StatetoolError
from statetool.io.cursor import Cursor
from statetool.kernels.values.program import kernel_only
from statetool.serializers.core.base import Serializer
from statetool.serializers.core.packages import known_name
from statetool.serializers.table import SNAPSHOT_CLASSES, snapshot_reader
from tests.support.checks.serializer_check import Case, check, find_cases, read_index

COLUMNS = ("class", "read", "written", "kernel", "versions")
_VERSION = re.compile(r"(?:flink|generated-|v)?(\d+)[._](\d+)")


@dataclass(slots=True)
class Facts:
    """Facts about one class."""

    decoded: bool = False
    written: bool = False
    kernel: set[bool] = field(default_factory=set)
    versions: set[tuple[int, int]] = field(default_factory=set)

    def row(self, name: str) -> dict[str, str]:
        """Return the facts as the columns of the file."""
        kernel = {(): "parts", (True,): "yes", (False,): "no"}.get(tuple(self.kernel), "partly")
        return {
            "class": name,
            "read": "decoded" if self.decoded else "exact bytes",
            "written": "yes" if self.written else "no",
            "kernel": kernel,
            "versions": " ".join(f"{a}.{b}" for a, b in sorted(self.versions)),
        }


def gather(roots: Iterable[Path]) -> dict[str, dict[str, str]]:
    """Return the columns by class, sorted."""
    facts: dict[str, Facts] = {}
    for root in roots:
        versions = {name: row["version"] for name, row in read_index(root).items()}
        for case in find_cases(root):
            result = check(case)
            serializer = None if result.failures else _serializer(case)
            if serializer is not None:
                version = _version(versions.get(case.name, case.name))
                _note(facts, serializer, version, written=case.data is not None)
        for metadata in sorted(root.rglob("_metadata")):
            version = _version(_release(metadata))
            for serializer in _serializers(str(metadata)):
                _note(facts, serializer, version, written=False)
    return {name: facts[name].row(name) for name in sorted(facts)}


def _note(facts: dict[str, Facts], s: Serializer, version: tuple[int, int] | None, *, written: bool) -> None:
    for _, child in s.children():
        _note(facts, child, version, written=written)
    if s.snapshot_class not in SNAPSHOT_CLASSES:
        return
    name = known_name(s.snapshot_class) or s.snapshot_class
    known = facts.setdefault(name, Facts())
    known.decoded |= not s.needs_frame
    known.written |= written
    if all(kernel_only(child.program()) for _, child in s.children()):
        known.kernel.add(kernel_only(s.program()))
    if version is not None:
        known.versions.add(version)


def _serializer(case: Case) -> Serializer | None:
    if case.snapshot is None:
        return None
    c = Cursor(case.snapshot)
    try:
        return (
            snapshot_reader().proxied(c)
            if case.snapshot[:4] in (b"\0\0\0\1", b"\0\0\0\2")
            else snapshot_reader().snapshot(c)
        )
    except StatetoolError:
        return None


def _serializers(path: str) -> Iterator[Serializer]:
    for operator in statetool.load(path)._inventory.operators.values():
        for header, meta in operator.keyed_states.values():
            yield from (header.key, *meta.serializers.values())
        for meta in operator.operator_states.values():
            yield from meta.serializers.values()


def _release(metadata: Path) -> str:
    """Return the name of the release that wrote a snapshot, from its ``case.json`` or a folder."""
    for folder in metadata.parents:
        if (folder / "case.json").exists():
            return str(json.loads((folder / "case.json").read_text())["flink_version"])
        if _version(folder.name):
            return folder.name
    return ""


def _version(text: str) -> tuple[int, int] | None:
    versions = [(int(a), int(b)) for a, b in _VERSION.findall(text)]
    return versions[0] if versions else None


def joined(rows: dict[str, dict[str, str]], known: Iterable[dict[str, str]]) -> dict[str, dict[str, str]]:
    """Merge facts with those proved by other bytes."""
    by_class = dict(rows)
    for old in known:
        new = by_class.get(old["class"], old)
        kernel = {new["kernel"], old["kernel"]} - {"parts"} or {"parts"}
        versions = {tuple(map(int, v.split("."))) for row in (new, old) for v in row["versions"].split()}
        by_class[old["class"]] = {
            "class": old["class"],
            "read": "decoded" if "decoded" in (new["read"], old["read"]) else "exact bytes",
            "written": "yes" if "yes" in (new["written"], old["written"]) else "no",
            "kernel": kernel.pop() if len(kernel) == 1 else "partly",
            "versions": " ".join(".".join(map(str, v)) for v in sorted(versions)),
        }
    return {name: by_class[name] for name in sorted(by_class)}


def main(argv: list[str]) -> int:
    """Print the file."""
    files = [Path(a) for a in argv if Path(a).is_file()]
    rows = gather(Path(a) for a in argv if Path(a) not in files)
    for file in files:
        names, *lines = (line.split("\t") for line in file.read_text().splitlines())
        rows = joined(rows, [dict(zip(names, line, strict=True)) for line in lines])
    print("\t".join(COLUMNS))
    for row in rows.values():
        print("\t".join(row[c] for c in COLUMNS))
    return 0 if rows else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
