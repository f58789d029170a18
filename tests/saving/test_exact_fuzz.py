"""Rows of every type are read back equal, or refused; no value changes."""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import statetool as st
from statetool.columns.infer import infer_type
from statetool.errors import EncodeError
from tests.support.values.exact_rows import column, identity, is_bad, kind_of, value_of


class Drawn:
    """A table of random types and rows, each state once."""

    def __init__(self, seed: int, n: int) -> None:
        r = random.Random(seed)
        kinds = (pa.string(), pa.map_(pa.float64(), pa.string()), kind_of(r), kind_of(r), kind_of(r))
        self.kinds = {f"s{i}": kind for i, kind in enumerate(kinds)}
        self.values = {
            name: [None if r.random() < 0.05 else value_of(r, kind) for _ in range(n)]
            for name, kind in self.kinds.items()
        }
        columns = {name: column(kind, self.values[name]) for name, kind in self.kinds.items()}
        self.table = pa.table({"k": pa.array(range(n), pa.int64()), **columns})
        #: Keys of the rows that must be refused.
        self.bad = {k for name, kind in self.kinds.items() for k in range(n) if is_bad(self.values[name][k], kind)}

    def write(self, data: Any, target: Path) -> dict[int, dict[str, Any]]:
        """Write the rows of a table or DataFrame; return the rows read back, by key."""
        states = {name: st.value(infer_type(kind)) for name, kind in self.kinds.items()}
        bootstrap = st.bootstrap_keyed_state(data, key="k", states=states)
        writer = st.SavepointWriter.new(max_parallelism=8).with_operator("op", bootstrap, parallelism=2)
        read = writer.write(str(target), flink_version="2.3")["op"].to_arrow(nanos="error")
        return {row.pop("key"): row for row in read.to_pylist()}

    def differences(self, rows: dict[int, dict[str, Any]]) -> list[tuple[int, str]]:
        """Return the key and state of each value that changed."""
        return [
            (k, name)
            for k in range(len(self.table))
            for name, kind in self.kinds.items()
            if k not in self.bad
            and _drawn_identity(self.values[name][k], kind) != identity(rows[k][name] if k in rows else None)
        ]


def _drawn_identity(value: Any, kind: pa.DataType) -> Any:
    if value is None:
        return None
    if pa.types.is_string(kind):
        return value.decode()
    if pa.types.is_list(kind):
        return tuple(_drawn_identity(v, kind.value_type) for v in value)
    if pa.types.is_map(kind):
        return tuple((_drawn_identity(k, kind.key_type), _drawn_identity(v, kind.item_type)) for k, v in value)
    if pa.types.is_struct(kind):
        return tuple((f"f{i}", _drawn_identity(value[f.name], f.type)) for i, f in enumerate(kind))
    return identity(value)


def refused_or_equal(drawn: Drawn, tmp_path: Path, load: Any = lambda table: table) -> int:
    """Write a table, and again without the rows that must be refused; return the number of these."""
    if drawn.bad:
        with pytest.raises(EncodeError, match=r"not valid UTF-8|the same key twice") as caught:
            drawn.write(load(drawn.table), tmp_path / "bad")
        told = re.search(r"of the row with key (\d+)", str(caught.value))
        assert told, caught.value
        assert int(told[1]) in drawn.bad
        assert not (tmp_path / "bad").exists()
    good = [k for k in range(len(drawn.table)) if k not in drawn.bad]
    assert drawn.differences(drawn.write(load(drawn.table.take(good)), tmp_path / "good")) == []
    return len(drawn.bad)


def test_rows_from_arrow(tmp_path: Path) -> None:
    assert sum(refused_or_equal(Drawn(seed, 40), tmp_path / str(seed)) for seed in range(6)) > 5


@pytest.mark.full
def test_many_rows_from_arrow(tmp_path: Path) -> None:
    assert sum(refused_or_equal(Drawn(seed, 1000), tmp_path / str(seed)) for seed in range(100, 160)) > 1000


@pytest.mark.full
def test_many_rows_from_spark(tmp_path: Path, spark: Any) -> None:
    def load(table: pa.Table) -> Any:
        file = tmp_path / f"{len(list(tmp_path.glob('*.parquet')))}.parquet"
        pq.write_table(table, file)
        return spark.read.parquet(str(file))

    assert sum(refused_or_equal(Drawn(seed, 10_000), tmp_path / str(seed), load) for seed in range(200, 204)) > 1000
