"""Differences between values that cannot be decoded, and nulls."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import statetool as st
from statetool import flink
from statetool.demo import NEXT_DAY, SAVEPOINT
from tests.support.values.differences import difference_rows


@pytest.mark.parametrize("name", ["s", "x.map_key"])
def test_values_that_cannot_be_decoded_are_compared_whatever_their_state_is_called(tmp_path: Path, name: str) -> None:
    """Their bytes are not taken for those of a map's keys, so their difference is reported."""

    def written(number: int, kind: str) -> st.Savepoint:
        far = pa.array([(1 << 62) + number], pa.timestamp("ms"))  # after the maximum of any table
        keyed = {
            "value": far,
            "map": pa.MapArray.from_arrays([0, 1], pa.array(["a"]), far),
            "keys": pa.MapArray.from_arrays([0, 1], far, pa.array(["a"])),
            "list": pa.ListArray.from_arrays([0, 1], far),
        }
        if kind in keyed:
            state: Any = st.bootstrap_keyed_state(pa.table({"key": [1], name: keyed[kind]}))
        else:
            state = st.bootstrap_list_state(name, pa.table({"value": far}))
        writer = st.SavepointWriter.new().with_operator("op", state, parallelism=1)
        return writer.write(str(tmp_path / f"{kind}-{number}"), flink_version="2.3")

    for kind in ("value", "map", "keys", "list", "elements"):
        (counts,) = written(0, kind).diff(written(1, kind)).summary()
        differences = counts.changed + counts.added
        assert (kind, differences) == (kind, 1)


def test_null_is_no_text(tmp_path: Path) -> None:
    def written(*values: str | None) -> st.Savepoint:
        elements = st.bootstrap_list_state("s", pa.table({"value": values}), type=flink.nullable("STRING"))
        writer = st.SavepointWriter.new().with_operator("op", elements, parallelism=1)
        return writer.write(f"{tmp_path}/{len(list(tmp_path.iterdir()))}", flink_version="2.3")

    assert written(None, "").diff(written("", None)).equal
    for text in ("", "\0null"):
        assert difference_rows(written(None).diff(written(text))) == [
            {"state": "s", "change": "added", "after": text},
            {"state": "s", "change": "removed"},
        ]


def test_dates_inside_values_are_text_like_dates() -> None:
    (row,) = difference_rows(st.load(SAVEPOINT).diff(NEXT_DAY, states=["customer"]))
    assert row["after"] == '{"city": "Athens", "email": "mia@example.com", "since": "2026-03-03"}'
