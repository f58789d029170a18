"""Every function that writes a snapshot, with sources for it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

import pyarrow as pa
import pytest

import statetool as st
from statetool.saving.composition import Composition
from tests.support.zoo import ZOO

_DEMO: Final = Path(ZOO).parent
Verb = Callable[[str, Path, bool], object]
_WIDER: Final = ["op.v.value"]


def _new_savepoint(target: str, over: bool) -> object:
    table = pa.table({"id": range(50), "v": range(50)})
    writer = st.SavepointWriter.new().with_operator("op", st.bootstrap_keyed_state(table, key="id"), parallelism=2)
    return writer.write(target, take_over=over, inline_bytes=0)


def _edited_savepoint(target: str, over: bool) -> object:
    return (
        st.SavepointWriter.from_existing(st.load(ZOO))
        .change_uid("timers", "t")
        .write(target, take_over=over, inline_bytes=0)
    )


def _transformed_savepoint(target: str, over: bool) -> object:
    writer = st.SavepointWriter.from_existing(st.load(ZOO)).transform("timers", lambda table: table)
    return writer.write(target, take_over=over, inline_bytes=0)


def _new_savepoint_of_forst(target: str, over: bool) -> object:
    """Write databases, and timers beside them."""
    table = pa.table({"id": range(50), "v": range(50)})
    timers = pa.table({"id": range(50), "timestamp": range(50)})
    state = st.bootstrap_keyed_state(table, key="id", timers=timers)
    writer = st.SavepointWriter.new(max_parallelism=8).with_operator("op", state, parallelism=1)
    return writer.write(target, take_over=over, flink_version="2.3", format="native", backend="forst", inline_bytes=0)


#: Functions by name; they write to a target, from the sources in a folder, and may take over the target.
VERBS: Final[dict[str, Verb]] = {
    "copy": lambda target, folder, over: st.copy(str(folder / "files"), target, threads=1, take_over=over),
    "rescale": lambda target, folder, over: st.rescale(str(folder / "files"), target, 64, take_over=over),
    "convert": lambda target, folder, over: st.convert(str(folder / "files"), target, take_over=over),
    "uid": lambda target, folder, over: st.change_uids(
        str(folder / "files"), target, {"op": "renamed"}, take_over=over
    ),
    "erase": lambda target, folder, over: st.erase(ZOO, target, ["timer-3"], take_over=over),
    "keep": lambda target, folder, over: st.keep(ZOO, target, ["timer-3"], operators=["timers"], take_over=over),
    "sample": lambda target, folder, over: st.sample(str(folder / "files"), target, keys=5, take_over=over),
    "purge": lambda target, folder, over: st.purge(
        ZOO, target, {"ttl-list": 1}, now_ms=1_900_000_000_000, take_over=over
    ),
    "set_values": lambda target, folder, over: st.set_values(ZOO, target, "with-ttl", 4, {"plain": 1}, take_over=over),
    "drop": lambda target, folder, over: st.drop(ZOO, target, ["timers"], take_over=over),
    "rename": lambda target, folder, over: st.rename_states(
        str(folder / "files"), target, "op", {"v": "w"}, take_over=over
    ),
    "graft": lambda target, folder, over: st.graft(
        str(folder / "files"), str(folder / "other"), target, ["added"], take_over=over
    ),
    "merge": lambda target, folder, over: st.merge(
        str(folder / "files"), str(folder / "other"), target, take_over=over
    ),
    "move_state": lambda target, folder, over: st.move_state(
        ZOO, target, "collections-by-string", "timers", ["total"], take_over=over
    ),
    "migrate": lambda target, folder, over: st.migrate(
        str(folder / "files"), target, to=str(folder / "wider"), accept=_WIDER, take_over=over
    ),
    "catch_up": lambda target, folder, over: st.catch_up(
        str(folder / "migrated"),
        str(folder / "files"),
        str(folder / "later"),
        target,
        to=str(folder / "wider"),
        accept=_WIDER,
        take_over=over,
    ),
    "upgrade": lambda target, folder, over: st.upgrade(
        str(folder / "files"), target, to=str(folder / "wider"), accept=_WIDER, take_over=over
    ),
    "bootstrap": lambda target, folder, over: _new_savepoint(target, over),
    "edit": lambda target, folder, over: _edited_savepoint(target, over),
    "transform": lambda target, folder, over: _transformed_savepoint(target, over),
    "edit_source": lambda target, folder, over: st.edit_source(
        str(_DEMO / "kafka-source"), target, "orders", to="latest", take_over=over
    ),
    "to_kafka_source": lambda target, folder, over: st.to_kafka_source(
        str(folder / "consumer"), target, "kafka", take_over=over
    ),
    "drop_transactions": lambda target, folder, over: st.drop_transactions(
        str(_DEMO / "kafka-sink"), target, "514dc31230726fb6b190b5bf50bbec8f", ["orders-out-0-1"], take_over=over
    ),
    "to_rocksdb": lambda target, folder, over: st.rescale(
        str(folder / "files"), target, 64, parallelism=1, format="native", backend="rocksdb", take_over=over
    ),
    "to_forst": lambda target, folder, over: _new_savepoint_of_forst(target, over),
    "to_heap": lambda target, folder, over: st.sample(
        str(folder / "files"), target, keys=5, format="native", backend="heap", take_over=over
    ),
    # Databases of which most files are carried.
    "erase_in_rocksdb": lambda target, folder, over: st.erase(str(folder / "rocksdb"), target, [4], take_over=over),
    "set_in_forst": lambda target, folder, over: st.set_values(
        str(folder / "forst"), target, "op", 4, {"v": 1}, take_over=over
    ),
}


def split(target: str, folder: Path, over: bool) -> object:
    """Write two savepoints, the second beside the target."""
    return st.split(str(folder / "two"), target, f"{target}-second", ["added"], take_over=over)


def write_sources(folder: Path, legacy: Path) -> None:
    """Write the sources of all functions, with state in files.

    Parameters
    ----------
    legacy
        A snapshot with Kafka's old consumer.
    """
    table = pa.table({"id": range(50), "v": range(50)})
    for name, uid, kind, checkpoint_id in (
        ("files", "op", "BIGINT", 0),
        ("wider", "op", "DOUBLE", 0),
        ("later", "op", "BIGINT", 1),
        ("other", "added", "BIGINT", 0),
    ):
        state = st.bootstrap_keyed_state(table, key="id", states={"v": st.value(kind)})
        number = 90 if name == "other" else None
        writer = st.SavepointWriter.new(checkpoint_id=checkpoint_id)
        writer = writer.with_operator(uid, state, parallelism=2, max_parallelism=number)
        writer.write(str(folder / name), inline_bytes=0, flink_version="2.3")
    st.convert(str(folder / "files"), str(folder / "rocksdb"), format="native", backend="rocksdb")
    st.convert(str(folder / "files"), str(folder / "forst"), format="native", backend="forst")
    st.merge(str(folder / "files"), str(folder / "other"), str(folder / "two"))
    st.migrate(str(folder / "files"), str(folder / "migrated"), to=str(folder / "wider"), accept=_WIDER)
    rows = st.load(str(legacy)).connector_rows("sources")
    (label,) = (r.operator for r in rows if r.connector == "flink-kafka-consumer")
    st.change_uids(str(legacy), str(folder / "consumer"), {label: "kafka"})


def put_state_into_files(patch: pytest.MonkeyPatch) -> None:
    """Store small state in files too."""
    defaults = Composition.__init__.__kwdefaults__
    assert defaults is not None
    patch.setitem(defaults, "inline_bytes", 0)
