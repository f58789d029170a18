from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import statetool
from statetool.entries import stream_reader
from statetool.errors import DecodeError, FormatError, OptionError, UnknownNameError
from statetool.formats.metadata import parse_metadata, write_metadata
from statetool.formats.metadata.handles import ByteStreamHandle, KeyGroupsHandle
from statetool.io.files import BYTES_READ
from statetool.tables.read import read_split
from statetool.tables.request import ScanRequest
from statetool.tables.scan import scan_table
from statetool.tables.splits import KeyedSplit
from statetool.types.options import ShowingOptions
from tests.support.snapshots.stored import groups_of, streams

CASE = "v2_3_0-rocksdb-canonical"


@pytest.fixture(scope="module")
def savepoint(corpus: Path) -> statetool.Savepoint:
    return statetool.load(str(corpus / CASE / "snapshot"))


def rows(table: pa.Table, *by: str) -> list[str]:
    return sorted(map(repr, table.to_pylist()))


def test_unselected_states_are_not_decoded(savepoint: statetool.Savepoint) -> None:
    op = savepoint["scalars-by-long"]
    table = op.to_arrow(states=["int", "string"])  # others need options
    assert table.column_names == ["key", "int", "string"]
    with pytest.raises(DecodeError, match="below the microsecond") as caught:
        op.to_arrow(states=["instant"], nanos="error")
    assert caught.value.where.state == "instant"
    assert "nanos='always'" in str(caught.value)


def test_nanos_companion_truncate(savepoint: statetool.Savepoint) -> None:
    op = savepoint["scalars-by-long"]
    with_nanos = op.to_arrow(states=["instant"])
    assert with_nanos.equals(op.to_arrow(states=["instant"], nanos="companion"))
    assert with_nanos.column_names == ["key", "instant", "instant_nanos"]
    truncated = op.to_arrow(states=["instant"], nanos="truncate")
    assert truncated["instant"].equals(with_nanos["instant"])
    assert max(n for n in with_nanos["instant_nanos"].to_pylist() if n is not None) > 0


def test_big_numbers_that_do_not_fit_name_the_option(savepoint: statetool.Savepoint) -> None:
    op = savepoint["scalars-by-long"]
    with pytest.raises(DecodeError, match="decimals='string'"):
        op.to_arrow(states=["bigint"])
    texts = op.to_arrow(states=["bigint"], decimals="string")["bigint"].to_pylist()
    assert any(len(t.lstrip("-")) > 38 for t in texts if t)


@pytest.mark.parametrize("split_bytes", [1, 300, 1 << 26])
def test_splits_are_cut_at_key_groups_and_lose_nothing(savepoint: statetool.Savepoint, split_bytes: int) -> None:
    op = savepoint["collections-by-string"]
    whole = op.to_arrow(decimals="string")
    scan = op.scan("keyed_state", decimals="string", split_bytes=split_bytes)
    parts = pa.Table.from_batches([b for s in scan.splits for b in read_split(s)], schema=scan.schema)
    assert rows(parts) == rows(whole)
    groups = groups_of(scan.splits)
    assert len(groups) == len(set(groups))
    if split_bytes == 1:
        assert len(scan.splits) == len(groups) > 3


@pytest.mark.parametrize("case", [CASE, "v2_3_0-hashmap-canonical", "v2_3_0-hashmap-canonical-compressed"])
@pytest.mark.parametrize("operator", ["collections-by-string", "with-ttl", "win-session-list", "by-tuple"])
def test_key_groups_beyond_the_memory_limit_give_the_same_rows(corpus: Path, case: str, operator: str) -> None:
    savepoint = statetool.load(str(corpus / case / "snapshot"))
    if operator not in savepoint:
        operator = "with-ttl"
    op = savepoint[operator]
    for table in op.tables:
        whole = op.to_arrow(table, decimals="string")
        assert rows(op.to_arrow(table, decimals="string", memory_bytes=64)) == rows(whole)


@pytest.mark.parametrize(("backend", "way"), [("rocksdb", "merge_by_key"), ("hashmap", "partition_by_key_hash")])
def test_sorted_key_groups_are_merged_others_spilled(
    corpus: Path, monkeypatch: pytest.MonkeyPatch, backend: str, way: str
) -> None:
    ways: list[str] = []

    def noted(name: str) -> Any:
        action = getattr(stream_reader, name)

        def run(*arguments: Any, **options: Any) -> Any:
            result = action(*arguments, **options)
            ways.extend([name] if result is not None else [])
            return result

        return run

    for name in ("merge_by_key", "partition_by_key_hash"):
        monkeypatch.setattr(stream_reader, name, noted(name))
    op = statetool.load(str(corpus / f"v2_3_0-{backend}-canonical" / "snapshot"))["collections-by-string"]
    op.to_arrow(decimals="string", memory_bytes=64)
    assert way in ways
    assert backend == "hashmap" or set(ways) == {"merge_by_key"}


def test_a_key_filter_reads_the_key_groups_of_its_keys_only(savepoint: statetool.Savepoint) -> None:
    op = savepoint["scalars-by-long"]
    arguments: ShowingOptions = {"nanos": "companion", "decimals": "string"}
    op.states  # noqa: B018 - headers are read and cached
    BYTES_READ.total = 0
    everything = op.to_arrow(**arguments)
    all_bytes, BYTES_READ.total = BYTES_READ.total, 0
    wanted = everything["key"].to_pylist()[0]
    one = op.to_arrow(keys=[wanted], **arguments)
    assert one.to_pylist() == [r for r in everything.to_pylist() if r["key"] == wanted]
    assert BYTES_READ.total < all_bytes / 4 + streams(op._operator)[0].header_size
    (split,) = op.scan("keyed_state", keys=[wanted], **arguments).splits
    assert isinstance(split, KeyedSplit)
    assert len(split.source.group_sizes()) == 1


def test_a_key_that_is_not_there_gives_no_row(savepoint: statetool.Savepoint) -> None:
    assert savepoint["orders"].to_arrow(states=["addresses"], keys=["nobody"]).num_rows == 0
    assert savepoint["by-tuple"].to_arrow(keys=[("", 0), ("x", 9)]).num_rows == 1
    assert savepoint["timers"].to_arrow("timers", keys=["timer-0"]).num_rows == 11


def test_a_key_of_another_type_is_an_error(savepoint: statetool.Savepoint) -> None:
    with pytest.raises(statetool.StatetoolError, match="the key 'text' is a string, but the keys are of type Long"):
        savepoint["scalars-by-long"].to_arrow(states=["int"], keys=["text"])


def test_unknown_names_list_the_near_ones(savepoint: statetool.Savepoint) -> None:
    with pytest.raises(UnknownNameError, match="orders"):
        savepoint["order"]
    with pytest.raises(UnknownNameError, match="addresses"):
        savepoint["orders"].to_arrow("adresses")
    with pytest.raises(OptionError, match="no option"):
        savepoint["orders"].to_arrow(nanoz="error")  # type: ignore[call-arg]
    with pytest.raises(OptionError, match="namespace"):
        savepoint["win-session-list"].to_arrow(states=["window-contents"])


def test_ttl_raw_and_hide_expired(savepoint: statetool.Savepoint) -> None:
    op = savepoint["with-ttl"]
    shown = op.to_arrow()
    raw = op.to_arrow(ttl="raw")
    assert raw.schema.field("ttl-value").type.field(0).name == "last_access"
    assert sorted(map(repr, shown["ttl-value"].to_pylist())) == sorted(
        repr(v["value"]) for v in raw["ttl-value"].to_pylist()
    )
    times = [v["last_access"].timestamp() * 1000 for v in raw["ttl-value"].to_pylist()]
    long_ago = int(max(times)) + 1_000_000
    hidden = op.to_arrow(ttl="hide_expired", ttl_ms=1000, now_ms=long_ago)
    assert hidden["ttl-value"].null_count == hidden.num_rows
    assert all(v == [] for v in hidden["ttl-list"].to_pylist())
    assert all(v == [] for v in hidden["ttl-map"].to_pylist())
    assert hidden["plain"].equals(shown["plain"])
    kept = op.to_arrow(ttl="hide_expired", ttl_ms=10_000_000, now_ms=int(max(times)))
    assert rows(kept) == rows(shown)
    with pytest.raises(OptionError, match="ttl_ms"):
        op.to_arrow(ttl="hide_expired")


def test_long_form_of_ttl_hides_expired_elements(savepoint: statetool.Savepoint) -> None:
    op = savepoint["with-ttl"]
    assert op.to_arrow("ttl-list").num_rows > 0
    assert op.to_arrow("ttl-list", ttl="hide_expired", ttl_ms=1, now_ms=1 << 50).num_rows == 0
    assert op.to_arrow("ttl-map", ttl="hide_expired", ttl_ms=1, now_ms=1 << 50).num_rows == 0


def test_union_state_by_subtask(savepoint: statetool.Savepoint) -> None:
    op = savepoint["op-lists"]
    table = op.to_arrow("offsets", subtask=True)
    assert set(table["subtask"].to_pylist()) <= set(range(op.parallelism))
    assert len(set(table["subtask"].to_pylist())) > 1


def test_broadcast_state_is_one_copy_unless_asked(savepoint: statetool.Savepoint) -> None:
    op = savepoint["broadcast-rules"]
    once = op.to_arrow("rules")
    copies = op.to_arrow("rules", subtask=True)
    assert copies.num_rows == once.num_rows * op.parallelism


def test_an_undescribed_subclass_is_an_error_or_kept_as_bytes(corpus: Path) -> None:
    op = statetool.load(str(corpus / "v2_3_0-hashmap-canonical" / "snapshot"))["orders"]
    with pytest.raises(FormatError, match=r"Cat.*subclass") as caught:
        op.to_arrow(states=["pet"])
    assert caught.value.where.offset is not None
    assert caught.value.where.key_group is not None
    kept = op.to_arrow(states=["pet"], on_error="keep_raw")
    raw = [dict(v)["pet"] for v in kept["_undecoded"].to_pylist() if v]
    assert raw
    assert all(b"Cat" in r for r in raw)


def test_a_moved_checkpoint_finds_its_files(corpus: Path, tmp_path: Path) -> None:
    source = corpus / "v2_3_0-rocksdb-incremental" / "snapshot"
    shutil.copytree(source, tmp_path / "moved")
    metadata = max((tmp_path / "moved").rglob("_metadata"), key=lambda p: int(p.parent.name.removeprefix("chk-")))
    savepoint = statetool.load(str(metadata))
    files = savepoint.metadata_rows("files")
    assert any("/shared/" in f.path for f in files)
    assert all(f.inline or Path(f.path).exists() for f in files)


def test_batches_are_bounded(savepoint: statetool.Savepoint) -> None:
    op = savepoint["timers"]
    scan = scan_table(op._operator, ScanRequest.of("timers"))
    batches = list(scan.batches())
    assert sum(b.num_rows for b in batches) == 150
    assert all(b.num_rows <= 65_536 for b in batches)


def test_old_snapshots_get_names(corpus: Path) -> None:
    savepoint = statetool.load(str(corpus / "v1_17_2-rocksdb-canonical" / "snapshot"))
    assert "orders" not in savepoint
    named = savepoint.with_uids(["orders", "timers"])
    assert named["orders"].uid == "orders"
    assert savepoint["orders"].operator_id == named["orders"].operator_id
    with pytest.raises(UnknownNameError, match="'no-such-uid'"):
        savepoint.with_uids(["no-such-uid"])


def with_other_bytes(corpus: Path, target: Path, old: bytes, new: bytes) -> statetool.Savepoint:
    """Return the case with other bytes of the same length in the inline state of subtask 1 of `timers`."""
    source = parse_metadata((corpus / CASE / "snapshot" / "_metadata").read_bytes())
    operators = []
    for operator in source.operators:
        if operator.uid == "timers":
            subtasks = []
            for subtask in operator.subtasks:
                handle = subtask.managed_keyed
                if subtask.index == 1 and isinstance(handle, KeyGroupsHandle):
                    assert isinstance(handle.stream, ByteStreamHandle)
                    assert old in handle.stream.data
                    data = handle.stream.data.replace(old, new)
                    handle = replace(handle, stream=replace(handle.stream, data=data))
                subtasks.append(replace(subtask, managed_keyed=handle))
            operator = replace(operator, subtasks=tuple(subtasks))
        operators.append(operator)
    target.mkdir(exist_ok=True)
    (target / "_metadata").write_bytes(write_metadata(replace(source, operators=tuple(operators))))
    return statetool.load(str(target))


def test_a_state_that_one_subtask_lacks_is_null_there(corpus: Path, tmp_path: Path) -> None:
    op = with_other_bytes(corpus, tmp_path / "a", b"registered", b"registerex")["timers"]
    table = op.to_arrow()
    assert {"registered", "registerex"} <= set(table.column_names)
    assert table.num_rows == 14
    assert table["registered"].null_count + table["registerex"].null_count == 14


def test_another_type_in_one_subtask_is_refused(savepoint: statetool.Savepoint) -> None:
    (split, *_) = savepoint["timers"].scan("keyed_state").splits
    other = pa.schema([("key", pa.string()), ("registered", pa.int64())]).serialize().to_pybytes()
    with pytest.raises(FormatError, match=r"registered.*int32.*int64"):
        list(read_split(replace(split, spec=replace(split.spec, schema=other))))
