"""Rewrite every case of a corpus and compare the result with the expected rows.

``python -m tests.roundtrip_check DIR [--kinds canonical] [--via arrow|spark|both] [--declare FILE]``: each case is written by
``SavepointWriter.from_existing`` unchanged, and once more with every table of every operator read, and written like its operator. FILE is
an Avro schema of classes, as for ``statetool --declare``.
Prints one line per case and finally ``cases=N passed=N``; exits 0 only if all pass.

With ``--native``, every snapshot is written in the native forms instead (:mod:`tests.support.checks.native_roundtrips`).
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import statetool
from statetool.errors import FormatError, StatetoolError
from statetool.java.declaring.classes import read_declarations
from statetool.types import Scalar
from statetool.types.declared import ClassDeclaration
from statetool.types.options import ShowingOptions
from tests.support.checks.corpus_check import Case, Checker, find_cases
from tests.support.checks.native_roundtrips import check_all_native

EXACT: ShowingOptions = {"ttl": "raw", "nanos": "always", "decimals": "string"}


def bootstraps_of(op: statetool.Operator, spark: Any) -> Iterator[Any]:
    """Read every table of an operator, and yield bootstraps that write it like the operator."""

    def read(table: str, **arguments: Any) -> Any:
        if spark is None:
            return op.to_arrow(table, **EXACT, **arguments)
        if table == "keyed_state":
            return op.keyed_state(**EXACT, **arguments)
        return op.timers(**EXACT, **arguments) if table == "timers" else op.state(table, **EXACT, **arguments)

    timers = read("timers", key_group=True) if "timers" in op.tables else None
    like: dict[str, Any] = {"like": op, "key_group": "key_group"}
    if "keyed_state" in op.tables:
        names = readable_states(op)
        table = read("keyed_state", key_group=True, states=names)
        yield statetool.bootstrap_keyed_state(table, states=names, timers=timers, **like)
    elif timers is not None:
        yield statetool.bootstrap_keyed_state(timers, states=[], timers=timers, **like)
    for name, (_, meta) in op.inventory.keyed_states.items():
        if meta.namespace is not None and meta.namespace.logical != Scalar("null"):
            yield statetool.bootstrap_state(name, read(name, key_group=True), namespace="namespace", **like)
    writers: dict[str, Any] = {
        "list": statetool.bootstrap_list_state,
        "union": statetool.bootstrap_union_state,
        "broadcast": statetool.bootstrap_broadcast_state,
    }
    for name, meta in op.inventory.operator_states.items():
        if meta.kind == "broadcast":
            yield writers[meta.kind](name, read(name), like=op)
        else:
            yield writers[meta.kind](name, read(name, subtask=True), subtask="subtask", like=op)


def readable_states(op: statetool.Operator) -> list[str]:
    """Return the states of the table ``keyed_state``, except those with values that only user code can read."""
    names = [f.name for f in op.scan("keyed_state").schema][1:]
    names = [n for n in names if n in op.states]
    while True:
        try:
            for _ in op.keyed_state_batches(states=names, **EXACT):
                pass
        except FormatError as error:
            if error.where.state not in names:
                raise
            names.remove(error.where.state)
        else:
            return names


def write_unchanged(sp: statetool.Savepoint, target: Path) -> None:
    """Write an unchanged copy of a savepoint."""
    statetool.SavepointWriter.from_existing(sp).write(str(target))


def write_tables(sp: statetool.Savepoint, target: Path) -> None:
    """Write a savepoint from its tables."""
    writer = statetool.SavepointWriter.from_existing(sp)
    for name, op in sp.operators.items():
        if any(s.finished for s in op.inventory.state.subtasks):
            continue  # Flink stores no state for finished subtasks, so none is written for them
        bootstraps = list(bootstraps_of(op, sp.spark))
        if bootstraps:
            writer = writer.with_operator(name, *bootstraps)
    writer.write(str(target))


def check_roundtrip(case: Case, spark: Any, declarations: tuple[ClassDeclaration, ...] = ()) -> tuple[list[str], int]:
    """Write a case both ways; return the differences, and the number of rows compared."""
    problems: list[str] = []
    rows = 0
    for what, write in (("unchanged", write_unchanged), ("tables", write_tables)):
        with tempfile.TemporaryDirectory(prefix="statetool-roundtrip-") as folder:
            target = Path(folder) / "savepoint"
            try:
                write(statetool.load(str(case.metadata), spark=spark, declarations=declarations), target)
                checker = Checker(_moved(case, target), None, declarations)
                checker.run()
                rows += checker.rows
                problems += [f"{what}: {p}" for p in checker.problems]
            except StatetoolError as error:
                problems.append(f"{what}: {error}")
    return problems, rows


class _MovedCase(Case):
    """A case with its snapshot in another place."""

    target: Path

    @property
    def metadata(self) -> Path:
        return self.target / "_metadata"


def _moved(case: Case, target: Path) -> Case:
    moved = _MovedCase(case.folder)
    moved.target = target
    return moved


def main(arguments: list[str]) -> int:
    """Run the command line and return its exit code."""
    parser = argparse.ArgumentParser(prog="tests.roundtrip_check")
    parser.add_argument("directory", type=Path)
    parser.add_argument("--kinds", default="canonical", help="comma-separated kinds; empty for all")
    parser.add_argument("--via", choices=("arrow", "spark", "both"), default="both")
    parser.add_argument("--declare", action="append", default=[], metavar="FILE", help="Avro schema of classes")
    parser.add_argument("--native", action="store_true", help="native form of each backend, and canonical form again")
    given = parser.parse_args(arguments)
    declarations = read_declarations(given.declare)
    kinds = set(given.kinds.split(",")) if given.kinds else None
    if given.native:
        return 0 if check_all_native(given.directory, declarations) else 1
    vias: list[tuple[str, Any]] = [("arrow", None)] if given.via != "spark" else []
    if given.via != "arrow":
        from statetool.spark.session import local_session

        vias.append(("spark", local_session()))
    cases = find_cases(given.directory, kinds)
    passed = 0
    for case in cases:
        words, good = [], True
        for via, spark in vias:
            problems, rows = check_roundtrip(case, spark, declarations)
            good &= not problems
            words.append(f"{via}: rows={rows}" + "".join(f" | {p}" for p in problems[:3]))
        passed += good
        print(f"{'PASS' if good else 'FAIL'} {case.folder.name} {'; '.join(words)}", flush=True)
    print(f"cases={len(cases)} passed={passed}")
    return 0 if cases and passed == len(cases) else 1
