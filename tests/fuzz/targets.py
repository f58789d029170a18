"""Fuzz targets: functions of bytes that return or raise a ``StatetoolError``, and their seeds from real Flink."""

from __future__ import annotations

import tarfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, Final

import numpy as np

import statetool
from statetool.connectors import registry
from statetool.connectors.layouts.collector import read_collector
from statetool.connectors.layouts.debezium import read_offset
from statetool.connectors.layouts.paimon import read_committable as read_paimon_committable
from statetool.connectors.layouts.pipeline_schemas import read_schemas
from statetool.connectors.layouts.pubsub import read_acknowledge_ids
from statetool.connectors.layouts.rabbitmq import read_messages
from statetool.connectors.layouts.starrocks import read_transactions
from statetool.connectors.sources import source_of
from statetool.connectors.wire import read_version
from statetool.errors import StatetoolError, UnknownNameError
from statetool.formats.keyed.header import read_keyed_header
from statetool.formats.metadata import parse_metadata
from statetool.formats.operator_state import read_operator_header
from statetool.formats.rocksdb.manifest import UnsupportedManifestError
from statetool.formats.rocksdb.table_file import SortedTable
from statetool.formats.rocksdb.table_runs import read_runs
from statetool.formats.stream import Stream
from statetool.io.cursor import Cursor
from statetool.io.java_streams.reader import read_java_stream
from statetool.io.output import Output
from statetool.java.classes.class_path import ClassPath
from statetool.java.classes.declarations import declare_classes
from statetool.java.classes.hash_codes import find_convention
from statetool.java.classes.java_serialization import serializable_class
from statetool.serializers.core.base import Serializer
from statetool.serializers.table import snapshot_reader
from statetool.serializers.typeutils.collections import ListSerializer, MapSerializer
from statetool.snapshot.uid_search import uids_in
from statetool.types.declared import NOTHING_DECLARED
from tests.support.compile import compile_java, files_of, jar_bytes
from tests.support.connectors.committers import committer
from tests.support.connectors.written import written_states
from tests.support.corpora.archives import HERE, unpack
from tests.support.corpora.golden import generated
from tests.support.flink.beam_job import KEEPER as BEAM_KEEPER
from tests.support.flink.built_job import PACKED as BUILT_JOBS
from tests.support.flink.delta_job import PACKED as DELTA_JOINS
from tests.support.flink.library_job import PACKED as LIBRARIES
from tests.support.flink.protobuf_job import declared
from tests.support.flink.tree_job import PACKED as TREES
from tests.support.snapshots.entries import entries_of

_JAVA_MAGIC: Final = b"\xac\xed\x00\x05"
_OPTIONS: Final[dict[str, Any]] = {"nanos": "always", "decimals": "string"}
#: Archives of savepoints with serializers of other libraries, and the operator that has them.
_LIBRARIES: Final = {
    "beam": BEAM_KEEPER,
    "flinkx": "keeper",
    "fluss": "keeper",
    "libraries": "keeper",
    "nussknacker": "keeper",
    "protobufs": "keeper",
}


@dataclass(frozen=True, slots=True)
class Target:
    """A function to fuzz, and its first inputs."""

    run: Callable[[bytes], None]
    seeds: Callable[[], Iterator[bytes]]


def guarded(target: Target, data: bytes) -> bool:
    """Run one input; return whether it was read. Any exception but a ``StatetoolError`` escapes."""
    try:
        target.run(data)
    except StatetoolError:
        return False
    return True


@cache
def corpus() -> Path:
    """Return the unpacked snapshots of DataStream jobs."""
    return unpack(HERE / "corpus" / "public-datastream.tar.xz", Path(mkdtemp(prefix="fuzz-"))) / "public"


def _metadata(data: bytes) -> None:
    parse_metadata(data, file="fuzzed")


def _metadata_seeds() -> Iterator[bytes]:
    with tarfile.open(HERE / "corpus" / "public-datastream.tar.xz") as tar:
        for member in tar:
            if member.name.endswith("/_metadata") and member.size < 1 << 16 and (f := tar.extractfile(member)):
                yield f.read()


def _java(data: bytes) -> None:
    read_java_stream(Cursor(data))


def _java_seeds() -> Iterator[bytes]:
    for raw in _snapshots():
        at = raw.find(_JAVA_MAGIC)
        if at >= 0:
            yield raw[at:]


def _snapshot(data: bytes) -> None:
    snapshot_reader(NOTHING_DECLARED).snapshot(Cursor(data))


def _snapshots() -> Iterator[bytes]:
    yield from sorted({case.snapshot for cases in generated().values() for case in cases if case.snapshot}, key=len)


def _headers(data: bytes) -> None:
    read = read_operator_header if data[:1] == b"o" else read_keyed_header
    read(Cursor(data[1:]), NOTHING_DECLARED)


def _header_seeds() -> Iterator[bytes]:
    for name, kind in (
        ("v2_3_0-hashmap-canonical", "managed keyed"),
        ("v1_13_6-rocksdb-canonical", "managed operator"),
    ):
        for row in statetool.load(str(corpus() / name / "snapshot")).metadata_rows("files"):
            if row.slot == kind and not row.inline:
                with open(row.path, "rb") as f:
                    f.seek(row.start)
                    yield (b"o" if kind == "managed operator" else b"k") + f.read(min(row.size_bytes, 1 << 15))


def _kryo(data: bytes) -> None:
    """The first byte selects the class of the value."""
    if data:
        serializers = _kryo_serializers()
        serializers[data[0] % len(serializers)][0].decode(Cursor(data[1:]))


@cache
def _kryo_serializers() -> list[tuple[Any, bytes]]:
    found = []
    for name, cases in sorted(generated().items()):
        for case in cases[-1:]:
            if b"Kryo" in (case.snapshot or b"") and case.data:
                try:
                    found.append((snapshot_reader(NOTHING_DECLARED).snapshot(Cursor(case.snapshot or b"")), case.data))
                except StatetoolError:  # an unsupported version
                    continue
    assert len(found) > 10, name
    return found[:256]


def _kryo_seeds() -> Iterator[bytes]:
    for i, (_, data) in enumerate(_kryo_serializers()):
        yield bytes([i]) + data


def _tree(data: bytes) -> None:
    """The first byte selects the state of a JSON tree or of memory."""
    if data:
        values = _trees()
        values[data[0] % len(values)][0].decode(Cursor(data[1:]))


@cache
def _trees() -> list[tuple[Serializer, bytes]]:
    return _values(unpack(TREES, Path(mkdtemp(prefix="fuzz-trees-"))), "keeper")[:256]


def _values(folder: Path, uid: str) -> list[tuple[Serializer, bytes]]:
    """Return the values of an operator, each with its serializer, from all savepoints of a folder that have the operator."""
    found: list[tuple[Serializer, bytes]] = []
    for savepoint in sorted(p.parent for p in folder.glob("*/_metadata")):
        try:
            inventory = statetool.load(str(savepoint), uids=[uid], declarations=declared())[uid].inventory
        except UnknownNameError:  # a savepoint of another job
            continue
        ((header, _), *_) = inventory.keyed_states.values()
        values = {m.name: m.serializers["VALUE_SERIALIZER"] for m in header.states if m.backend_type == 0}
        for _, state, _, raw in entries_of(inventory):
            serializer = values.get(state)
            if isinstance(serializer, MapSerializer):
                # A byte before each value of a map tells whether it is null.
                found.append((serializer.children()[-1][1], raw[1:]))
            elif isinstance(serializer, ListSerializer):
                # Elements of a list are separated by a byte: the first one is read.
                found.append((serializer.children()[0][1], raw))
            elif serializer is not None:
                found.append((serializer, raw))
    return found


def _tree_seeds() -> Iterator[bytes]:
    for i, (_, raw) in enumerate(_trees()):
        yield bytes([i]) + raw


def _library(data: bytes) -> None:
    """The first two bytes select the serializer of a value."""
    values = _library_values()
    values[int.from_bytes(data[:2], "big") % len(values)][0].decode(Cursor(data[2:]))


@cache
def _library_values() -> list[tuple[Serializer, bytes]]:
    """Return the longest value of each serializer of other libraries than Flink."""
    longest: dict[tuple[str, int], tuple[Serializer, bytes]] = {}
    for name, uid in _LIBRARIES.items():
        folder = unpack(HERE / "corpus" / f"{name}.tar.xz", Path(mkdtemp(prefix=f"fuzz-{name}-")))
        for serializer, raw in _values(folder, uid):
            key = (name, id(serializer))
            if key not in longest or len(raw) > len(longest[key][1]):
                longest[key] = (serializer, raw)
    return list(longest.values())


def _library_seeds() -> Iterator[bytes]:
    for i, (_, raw) in enumerate(_library_values()):
        yield i.to_bytes(2, "big") + raw


def _library_snapshots() -> Iterator[bytes]:
    """Yield the snapshots of these serializers."""
    found = set()
    for serializer, _ in _library_values():
        out = Output()
        serializer.write_snapshot(out)
        found.add(bytes(out))
    yield from sorted(found, key=len)


def _connector(data: bytes) -> None:
    """The first two bytes select the connector's reader and the version."""
    states = _connector_states()
    states[int.from_bytes(data[:2], "big") % len(states)][0](data[2:])


@cache
def _connector_states() -> list[tuple[Callable[[bytes], Any], bytes]]:
    """Return the readers of connectors, each with bytes that it reads."""
    found: list[tuple[Callable[[bytes], Any], bytes]] = []
    for state in written_states():
        found += [(read, state["data"]) for read in _readers(state["role"], state["connector"], state["version"])]
    committed = next(s["data"] for s in written_states() if s["role"] == "committable")
    found.append((read_collector, committer(committed)[8:]))
    for archive, case, read in (
        (LIBRARIES, "rabbitmq", read_messages),
        (BUILT_JOBS, "pubsub", read_acknowledge_ids),
    ):
        folder = unpack(archive, Path(mkdtemp(prefix=f"fuzz-{case}-"))) / case
        for operator in statetool.load(str(folder)).operators.values():
            source = source_of(operator.inventory)
            held = () if source is None else source.state.held
            found += [(read, h.data[h.data.index(_JAVA_MAGIC) :]) for h in held]
    return found


def _readers(role: str, connector: str, version: int) -> Iterator[Callable[[bytes], Any]]:
    """Yield the readers of a state of a role in a version."""

    def versioned(read: Callable[[int, Cursor], Any]) -> Callable[[bytes], Any]:
        return lambda data: read_version(data, version, read, "a state")

    match role:
        case "split":
            yield versioned(registry.split_connector(connector).read_split)
        case "enumerator":
            yield versioned(registry.split_connector(connector).read_enumerator)
        case "writer" | "committable":
            for sink in registry.sink_connectors():
                if sink.name in connector.split(" or "):
                    yield versioned(sink.read_writer if role == "writer" else sink.read_committable)
        case "global":
            for sink in registry.sink_connectors():
                if sink.name == connector:
                    yield versioned(sink.split_global)
        case "commit":
            yield versioned(read_paimon_committable)
        case "transaction":
            yield read_transactions
        case "element":
            yield read_offset
        case "schemas":
            yield read_schemas


def _connector_seeds() -> Iterator[bytes]:
    for i, (_, raw) in enumerate(_connector_states()):
        yield i.to_bytes(2, "big") + raw


def _table(data: bytes) -> None:
    try:
        table = SortedTable(Stream(file="fuzzed", start=0, size_bytes=len(data), inline=data))
        read_runs([(table, np.arange(len(table.blocks.offset)))])
    except UnsupportedManifestError:  # only RocksDB itself reads it
        pass


def _table_seeds() -> Iterator[bytes]:
    for file in sorted((corpus() / "v2_3_0-rocksdb-incremental").rglob("*")):
        if file.is_file() and 500 < file.stat().st_size < 1 << 14 and b"rocksdb.block.based" in file.read_bytes():
            yield file.read_bytes()


class _InPlace:
    """A snapshot with one file to fuzz; every table of the operators that use it is read."""

    def __init__(self, case: str, slot: str) -> None:
        self._case, self._slot = case, slot

    @cache  # noqa: B019  # one for the whole run
    def _place(self) -> tuple[str, str, Path, bytes]:
        folder = corpus() / self._case / "snapshot"
        path = str(next(folder.rglob("_metadata")).parent)
        rows = statetool.load(path).metadata_rows("files")
        files = [r for r in rows if r.slot == self._slot and not r.inline]
        row = min(files, key=lambda r: (Path(r.path).stat().st_size, r.path))
        return path, row.operator, Path(row.path), Path(row.path).read_bytes()

    def run(self, data: bytes) -> None:
        path, name, file, _ = self._place()
        file.write_bytes(data)
        operator = statetool.load(path)[name]
        for table in operator.tables:
            for _ in operator.batches(table, **_OPTIONS):
                pass

    def seeds(self) -> Iterator[bytes]:
        yield self._place()[3]


_STREAM: Final = _InPlace("v2_3_0-hashmap-canonical", "managed keyed")
_HEAP: Final = _InPlace("v2_3_0-hashmap-native", "managed keyed")
_ELEMENTS: Final = _InPlace("v2_3_0-hashmap-canonical", "managed operator")
_LOG: Final = _InPlace("v2_3_0-changelog-hashmap", "managed keyed")


def _waiting(data: bytes) -> None:
    """The metadata of a savepoint of a delta join, which holds the rows that wait."""
    savepoint, _ = _delta_join()
    (savepoint / "_metadata").write_bytes(data)
    for operator in statetool.load(str(savepoint), columns_from_plan=str(savepoint / "plan.json")).operators.values():
        if "waiting" in operator.tables:
            for _ in operator.batches("waiting", **_OPTIONS):
                pass


@cache
def _delta_join() -> tuple[Path, tuple[bytes, ...]]:
    """Return a savepoint to change, and the metadata of two: in the canonical format, and in the heap's."""
    folder = unpack(DELTA_JOINS, Path(mkdtemp(prefix="fuzz-delta-join-")))
    return folder / "2.1.3", tuple((folder / release / "_metadata").read_bytes() for release in ("2.1.3", "2.2.1"))


def _class(data: bytes) -> None:
    """A class file and everything that is read from it."""
    file = _class_folder() / "A.class"
    file.write_bytes(data)
    _read_classes(file)


def _jar(data: bytes) -> None:
    """A jar, the jars in it, everything that is read from their classes, and uids."""
    file = _class_folder() / "a.jar"
    file.write_bytes(data)
    _read_classes(file)
    uids_in(str(file), ["0" * 32])


def _read_classes(file: Path) -> None:
    """Read declarations by both versions of Kryo, formulas of ``hashCode()``, ``serialVersionUID``, and registrations."""
    path = ClassPath([file])
    for name in path:
        cls = path.read(name)
        assert cls is not None
        find_convention(path, cls)
        serializable_class(path, cls)
    for kryo in (2, 5):
        declare_classes(path, kryo=kryo)


@cache
def _class_folder() -> Path:
    return Path(mkdtemp(prefix="fuzz-class-"))


@cache
def _class_files() -> dict[str, bytes]:
    sources = [
        *(HERE / "java" / "classes" / "java").rglob("*.java"),
        *(HERE / "support" / "flink" / "jarred" / "jarred").rglob("*.java"),
    ]
    return files_of(compile_java(sources, Path(mkdtemp(prefix="fuzz-classes-"))))


@cache
def _message_files() -> dict[str, bytes]:
    """Classes that the compilers of Protobuf and Thrift generated."""
    folder = Path(mkdtemp(prefix="fuzz-messages-"))
    classes = unpack(HERE / "support" / "flink" / "pairs.tar.xz", folder) / "classes" / "new"
    names = ("proto2/Default", "proto2/Outer", "thrift/EnumRequired", "thrift/EnumRequiredKind")
    return {f"messagepairs/{n}.class": (classes / "messagepairs" / f"{n}.class").read_bytes() for n in names}


def _class_seeds() -> Iterator[bytes]:
    yield from _class_files().values()
    yield from _message_files().values()


def _jar_seeds() -> Iterator[bytes]:
    """Jars with one class, with a jar that has it, with several releases of it, and with messages."""
    yield jar_bytes(_message_files(), method=zipfile.ZIP_STORED)
    for name, data in list(_class_files().items())[::9]:
        inner = jar_bytes({name: data})
        for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            yield jar_bytes({name: data}, method=method)
            yield jar_bytes({"BOOT-INF/lib/b.jar": inner, "uids.txt": b"count"}, method=method)
            yield jar_bytes(
                {"META-INF/MANIFEST.MF": b"Multi-Release: true", f"META-INF/versions/9/{name}": data}, method=method
            )


TARGETS: Final[Mapping[str, Target]] = {
    "metadata": Target(_metadata, _metadata_seeds),
    "java": Target(_java, _java_seeds),
    "snapshots": Target(_snapshot, _snapshots),
    "headers": Target(_headers, _header_seeds),
    "kryo": Target(_kryo, _kryo_seeds),
    "trees": Target(_tree, _tree_seeds),
    "libraries": Target(_library, _library_seeds),
    "library-snapshots": Target(_snapshot, _library_snapshots),
    "connectors": Target(_connector, _connector_seeds),
    "tables": Target(_table, _table_seeds),
    "streams": Target(_STREAM.run, _STREAM.seeds),
    "heap": Target(_HEAP.run, _HEAP.seeds),
    "elements": Target(_ELEMENTS.run, _ELEMENTS.seeds),
    "logs": Target(_LOG.run, _LOG.seeds),
    "waiting": Target(_waiting, lambda: iter(_delta_join()[1])),
    "classes": Target(_class, _class_seeds),
    "jars": Target(_jar, _jar_seeds),
}
