"""Compare every row of the corpus's savepoints with the expected rows.

``python -m tests.corpus_check DIR [--kinds canonical] [--via arrow|spark|both] [--declare FILE]``: DIR contains (at any depth) case folders
with ``case.json`` and ``expected.json``; FILE is an Avro schema of classes, as for ``statetool --declare``. Prints one line per case and
finally ``cases=N passed=N``; exits 0 only if all pass.

Values whose bytes only user code can read (Kryo's user classes, subclasses that a snapshot does not describe) must be present as
exact bytes; the line of a case has the number of such rows (``raw``).
"""

from __future__ import annotations

import argparse
import json
import traceback
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

import statetool
from statetool.columns.values import StateLayout
from statetool.errors import StatetoolError, UnknownSerializerError
from statetool.formats.state_meta import KEY_VALUE_V2, StateMetaInfo
from statetool.java.declaring.classes import read_declarations
from statetool.serializers.core.base import Serializer
from statetool.types import Scalar
from statetool.types.declared import ClassDeclaration
from statetool.types.options import ShowingOptions
from statetool.types.table_columns import state_columns
from tests.support.checks.connector_check import ConnectorChecker, wrong_bucket
from tests.support.checks.in_flight import wrong_records
from tests.support.checks.sql_check import SqlChecker
from tests.support.corpora.kryo_classes import CLASSES
from tests.support.expected.kryo import without_kryo
from tests.support.expected.scalars import json_text
from tests.support.expected.values import to_json
from tests.support.values.plain import plain, row_value, rows_with_numbers

ReadTable = Callable[..., pa.Table]
OPTIONS: ShowingOptions = {"nanos": "always", "decimals": "string"}


class Case:
    """One case folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.info = json.loads((folder / "case.json").read_text())
        self.expected = json.loads((folder / "expected.json").read_text(), object_hook=without_kryo)

    @property
    def kind(self) -> str:
        return str(self.info["kind"])

    @property
    def metadata(self) -> Path:
        return self.folder / "snapshot" / str(self.info["metadata"])


class Checker:
    """Comparison of one case read in one way."""

    #: Whether states may contain undeclared user classes.
    may_be_undeclared = False

    def __init__(self, case: Case, spark: Any, declarations: tuple[ClassDeclaration, ...] = ()) -> None:
        self.case = case
        self.spark = spark
        self.savepoint = statetool.load(str(case.metadata), spark=spark, declarations=(*CLASSES, *declarations))
        self.rows = 0
        self.raw = 0
        self.undeclared: set[str] = set()
        self.problems: list[str] = []

    def run(self) -> None:
        by_id = {op.operator_id: op for op in self.savepoint.operators.values()}
        if any("operator_id" not in o for o in self.case.expected["operators"].values()):
            other = SqlChecker(self.case.folder, self.savepoint, self.case.expected, self.spark)
            other.run()
            self.rows, self.problems = other.rows, other.problems
            return
        for label, wanted in self.case.expected["operators"].items():
            op = by_id.get(wanted["operator_id"])
            if "connector" in wanted:
                self.connector(op, label, wanted)
                continue
            stateful = wanted.get("keyed_state") or wanted.get("operator_state")
            if op is None:
                if stateful:
                    self.problems.append(f"{label}: operator is missing")
                continue
            if op._operator.state.fully_finished != wanted.get("fully_finished", False):
                self.problems.append(f"{label}: fully finished is {op._operator.state.fully_finished}")
            if op.max_parallelism != wanted["max_parallelism"] or op.parallelism != wanted["parallelism"]:
                self.problems.append(f"{label}: parallelism {op.parallelism} of {op.max_parallelism}")
            try:
                self.operator(op, wanted)
            except StatetoolError as error:
                self.problems.append(f"{label}: {error}")
        records, problems = wrong_records(self.case.metadata, self.case.expected, self.spark)
        self.rows += records
        self.problems += problems

    def connector(self, op: statetool.Operator | None, label: str, wanted: dict[str, Any]) -> None:
        if op is None:
            self.problems.append(f"{label}: operator is missing")
            return
        other = ConnectorChecker(op, wanted)
        try:
            other.run()
        except StatetoolError as error:
            self.problems.append(f"{label}: {error}")
        self.rows += other.rows
        self.problems += other.problems

    def read(self, op: statetool.Operator, table: str, **arguments: Any) -> pa.Table:
        if self.spark is None:
            return op.to_arrow(table, **OPTIONS, **arguments)
        frame = (
            op.keyed_state(**OPTIONS, **arguments)
            if table == "keyed_state"
            else op.state(table, **OPTIONS, **arguments)
        )
        return frame.toArrow()

    @staticmethod
    def table(op: statetool.Operator, scope: str, name: str) -> str:
        """Return the name of a state's table."""
        return next(t for t, state in op._operator.state_tables.items() if state == (scope, name))

    def operator(self, op: statetool.Operator, wanted: dict[str, Any]) -> None:
        metas = {name: (h.key, meta) for name, (h, meta) in op._operator.keyed_states.items()}
        keyed = wanted.get("keyed_state")
        if keyed:
            names = {n for n, (_, m) in metas.items() if m.kind != "timers"}
            skipped = {n for n, s in keyed["states"].items() if left_out(s)}
            keyed["states"] = {n: s for n, s in keyed["states"].items() if n not in skipped}
            with_rows = {n for n, s in keyed["states"].items() if s["rows"]}
            if with_rows - names or names - skipped - keyed["states"].keys():
                self.problems.append(f"{op.name}: states {sorted(names)}, expected {sorted(keyed['states'])}")
            for name in sorted(names & keyed["states"].keys()):
                try:
                    self.long_form(op, name, *metas[name], keyed["states"][name])
                except UnknownSerializerError as error:
                    # A user class inside Kryo values: its rows are compared where the bytes are available.
                    self.undeclared.add(name)
                    if not self.may_be_undeclared:
                        self.problems.append(f"{op.name}.{name}: {error}")
            self.one_row_a_key(op, metas, keyed["states"])
            self.timers(op, metas, keyed)
        states = op._operator.operator_states
        for name, expected in (wanted.get("operator_state") or {}).items():
            if name not in states:
                if expected["rows"]:
                    self.problems.append(f"{op.name}.{name}: operator state is missing")
                continue
            self.operator_state(op, name, states[name], expected)

    def compare(self, what: str, found: list[Any], expected: list[Any]) -> None:
        left, right = Counter(map(json_text, found)), Counter(map(json_text, expected))
        self.rows += len(expected)
        if left != right:
            extra, missing = list((left - right).elements()), list((right - left).elements())
            self.problems.append(f"{what}: {len(extra)} unexpected {extra[:1]}, {len(missing)} missing {missing[:1]}")

    # ---- keyed --------------------------------------------------------------------------------

    def long_form(
        self, op: statetool.Operator, name: str, key: Serializer, meta: StateMetaInfo, wanted: dict[str, Any]
    ) -> None:
        what = f"{op.name}.{name}"
        if meta.kind != wanted["kind"]:
            self.problems.append(f"{what}: kind {meta.kind}, expected {wanted['kind']}")
        shape = StateLayout(meta)
        if opaque(shape) or self.undescribed(op, name, wanted):
            return  # compared through keyed_state, which has the bytes
        groups: dict[str, list[Any]] = defaultdict(list)
        heads: dict[str, dict[str, Any]] = {}
        for row in rows_with_numbers(self.read(op, self.table(op, "keyed", name))):
            head: dict[str, Any] = {"key": self.json(row, "key", key)}
            assert meta.namespace is not None
            namespace = self.namespace(row, meta.namespace)
            if namespace is not None:
                head["namespace"] = namespace
            value = self.json(row, "value", shape.element)
            item: Any = value
            if "map_key" in row:
                assert shape.user_key is not None
                item = [self.json(row, "map_key", shape.user_key), value]
            elif "list_index" in row and row["list_index"] != len(groups[json_text(head)]):
                self.problems.append(f"{what}: list index {row['list_index']} out of order")
            text = json_text(head)
            heads[text] = head
            groups[text].append(item)
        found = []
        for text, items in groups.items():
            if shape.kind == "map":
                found.append({**heads[text], "value": sorted(items, key=lambda i: json_text(i[0]))})
            elif shape.kind == "list":
                found.append({**heads[text], "value": items})
            else:
                if len(items) != 1:
                    self.problems.append(f"{what}: {len(items)} rows for {text}")
                found.append({**heads[text], "value": items[0]})
        unordered = any_order(wanted)
        self.compare(
            what,
            [in_order(name, r, unordered=unordered) for r in found],
            [in_order(name, r, unordered=unordered) for r in wanted["rows"]],
        )

    def one_row_a_key(
        self, op: statetool.Operator, metas: dict[str, tuple[Serializer, StateMetaInfo]], wanted: dict[str, Any]
    ) -> None:
        void = {
            n: m for n, (_, m) in metas.items() if m.namespace is not None and m.namespace.logical == Scalar("null")
        }
        column_of = state_columns(void)
        void = {n: m for n, m in void.items() if n in wanted}
        if not void:
            return
        key = next(iter(metas.values()))[0]
        table = self.read(op, "keyed_state", on_error="keep_raw")
        found: dict[str, list[Any]] = {n: [] for n in void}
        raw: Counter[str] = Counter()
        for row in rows_with_numbers(table):
            head = self.json(row, "key", key)
            undecoded = dict(row["_undecoded"] or ())
            for name, meta in void.items():
                # For a map, the entries that cannot be decoded are named.
                missing = name in undecoded or any(n.startswith(f"{name}[") for n in undecoded)
                if row[column_of[name]] is None and not missing:
                    continue
                if missing or opaque(StateLayout(meta)):
                    raw[name] += 1
                    found[name].append({"key": head})
                    continue
                namespace = {"namespace": n} if (n := self.namespace(row, meta.namespace)) is not None else {}
                found[name].append({"key": head, **namespace, "value": self.whole(row, column_of[name], meta)})
        for name in void:
            rows = wanted[name]["rows"]
            self.raw += raw[name]
            if raw[name]:
                skipped = {json_text(r["key"]) for r in found[name] if "value" not in r}
                known = not opaque(StateLayout(void[name])) and not self.undescribed(op, name, wanted[name])
                if known and name not in self.undeclared:
                    self.problems.append(f"{op.name}.{name}: {raw[name]} values could not be decoded")
                rows = [r if json_text(r["key"]) not in skipped else {"key": r["key"]} for r in rows]
            self.compare(
                f"{op.name}.{name} (keyed_state)",
                [in_order(name, r, unordered=any_order(wanted[name])) for r in found[name]],
                [in_order(name, r, unordered=any_order(wanted[name])) for r in rows],
            )

    def whole(self, row: dict[str, Any], column: str, meta: StateMetaInfo) -> Any:
        """Return everything that a state holds for a key; for Flink 2's async states, the serializer is that of an element."""
        shape = StateLayout(meta)
        if meta.backend_type != KEY_VALUE_V2 or shape.kind not in ("list", "map"):
            return self.json(row, column, meta.value)

        def part(value: Any, s: Serializer) -> Any:
            return to_json(plain(value, s.logical), s.logical, s)

        if shape.kind == "list":
            return [part(v, shape.element) for v in row[column]]
        assert shape.user_key is not None
        pairs = [[part(k, shape.user_key), part(v, shape.element)] for k, v in row[column]]
        return sorted(pairs, key=lambda pair: json_text(pair[0]))

    def undescribed(self, op: statetool.Operator, name: str, wanted: dict[str, Any]) -> bool:
        """Return True if rows are of classes that the snapshot does not describe."""
        described = described_classes(op._operator.keyed_states[name][1].value)
        classes = {r["value"].get("$class") for r in wanted["rows"] if isinstance(r.get("value"), dict)} - {None}
        return bool(described) and bool(classes - described)

    def timers(
        self, op: statetool.Operator, metas: dict[str, tuple[Serializer, StateMetaInfo]], keyed: dict[str, Any]
    ) -> None:
        timers = [(k, m) for k, m in metas.values() if m.kind == "timers"]
        expected = {"event": keyed["event_time_timers"], "processing": keyed["processing_time_timers"]}
        if not timers:
            if any(expected.values()):
                self.problems.append(f"{op.name}: timers are missing")
            return
        key = timers[0][0]
        namespace = timers[0][1].value.children()[1][1]
        found: dict[str, list[Any]] = {"event": [], "processing": []}
        table = self.read(op, "timers") if self.spark is None else op.timers(**OPTIONS).toArrow()
        for row in rows_with_numbers(table):
            found[row["domain"]].append(
                {
                    "key": self.json(row, "key", key),
                    "namespace": self.namespace(row, namespace),
                    "timestamp": row["timestamp"],
                }
            )
        for domain, rows in expected.items():
            rows = [{"key": r["key"], "namespace": r.get("namespace"), "timestamp": r["timestamp"]} for r in rows]
            self.compare(f"{op.name} {domain} timers", found[domain], rows)

    def namespace(self, row: dict[str, Any], serializer: Serializer | None) -> Any:
        assert serializer is not None
        if serializer.type_name == "GlobalWindow":
            return "GlobalWindow"
        return self.json(row, "namespace", serializer) if "namespace" in row else None

    @staticmethod
    def json(row: dict[str, Any], column: str, serializer: Serializer) -> Any:
        return to_json(row_value(row, column, serializer.logical), serializer.logical, serializer)

    # ---- operator state -----------------------------------------------------------------------

    def operator_state(self, op: statetool.Operator, name: str, meta: StateMetaInfo, wanted: dict[str, Any]) -> None:
        what = f"{op.name}.{name} (operator state)"
        if meta.kind != wanted["mode"]:
            self.problems.append(f"{what}: mode {meta.kind}, expected {wanted['mode']}")
        rows = rows_with_numbers(self.read(op, self.table(op, "operator", name)))
        if any(s.needs_frame for s in tree(meta.value)):
            self.raw += len(rows)
            self.compare(what, [bytes_of(r["value"]) for r in rows], [bytes_of(r) for r in wanted["rows"]])
            return
        found = [self.json(r, "value", meta.value) for r in rows]
        if meta.kind == "broadcast":
            key = meta.serializers["KEY_SERIALIZER"]
            found = [[self.json(r, "key", key), v] for r, v in zip(rows, found, strict=True)]
        self.compare(what, found, wanted["rows"])


def bytes_of(value: Any) -> Any:
    """Return exact bytes in the corpus's notation; other notations cannot be compared, and count as a difference."""
    return {"$hex": value.hex()} if isinstance(value, bytes) else value


def tree(serializer: Serializer) -> Iterator[Serializer]:
    """Yield a serializer and all below it."""
    yield serializer
    for _, child in serializer.children():
        yield from tree(child)


def described_classes(serializer: Serializer) -> set[str]:
    """Return the POJO classes that a serializer can decode."""
    found = set()
    for s in tree(serializer):
        if hasattr(s, "pojo_class"):
            found.add(s.pojo_class)
            found |= {n for n, _ in (*s.registered, *s.others)}  # type: ignore[attr-defined]
    return found


def opaque(shape: StateLayout) -> bool:
    """Return True if only user code can read a part of the state's value."""
    parts = [shape.element, *([shape.user_key] if shape.user_key is not None else [])]
    return shape.framed_bytes or any(s.needs_frame for p in parts for s in tree(p))


def any_order(wanted: dict[str, Any]) -> bool:
    """Return True if the corpus does not record the order of a list's elements."""
    return "the order within a key is not defined" in wanted.get("note", "")


def left_out(wanted: dict[str, Any]) -> bool:
    """Return True if the corpus does not record a state's rows."""
    return any_order(wanted) and not wanted["rows"]


def in_order(name: str, row: dict[str, Any], *, unordered: bool) -> dict[str, Any]:
    """Sort the members of rows, and the elements of window sets and of lists without a defined order."""
    row = {k: row[k] for k in ("key", "namespace", "value") if k in row}
    if (name == "merging-window-set" or unordered) and isinstance(row.get("value"), list):
        row["value"] = sorted(row["value"], key=json_text)
    return row


def find_cases(root: Path, kinds: set[str] | None) -> list[Case]:
    """Return the cases below a folder."""
    cases = [Case(p.parent) for p in sorted(root.rglob("case.json")) if (p.parent / "expected.json").exists()]
    # Two of the oldest contain state that Flink dropped: there is no snapshot to open.
    cases = [c for c in cases if c.expected]
    return [c for c in cases if kinds is None or c.kind in kinds]


def check_case(
    case: Case, vias: list[tuple[str, Any]], declarations: tuple[ClassDeclaration, ...] = ()
) -> tuple[bool, str]:
    """Check one case each way and return whether it passed, and its line."""
    words, passed = [], True
    if (case.folder / "bytes").exists():
        problems = wrong_bucket((case.folder / "bytes").read_bytes(), case.expected)
        return not problems, f"{'FAIL' if problems else 'PASS'} {case.folder.name} {' | '.join(problems)}"
    for via, spark in vias:
        try:
            checker = Checker(case, spark, declarations)
            checker.run()
            problems = checker.problems
            words.append(f"{via}: rows={checker.rows} raw={checker.raw}")
        except StatetoolError as error:
            problems = [str(error)]
        except Exception as error:  # noqa: BLE001 - a crash is what this program looks for
            at = traceback.extract_tb(error.__traceback__)[-1]
            problems = [f"CRASH {type(error).__name__}: {error} at {Path(at.filename).name}:{at.lineno}"]
        if problems:
            passed = False
            words.append(f"{via}: {len(problems)} problems: {' | '.join(problems[:3])}")
    return passed, f"{'PASS' if passed else 'FAIL'} {case.folder.name} {'; '.join(words)}"


def main(arguments: list[str]) -> int:
    """Run the command line and return its exit code."""
    parser = argparse.ArgumentParser(prog="tests.corpus_check")
    parser.add_argument("directory", type=Path)
    parser.add_argument("--kinds", help="comma-separated kinds, e.g. canonical")
    parser.add_argument("--via", choices=("arrow", "spark", "both"), default="both")
    parser.add_argument("--declare", action="append", default=[], metavar="FILE", help="Avro schema of classes")
    given = parser.parse_args(arguments)
    declarations = read_declarations(given.declare)
    cases = find_cases(given.directory, set(given.kinds.split(",")) if given.kinds else None)
    vias: list[tuple[str, Any]] = []
    if given.via in ("arrow", "both"):
        vias.append(("arrow", None))
    if given.via in ("spark", "both"):
        from statetool.spark.session import local_session

        vias.append(("spark", local_session(cores="2")))
    passed = 0
    for case in cases:
        good, line = check_case(case, vias, declarations)
        passed += good
        print(line, flush=True)
    print(f"cases={len(cases)} passed={passed}")
    return 0 if cases and passed == len(cases) else 1
