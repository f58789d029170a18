"""Changes to existing savepoints: operators and states replaced, removed, renamed; everything else byte for byte."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import statetool as st
from statetool.errors import OptionError, UnknownNameError, UnsupportedError
from statetool.types.options import ShowingOptions
from tests.support.values.tables import accounts
from tests.support.zoo import ZOO

EXACT: ShowingOptions = {"ttl": "raw", "nanos": "always", "decimals": "string"}


@pytest.fixture
def base(tmp_path: Path) -> st.Savepoint:
    money = st.bootstrap_keyed_state(accounts(), key="id", timers=pa.table({"id": [1, 2], "timestamp": [5, 6]}))
    lists = [
        st.bootstrap_list_state("offsets", pa.table({"value": [5, 6, 7, 8]})),
        st.bootstrap_broadcast_state("rules", pa.table({"key": ["x", "y"], "value": [1, 2]})),
    ]
    big = st.bootstrap_keyed_state(pa.table({"id": range(4000), "v": range(4000)}), key="id")
    writer = st.SavepointWriter.new().with_operator("accounts", money, *lists, parallelism=3)
    writer = writer.with_operator("big", big, parallelism=2).with_checkpoint_id(42)
    return writer.write(str(tmp_path / "base"), flink_version="2.3")


def content(op: st.Operator) -> dict[str, Any]:
    return {t: sorted(op.to_arrow(t).to_pylist(), key=repr) for t in op.tables}


def entries(op: st.Operator) -> set[tuple[str, bytes, bytes]]:
    """Return name, key and value of all entries, as bytes."""
    found = set()
    for source in op.inventory.keyed.sources():
        header = source.header()
        for batch in source.batches():
            for i in range(len(batch)):
                key = batch.data[batch.key[i] : batch.key_end[i]].tobytes()
                value = batch.data[batch.value[i] : batch.value_end[i]].tobytes()
                found.add((header.states[batch.state[i]].name, key, value))
    return found


def test_unchanged_is_the_same(base: st.Savepoint, tmp_path: Path) -> None:
    copy = st.SavepointWriter.from_existing(base).write(str(tmp_path / "copy"))
    assert (copy.checkpoint_id, copy.metadata_version) == (42, 6)
    for name in base:
        assert content(copy[name]) == content(base[name])
        assert entries(copy[name]) == entries(base[name])
    assert len(list((tmp_path / "copy").iterdir())) == 3


def test_files_can_be_referenced(base: st.Savepoint, tmp_path: Path) -> None:
    copy = st.SavepointWriter.from_existing(base).write(str(tmp_path / "copy"), reference_files=True)
    assert [p.name for p in (tmp_path / "copy").iterdir()] == ["_metadata"]
    assert content(copy["big"]) == content(base["big"])
    assert all(str(tmp_path / "base") in r.path for r in copy.metadata_rows("files") if not r.inline)


def test_one_state_goes_and_the_others_stay_byte_for_byte(base: st.Savepoint, tmp_path: Path) -> None:
    changed = st.SavepointWriter.from_existing(base).remove_state("accounts", "name").write(str(tmp_path / "new"))
    before, after = entries(base["accounts"]), entries(changed["accounts"])
    assert after == {e for e in before if e[0] != "name"}
    assert "name" not in changed["accounts"].states
    assert content(changed["accounts"])["timers"] == content(base["accounts"])["timers"]
    assert content(changed["accounts"])["rules"] == content(base["accounts"])["rules"]


def test_states_are_renamed(base: st.Savepoint, tmp_path: Path) -> None:
    writer = st.SavepointWriter.from_existing(base).rename_state("accounts", "count", "total")
    changed = writer.rename_state("accounts", "offsets", "positions").write(str(tmp_path / "new"))
    renamed = {("total" if name == "count" else name, k, v) for name, k, v in entries(base["accounts"])}
    assert entries(changed["accounts"]) == renamed
    assert content(changed["accounts"])["positions"] == content(base["accounts"])["offsets"]
    with pytest.raises(OptionError, match="would have two states 'name'"):
        st.SavepointWriter.from_existing(base).rename_state("accounts", "count", "name").write(str(tmp_path / "x"))


def test_values_are_edited_and_the_rest_stays(base: st.Savepoint, tmp_path: Path) -> None:
    op = base["accounts"]
    table = op.to_arrow(states=["count"])
    table = table.set_column(1, "count", pc.multiply(table["count"], 2))
    changed = (
        st.SavepointWriter.from_existing(base)
        .with_operator("accounts", st.bootstrap_keyed_state(table, like=op))
        .write(str(tmp_path / "new"))
    )
    before, after = content(op), content(changed["accounts"])
    assert {r["key"]: r["value"] for r in after["count"]} == {r["key"]: 2 * r["value"] for r in before["count"]}
    assert {t: rows for t, rows in after.items() if t not in ("count", "keyed_state")} == {
        t: rows for t, rows in before.items() if t not in ("count", "keyed_state")
    }
    same = {e for e in entries(op) if e[0] != "count"}
    assert {e for e in entries(changed["accounts"]) if e[0] != "count"} == same


def test_operators_and_states_are_added_and_removed(base: st.Savepoint, tmp_path: Path) -> None:
    more = st.bootstrap_keyed_state(pa.table({"id": [1, 99], "extra": ["e", "f"]}), key="id")
    elements = st.bootstrap_list_state("more", pa.table({"value": ["m"]}))
    new = st.bootstrap_keyed_state(pa.table({"k": ["z"], "v": [1]}), key="k")
    changed = (
        st.SavepointWriter.from_existing(base)
        .with_operator("accounts", more, elements)
        .with_operator("fresh", new)
        .remove_operator("big")
        .write(str(tmp_path / "new"))
    )
    assert list(changed) == ["accounts", "fresh"]
    after = content(changed["accounts"])
    assert [r["value"] for r in after["extra"]] == ["e", "f"]
    assert after["more"] == [{"value": "m"}]
    assert after["offsets"] == content(base["accounts"])["offsets"]
    assert after["rules"] == content(base["accounts"])["rules"]
    assert entries(base["accounts"]) <= entries(changed["accounts"])


def test_uids_are_swapped_while_state_changes(base: st.Savepoint, tmp_path: Path) -> None:
    writer = st.SavepointWriter.from_existing(base).change_uid("accounts", "big").change_uid("big", "accounts")
    changed = writer.remove_state("accounts", "name").write(str(tmp_path / "new"))
    assert content(changed["accounts"]) == content(base["big"])
    assert "count" in changed["big"].states
    assert "name" not in changed["big"].states


def test_an_operator_is_replaced_as_a_whole(base: st.Savepoint, tmp_path: Path) -> None:
    new = st.bootstrap_keyed_state(pa.table({"k": ["z"], "v": [1]}), key="k")
    writer = st.SavepointWriter.from_existing(base).remove_operator("big").with_operator("big", new, max_parallelism=64)
    changed = writer.write(str(tmp_path / "new"))
    assert content(changed["big"])["keyed_state"] == [{"key": "z", "v": 1}]
    assert changed["big"].max_parallelism == 64


def test_what_cannot_be_is_refused(base: st.Savepoint, tmp_path: Path) -> None:
    writer = st.SavepointWriter.from_existing(base)
    other = st.bootstrap_keyed_state(pa.table({"k": ["z"], "v": [1]}), key="k")
    target = str(tmp_path / "new")
    with pytest.raises(OptionError, match="keys of type Long and of type String"):
        writer.with_operator("accounts", other).write(target)
    with pytest.raises(OptionError, match=r"has max parallelism 128, not 64.*rescale"):
        writer.with_operator("accounts", other, max_parallelism=64).write(target)
    with pytest.raises(UnknownNameError, match="no operator 'nothing'"):
        writer.remove_operator("nothing").write(target)
    with pytest.raises(UnknownNameError, match=r"no state 'nam'.*did you mean name"):
        writer.remove_state("accounts", "nam").write(target)
    with pytest.raises(OptionError, match="gets its id"):
        writer.change_uid("big", "fresh").with_operator("fresh", other).write(target)
    assert not (tmp_path / "new").exists()


def test_a_slip_in_a_uid_adds_no_operator(base: st.Savepoint, tmp_path: Path) -> None:
    writer = st.SavepointWriter.from_existing(base)
    change = st.bootstrap_keyed_state(base["accounts"].to_arrow(), like=base["accounts"])
    other = st.bootstrap_keyed_state(pa.table({"k": ["z"], "v": [1]}), key="k")
    again = st.load(base.path)["accounts"]
    target = str(tmp_path / "new")
    for uid, bootstrap in (
        ("acconuts", change),
        ("Accounts", other),
        ("totals", change),
        ("totals", st.bootstrap_keyed_state(again.to_arrow(), like=again)),
        ("totals", st.bootstrap_list_state("offsets", pa.table({"value": [1]}), like=base["accounts"])),
    ):
        message = f"no operator has the uid '{uid}', but there is 'accounts'.*did you mean accounts.*with_operator\\('{uid}', ..., new=True"
        with pytest.raises(UnknownNameError, match=message):
            writer.with_operator(uid, bootstrap).write(target)
    unnamed = st.SavepointWriter.from_existing(base).write(str(tmp_path / "unnamed"), flink_version="1.13")
    named = st.SavepointWriter.from_existing(st.load(unnamed.path, uids=["accounts"]))
    with pytest.raises(UnknownNameError, match="did you mean accounts"):
        named.with_operator("acconuts", other).write(target)
    assert not (tmp_path / "new").exists()
    with pytest.raises(OptionError, match="operator 'accounts' already exists"):
        writer.with_operator("accounts", change, new=True).write(target)
    sp = writer.with_operator("acconuts", change, new=True).with_operator("totals", other).write(target)
    assert content(sp["acconuts"])["keyed_state"] == content(base["accounts"])["keyed_state"]
    replaced = writer.remove_operator("accounts").with_operator("accounts", change).write(str(tmp_path / "replaced"))
    assert sorted(replaced) == sorted(base)


def test_flinks_own_savepoint_comes_back_through_tables(tmp_path: Path) -> None:
    """Every table of the bundled savepoint is read, written with ``like=`` its operator, and read again."""
    sp = st.load(ZOO)
    copy = st.SavepointWriter.from_existing(sp).write(str(tmp_path / "copy"))
    for name in sp:
        op = sp[name]
        assert entries(copy[name]) == entries(op)
        if "keyed_state" not in op.tables:
            continue
        table = op.to_arrow(key_group=True, **EXACT)
        again = st.bootstrap_keyed_state(table, like=op, key_group="key_group")
        target = str(tmp_path / f"edited-{len(list(tmp_path.iterdir()))}")
        edited = st.SavepointWriter.from_existing(sp).with_operator(name, again).write(target)
        assert entries(edited[name]) == entries(op)


def test_releases_that_cannot_read_it_are_refused(base: st.Savepoint, tmp_path: Path) -> None:
    old = st.SavepointWriter.from_existing(base).write(str(tmp_path / "old"), flink_version="1.13")
    assert old.metadata_version == 3
    assert content(old["accounts"]) == content(base["accounts"])
    with pytest.raises((OptionError, UnsupportedError)):
        st.SavepointWriter.from_existing(base).write(str(tmp_path / "x"), flink_version="0.9")


def test_keys_that_hash_in_user_code(corpus: Path, tmp_path: Path) -> None:
    """Keys of a savepoint written by Flink go to the key groups that Flink assigned, by a formula inferred from them."""
    sp = st.load(str(corpus / "v2_3_0-rocksdb-canonical" / "snapshot"))
    op = sp["by-pojo"]
    table = op.to_arrow(**EXACT)
    changed = st.SavepointWriter.from_existing(sp).with_operator(op.name, st.bootstrap_keyed_state(table, like=op))
    assert entries(changed.write(str(tmp_path / "new"))[op.name]) == entries(op)
    key_type = op.inventory.keyed_states[next(iter(op.states))][0].key
    alone = st.bootstrap_keyed_state(table, key_type=key_type)
    with pytest.raises(OptionError, match=r"is computed by user code.*hashes="):
        st.SavepointWriter.new().with_operator("op", alone).write(str(tmp_path / "x"))
