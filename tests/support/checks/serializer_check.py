"""Check every serializer case of a corpus: ``python -m tests.serializer_check DIR``.

``DIR`` contains ``INDEX.tsv`` (module, case, version, snapshot class, expected JSON, note), and folders at any depth with
``serializer-snapshot`` and ``test-data``, some also with ``expected.json``, which has values, byte offsets, hash codes and key groups for
128. A snapshot has its proxy (i32 1 or 2) before it, or is bare.

For each case:

- The snapshot is read to its last byte and written back.
- The values are decoded, skipped and compared, and encoded back to the same bytes.
- Kernels decode them to the same Arrow column.
- Hash codes and key groups are compared.

A value that stays bytes is a failure unless :data:`UNSUPPORTED` gives a reason. Prints a line per failed case, the cases of that list, and
finally ``cases=N passed=N failed=N unsupported=N``; exits 0 if none failed.
"""

from __future__ import annotations

import csv
import json
import re
import sys
import traceback
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np

from statetool.columns.decode import as_data, decode_column
from statetool.columns.from_plain import plain_to_arrow
from statetool.columns.types import arrow_type
from statetool.errors import StatetoolError, UnknownSerializerError, UnsupportedError
from statetool.formats.key_groups import key_group_for
from statetool.io.cursor import Cursor
from statetool.io.java_streams.reader import read_java_stream
from statetool.io.output import Output
from statetool.kernels.values.skip import skip_many
from statetool.kernels.values.skip_program import compile_skip
from statetool.serializers.core.base import Serializer
from statetool.serializers.core.snapshot import write_proxied
from statetool.serializers.sql.rowdata import BinaryDataSerializer, BinaryRowSerializer
from statetool.serializers.table import snapshot_reader
from statetool.types.declared import TypeContext
from statetool.types.options import ReadOptions
from tests.support.corpora.kryo_classes import CLASSES
from tests.support.expected.scalars import same
from tests.support.expected.values import to_json
from tests.support.values.arrow_columns import rows_of

#: Serializers whose Java hash is not computed, with the reason.
NO_HASH: Final = {
    "identity hash, no key type": (
        "PrimitiveArray", "StringArray", "GenericArray", "EnumSerializer", "ValueArraySerializer",
    ),
    "hashCode() is in user code": (
        "PojoSerializer", "KryoSerializer", "AvroSerializer", "JavaSerializer", "runtime.ValueSerializer",
    ),
    "never part of a key": (
        "TimeWindow", "GlobalWindow", "CountWindow", "VoidNamespace", "TimerSerializer", "TtlSerializer",
        "BufferEntry", "TwoPhaseCommit", "StreamElement", "UnionSerializer", "cep.nfa", "FlinkKafkaProducer",
        "MapSerializer", "SetSerializer", "MapView", "LinkedList", "sequencedmultisetstate", "WindowKey",
        "SortedLong", "VariantSerializer", "BitmapSerializer", "ArrayData", "MapData", "RawValue", "ExternalSerializer",
        "ScalaTry", "Traversable",
    ),
}  # fmt: skip
#: Data files without a snapshot, and the case with their snapshot (or the snapshot itself).
BORROWED: Final = {
    "flink-1.7-string-array-serializer-data": "flink-core/string-array-serializer-1.13",
    "flink-1.7-array-list-serializer-data": "flink-runtime/arraylist-serializer-1.13",
    "flink-1.7-either-serializer-data": "flink-core/either-serializer-1.13",
    "flink-1.7-avro-type-serializer-address-data": "flink-avro/specific-avro-serializer-1.13",
    "flink-1.7-avro-generic-type-serializer-address-data": "flink-avro/generic-avro-serializer-1.13",
}
#: The only cases whose values may stay bytes, by the end of their names, with the reported reason.
UNSUPPORTED: Final = {
    "/binary-rowdata": "its snapshot has no types",
    "/flink-1.3.2-scala-types-serializer-data": "data without a snapshot",
    "/kryo-custom-type-serializer-changed-registration-order-1.11": "whose format is defined by user code",
    "/kryo-custom-type-serializer-changed-registration-order-1.13": "whose format is defined by user code",
}
_COPIES: Final = 10
_OPTIONS: Final = ReadOptions(ttl="raw", nanos="companion", decimals="string")


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One case; ``values`` is ``None`` if no values are given."""

    name: str
    snapshot: bytes | None
    data: bytes | None
    values: list[Any] | None = None
    offsets: list[int] | None = None
    hashes: list[int | None] | None = None
    key_groups: list[int | None] | None = None
    length: int | None = None
    snapshot_class: str | None = None
    exact_class: bool = False

    @property
    def context(self) -> TypeContext:
        """Return outside information: the version of Kryo, the classes of the corpora, and that unit tests register no JDK class."""
        first = re.search(r"(\d)\.\d+", self.name)
        gen: Literal[2, 5] = 5 if first is not None and int(first[1]) >= 2 else 2
        return TypeContext(kryo=gen, classes=CLASSES, chill=not self.name.startswith("flink-core/"))


@dataclass(slots=True)
class Result:
    """Result of a case: nothing (passed), failures, or serializers whose values stay bytes."""

    failures: list[str] = field(default_factory=list)
    unsupported: list[str] = field(default_factory=list)

    def leave(self, case: Case, reason: str) -> None:
        """Record that values stay bytes, which is a failure unless expected for the case."""
        known = next((words for end, words in UNSUPPORTED.items() if f"/{case.name}".endswith(end)), None)
        (self.failures if known is None or known not in reason else self.unsupported).append(reason)


def find_cases(root: Path) -> Iterator[Case]:
    """Yield the cases below ``root``, in the order of their paths."""
    index = read_index(root)
    for snapshot in sorted(root.rglob("serializer-snapshot")):
        folder = snapshot.parent
        name = folder.relative_to(root).as_posix()
        data = folder / "test-data"
        described = folder / "expected.json"
        content = snapshot.read_bytes(), data.read_bytes() if data.exists() else None
        row = index.get(name)
        if described.exists():
            yield described_case(name, *content, json.loads(described.read_text("utf-8")))
        elif row is not None:
            values = [json.loads(row["expected"])]
            yield Case(
                name=name, snapshot=content[0], data=content[1], values=values, snapshot_class=row["snapshot_class"]
            )
        else:
            yield Case(name=name, snapshot=content[0], data=content[1])
    for flat in sorted(p for folder in root.rglob("_flat") for p in folder.iterdir()):
        row = index.get(flat.relative_to(root).as_posix())
        yield from _flat_case(root, flat, row)


def described_case(name: str, snapshot: bytes, data: bytes | None, said: dict[str, Any]) -> Case:
    """Return the case that an ``expected.json`` describes."""
    return Case(
        name=name,
        snapshot=snapshot,
        data=data,
        values=said["values"],
        offsets=said.get("offsets"),
        hashes=said.get("hash"),
        key_groups=said.get("keygroup128"),
        length=said.get("length"),
        snapshot_class=said.get("snapshot"),
        exact_class=True,
    )


def _flat_case(root: Path, path: Path, row: dict[str, str] | None) -> Iterator[Case]:
    name = path.relative_to(root).as_posix()
    content = path.read_bytes()
    if not path.name.endswith("-data"):
        yield Case(name=name, snapshot=content, data=None)
        return
    borrowed = root / BORROWED.get(path.name, "none") / "serializer-snapshot"
    snapshot = borrowed.read_bytes() if borrowed.exists() else None
    values = [json.loads(row["expected"])] * _COPIES if row is not None and snapshot is not None else None
    yield Case(name=name, snapshot=snapshot, data=content, values=values)


def read_index(root: Path) -> dict[str, dict[str, str]]:
    """Return the rows of ``INDEX.tsv`` by module and case."""
    path = root / "INDEX.tsv"
    if not path.exists():
        return {}
    with path.open(encoding="utf-8", newline="") as f:
        rows = list(csv.DictReader(f, delimiter="\t", quoting=csv.QUOTE_NONE))
    return {f"{row['module']}/{row['case']}": row for row in rows}


def check(case: Case) -> Result:
    """Check one case; any exception but a ``StatetoolError`` is reported as a crash."""
    result = Result()
    try:
        serializer = _check_snapshot(case, result)
        if serializer is not None and case.data is not None:
            _check_data(case, serializer, case.data, result)
    except (UnknownSerializerError, UnsupportedError) as e:
        result.leave(case, e.message)
    except StatetoolError as e:
        result.failures.append(f"{type(e).__name__}: {e}")
    except Exception as e:  # noqa: BLE001 - a crash is what this program looks for
        at = traceback.extract_tb(e.__traceback__)[-1]
        result.failures.append(f"CRASH {type(e).__name__}: {e} at {Path(at.filename).name}:{at.lineno}")
    return result


def _check_snapshot(case: Case, result: Result) -> Serializer | None:
    if case.snapshot is None:
        result.leave(case, "data without a snapshot")
        return None
    c = Cursor(case.snapshot)
    if is_java_serializer(case.snapshot):
        if c.i4() != 1 or c.i4() != c.left:
            result.failures.append("not one framed Java-serialized serializer")
        read_java_stream(c)
        c.expect_end("the serializer")
        return None
    proxied = case.snapshot[:4] in (b"\0\0\0\1", b"\0\0\0\2")
    serializer = snapshot_reader(case.context).proxied(c) if proxied else snapshot_reader(case.context).snapshot(c)
    c.expect_end("the snapshot")
    out = Output()
    if proxied:
        write_proxied(out, serializer)
    else:
        serializer.write_snapshot(out)
    if bytes(out) != case.snapshot:
        result.failures.append(_difference("snapshot written back", bytes(out), case.snapshot))
    if case.snapshot_class and serializer.snapshot_class != case.snapshot_class:
        result.failures.append(f"snapshot class {serializer.snapshot_class}, expected {case.snapshot_class}")
    if case.length is not None and serializer.length != case.length:
        result.failures.append(f"length {serializer.length}, Flink says {case.length}")
    return serializer


def is_java_serializer(snapshot: bytes) -> bool:
    return snapshot[:4] == b"\0\0\0\1" and snapshot[8:12] == b"\xac\xed\0\5"


def _check_data(case: Case, s: Serializer, data: bytes, result: Result) -> None:
    if s.needs_frame:
        _check_frames(case, s, data, result)
        return
    c = Cursor(data)
    count = len(case.values) if case.values is not None else None
    values: list[Any] = []
    starts: list[int] = []
    while (len(values) < count) if count is not None else c.left > 0:
        start = c.pos
        if case.offsets is not None and start != case.offsets[len(values)]:
            result.failures.append(f"value {len(values)} starts at {start}, expected {case.offsets[len(values)]}")
        value = s.decode(c)
        skipped = Cursor(data, start)
        s.skip(skipped)
        if skipped.pos != c.pos:
            result.failures.append(f"skip of value {len(values)} ends at {skipped.pos}, decode at {c.pos}")
        _check_encoded(s, value, data[start : c.pos], result)
        values.append(value)
        starts.append(start)
    if c.left:
        result.failures.append(f"{c.left} bytes trail after {len(values)} values")
    _check_column(s, values, data, [*starts, c.pos], result)
    if not (s.children() and _has_rows(s)):  # when nested, rows of other classes use the identity hash
        _check_hashes(case, s, values, result)
    if _shown_as_bytes(s):
        result.leave(case, f"{s.type_name} (shown as its exact bytes)")
        return
    for i, expected in enumerate(case.values or ()):
        found = to_json(values[i], s.logical, s, style="serializer")
        if not _same(found, expected, case.exact_class):
            result.failures.append(f"value {i} is {_short(found)}, expected {_short(expected)}")


def _check_column(s: Serializer, values: list[Any], data: bytes, edges: list[int], result: Result) -> None:
    """Check that kernels find the same ends, and make the same column as decoding one by one."""
    start, end = np.array(edges[:-1], np.int64), np.array(edges[1:], np.int64)
    raw = as_data(data)
    if (program := compile_skip(s.program())) is not None:
        after = np.empty_like(start)
        skip_many(raw, program, start, np.full_like(end, len(raw)), after)
        if after.tolist() != end.tolist():
            result.failures.append(f"the skip kernel ends at {after.tolist()[:5]}, decode at {end.tolist()[:5]}")
    try:
        plain = plain_to_arrow(values, s.logical, _OPTIONS)
    except StatetoolError as error:
        # Arrow maps have no null keys, and its timestamps are limited, in both ways.
        try:
            decode_column(s.program(), s.logical, raw, start, end, _OPTIONS)
        except StatetoolError as other:
            if error.message in other.message:
                return
        result.failures.append(f"no column of values decoded one by one ({error.message}), but one by kernels")
        return
    column, after = decode_column(s.program(), s.logical, raw, start, end, _OPTIONS)
    if column.type != plain.type or column.type != arrow_type(s.logical, _OPTIONS):
        result.failures.append(f"the column is {column.type}, that of values decoded one by one {plain.type}")
    elif rows_of(column) != rows_of(plain):
        result.failures.append(f"the column is {_short(rows_of(column))}, decoded one by one {_short(rows_of(plain))}")
    if after.tolist() != end.tolist():
        result.failures.append(f"column kernels end at {after.tolist()[:5]}, decode at {end.tolist()[:5]}")


def _shown_as_bytes(s: Serializer) -> bool:
    """Return True if a part is a binary row whose snapshot does not store its types."""
    return type(s) in (BinaryDataSerializer, BinaryRowSerializer) or any(
        _shown_as_bytes(child) for _, child in s.children()
    )


def _has_rows(s: Serializer) -> bool:
    return isinstance(s, BinaryDataSerializer) or any(_has_rows(child) for _, child in s.children())


def _check_frames(case: Case, s: Serializer, data: bytes, result: Result) -> None:
    """Check values that only user code can read: each frame must be returned as its exact bytes."""
    offsets = case.offsets or [0]
    for start, end in zip(offsets, [*offsets[1:], len(data)], strict=True):
        c = Cursor(data, start, end)
        value = s.decode(c)
        c.expect_end("an opaque value")
        if isinstance(value, bytes) and value != data[start:end]:
            result.failures.append(f"opaque value at {start} is not its exact bytes")
        _check_encoded(s, value, data[start:end], result)
    result.leave(case, s.type_name)


def _check_encoded(s: Serializer, value: Any, raw: bytes, result: Result) -> None:
    out = Output()
    s.encode(out, value)
    if bytes(out) == raw:
        return
    if _only_identity_differs(s, value, bytes(out)):
        return
    result.failures.append(_difference(f"{_short(value)} encoded", bytes(out), raw))


def _only_identity_differs(s: Serializer, value: Any, encoded: bytes) -> bool:
    """Return True if only codes differ: Flink writes 0, 1 and 10 as codes only if the object *is* the cached constant."""
    holds = any(name in s.type_name for name in ("BigInt", "BigDec"))
    return (holds or _uses_kryo(s)) and s.decode(c := Cursor(encoded)) == value and c.left == 0


def _uses_kryo(s: Serializer) -> bool:
    """Return True if Kryo is used: it writes a repeated object once, which a plain value does not show."""
    return s.type_name.startswith("Kryo ") or any(_uses_kryo(child) for _, child in s.children())


def _check_hashes(case: Case, s: Serializer, values: list[Any], result: Result) -> None:
    if case.hashes is None:
        return
    for i, (value, expected) in enumerate(zip(values, case.hashes, strict=True)):
        if expected is None:
            continue
        try:
            found = s.hash_code(value)
        except UnsupportedError:
            if not any(part in s.snapshot_class for parts in NO_HASH.values() for part in parts) and not _user_part(s):
                result.failures.append(f"no hash code of {s.type_name}, expected {expected}")
            return
        if found != expected:
            result.failures.append(f"hash code of {_short(value)} is {found}, expected {expected}")
        elif case.key_groups is not None and key_group_for(found, 128) != case.key_groups[i]:
            result.failures.append(f"key group of {_short(value)} is not {case.key_groups[i]}")


def _user_part(s: Serializer) -> bool:
    """Return True if a part of the type has no computable hash."""
    return any(
        _user_part(child) or any(part in child.snapshot_class for parts in NO_HASH.values() for part in parts)
        for _, child in s.children()
    )


def _same(found: Any, expected: Any, exact_class: bool) -> bool:
    return same(found, expected) if exact_class else same(_without_class(found), _without_class(expected))


def _without_class(value: Any) -> Any:
    """Drop class names: Flink's migration cases are described with shortened ones."""
    if isinstance(value, dict):
        return {k: _without_class(v) for k, v in value.items() if k != "$class"}
    return [_without_class(v) for v in value] if isinstance(value, list) else value


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 300 else text[:300] + "..."


def _difference(what: str, found: bytes, expected: bytes) -> str:
    at = next(
        (i for i, (a, b) in enumerate(zip(found, expected, strict=False)) if a != b), min(len(found), len(expected))
    )
    return (
        f"{what}: {len(found)} bytes, expected {len(expected)}; from byte {at} "
        f"{found[at : at + 16].hex()}, expected {expected[at : at + 16].hex()}"
    )


def main(argv: list[str]) -> int:
    """Check the corpus named by the only argument."""
    if len(argv) != 1 or not Path(argv[0]).is_dir():
        print("usage: python -m tests.serializer_check DIR", file=sys.stderr)
        return 2
    total = passed = failed = 0
    unsupported: list[str] = []
    for case in find_cases(Path(argv[0])):
        result = check(case)
        total += 1
        if result.failures:
            failed += 1
            print(f"FAILED {case.name}: {'; '.join(result.failures)}")
        elif result.unsupported:
            unsupported.append(f"{case.name}: {result.unsupported[0]}")
        else:
            passed += 1
    for what in unsupported:
        print(f"unsupported {what}")
    print(f"cases={total} passed={passed} failed={failed} unsupported={len(unsupported)}")
    return 0 if total and not failed else 1
