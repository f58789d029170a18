"""Round trips of snapshots through the native form of each backend.

``python -m tests.roundtrip_check DIR --native`` writes every snapshot below DIR as a native savepoint of each backend, and that as a
canonical one: both have the entries of the snapshot, ``verify --deep`` finds no error and ``diff`` no difference. It prints a line per
snapshot and replaces the lines of the folders in DIR, one per corpus, in ``native_roundtrips.tsv``. A refused form does not fail.
"""

from __future__ import annotations

import csv
import re
import tempfile
import warnings
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import astuple, dataclass, fields
from functools import partial
from pathlib import Path
from typing import Final, Literal, TypeAlias

import statetool
from statetool.errors import StatetoolError, UndescribedClassError, UnsupportedError
from statetool.types.declared import ClassDeclaration
from tests.support.corpora.kryo_classes import CLASSES
from tests.support.snapshots.keyed_content import Content, content_of

Backend: TypeAlias = Literal["rocksdb", "forst", "heap"]
BACKENDS: Final[tuple[Backend, ...]] = ("rocksdb", "forst", "heap")
TABLE: Final = Path(__file__).with_suffix(".tsv")
EQUAL: Final = "equal"
#: The snapshot itself cannot be read: no form is written.
UNREADABLE: Final = "unreadable"
REFUSED: Final = "refused"
#: The entries are the same, but ``diff`` does not know the class of a serializer, and says so.
UNDECIDED: Final = "equal, diff undecided"
FAILED: Final = "failed"
#: Elements that name files by path: a copy names its own.
_WITH_PATHS: Final = frozenset({"pending-checkpoints"})
#: What differs between snapshots in a message.
_VARIABLE: Final = re.compile(r"[0-9a-f]{32}|[0-9]+|/\S+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Snapshots of a corpus with the same outcome in the form of a backend, and the entries of keyed state that were compared."""

    corpus: str
    backend: str
    outcome: str
    reason: str
    snapshots: int
    entries: int


def rows() -> list[Row]:
    """Return the table."""
    with TABLE.open(encoding="utf-8", newline="") as f:
        return [
            Row(**{k: int(v) if k in ("snapshots", "entries") else v for k, v in row.items()})  # type: ignore[arg-type]
            for row in csv.DictReader(f, delimiter="\t")
        ]


class RefusedError(Exception):
    """The form that is asked for is refused: a refusal while what was written is read back is a fault."""


class UnreadableError(Exception):
    """The snapshot is not complete, or its keyed state is not of a known form."""


def check_native(
    source: str, backend: Backend, declarations: tuple[ClassDeclaration, ...] = ()
) -> tuple[str, str, int]:
    """Write a snapshot in native form and that in canonical form; return the outcome, its reason, and the number of entries.

    Raises
    ------
    UnreadableError
        If the snapshot cannot be read.
    RefusedError
        If the snapshot cannot be written in this form.
    """
    declarations = (*CLASSES, *declarations)
    try:
        before = content_of(source)
        base = statetool.load(source, declarations=declarations)
    except (StatetoolError, FileNotFoundError) as error:
        raise UnreadableError(str(error)) from error
    with tempfile.TemporaryDirectory(prefix="statetool-native-") as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        native, canonical = f"{folder}/native", f"{folder}/canonical"
        try:
            statetool.convert(base, native, format="native", backend=backend)
        except (UnsupportedError, UndescribedClassError) as error:
            raise RefusedError(error.message) from error
        if backend == "heap":
            before = _without_null_bytes(before, base)
        statetool.convert(statetool.load(native, declarations=declarations), canonical)
        for target in (native, canonical):
            what = Path(target).name
            after = content_of(target)
            if after != before:
                changed = [place for place in before.keys() | after.keys() if before.get(place) != after.get(place)]
                return FAILED, f"{what}: {len(changed)} entries differ, as in state {changed[0][1]}", len(before)
            loaded = statetool.load(target, declarations=declarations)
            errors = [p.problem for p in statetool.verify(loaded, deep=True).problems if p.severity == "error"]
            if errors:
                return FAILED, f"{what}: {errors[0]}", len(before)
            compared = base.diff(loaded)
            differing = {s.state for s in compared.summary() if s.added + s.removed + s.changed} - _WITH_PATHS
            if differing or any(s.severity == "difference" for s in compared.structure):
                return FAILED, f"{what}: diff finds differences", len(before)
            if not compared.unread:
                continue
            return UNDECIDED, compared.unread[0], len(before)
    return EQUAL, "", len(before)


def _without_null_bytes(content: Content, savepoint: statetool.Savepoint) -> Content:
    """Return entries without the bytes after the flag of null values of maps: canonical savepoints of the heap backend have what the
    serializer writes for null, RocksDB has nothing, and the heap backend's layout has no room for them. Flink does not read them.
    """
    maps = {
        (operator.state.operator_id, name)
        for operator in savepoint._inventory.operators.values()
        for name, (_, meta) in operator.keyed_states.items()
        if meta.kind == "map"
    }
    return {
        place: value[:1] if place[:2] in maps and value.startswith(b"\x01") else value
        for place, value in content.items()
    }


def answers_of(metadata: Path, declarations: tuple[ClassDeclaration, ...] = ()) -> list[Row]:
    """Return a row per backend, for one snapshot without its corpus."""
    found = []
    for backend in BACKENDS:
        entries = 0
        try:
            outcome, reason, entries = check_native(str(metadata), backend, declarations)
        except RefusedError as error:
            outcome, reason = REFUSED, str(error)
        except UnreadableError as error:
            outcome, reason = UNREADABLE, str(error)
        except Exception as error:  # noqa: BLE001 - each fault is shown, and the next snapshot checked
            outcome, reason = FAILED, f"{type(error).__name__}: {error}"
        reason = _VARIABLE.sub("N", reason)
        found.append(Row(corpus="", backend=backend, outcome=outcome, reason=reason, snapshots=1, entries=entries))
    return found


def check_all_native(directory: Path, declarations: tuple[ClassDeclaration, ...]) -> bool:
    """Check and print each snapshot in each native form, and store the counts after each folder; return True if none failed."""
    snapshots = failed = 0
    with ProcessPoolExecutor(2) as pool:
        for corpus in sorted(directory.iterdir()):
            metadata = sorted(path for path in corpus.rglob("_metadata") if path.is_file())
            counts: Counter[tuple[str, str, str]] = Counter()
            entries: Counter[tuple[str, str, str]] = Counter()
            ask = partial(answers_of, declarations=declarations)
            for path, answers in zip(metadata, pool.map(ask, metadata), strict=True):
                print(path.relative_to(directory), flush=True)
                for row in answers:
                    print(f"  {row.backend}: {row.outcome} {row.reason or row.entries}", flush=True)
                    group = (row.backend, row.outcome, row.reason)
                    counts[group] += 1
                    entries[group] += row.entries
            found = [
                Row(corpus=corpus.name, backend=group[0], outcome=group[1], reason=group[2], snapshots=n, entries=entries[group])
                for group, n in counts.items()
            ]  # fmt: skip
            _store(corpus.name, found)
            snapshots += len(metadata)
            failed += sum(row.snapshots for row in found if row.outcome == FAILED)
    print(f"snapshots={snapshots} failed={failed}")
    return snapshots > 0 and not failed


def _store(corpus: str, found: list[Row]) -> None:
    kept = [row for row in rows() if row.corpus != corpus] if TABLE.exists() else []
    with TABLE.open("w", encoding="utf-8", newline="") as f:
        lines = csv.writer(f, delimiter="\t", lineterminator="\n")
        lines.writerow(field.name for field in fields(Row))
        lines.writerows(sorted(astuple(row) for row in [*kept, *found]))
