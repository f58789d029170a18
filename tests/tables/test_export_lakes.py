"""Exports to Delta and Iceberg without Spark: tables of the same rows, each in one commit."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import statetool
from statetool.demo import SAVEPOINT
from statetool.errors import DecodeError, OptionError, TargetExistsError
from statetool.tables import scan as scans
from tests.support.zoo import ZOO

pytestmark = [pytest.mark.full, pytest.mark.usefixtures("lake_libraries")]
PAGE = Path(__file__).parents[2] / "docs" / "operations" / "clusters.md"

#: Operators whose keyed state has nested values, timestamps and maps.
OPERATORS = ("timers", "with-ttl", "collections-by-string", "by-tuple")


def operator(name: str) -> Any:
    return statetool.load(ZOO)[name]


def rows_of(table: pa.Table) -> list[str]:
    """Return rows in a form that does not depend on their order, or on the width of offsets."""
    return sorted(map(repr, table.to_pylist()))


class Lake:
    """Tests shared by both formats."""

    style: str

    def table(self, folder: Path, name: str) -> str:
        raise NotImplementedError

    def read(self, target: str) -> pa.Table:
        raise NotImplementedError

    @pytest.mark.parametrize("name", OPERATORS)
    def test_the_table_has_the_rows_of_the_state(self, lake: Path, name: str) -> None:
        target, table = self.table(lake, name), operator(name).to_arrow()
        assert operator(name).export(target, style=self.style) == table.num_rows
        assert rows_of(self.read(target)) == rows_of(table)
        with pytest.raises(TargetExistsError, match="already exists"):
            operator(name).export(target, style=self.style)

    def test_checkpoints_are_added_once(self, lake: Path) -> None:
        target, table = self.table(lake, "all"), operator("timers").to_arrow()
        for checkpoint in (7, 8):
            rows = operator("timers").export(target, style=self.style, append_as=checkpoint, by_key_group=True)
            assert rows == table.num_rows
        with pytest.raises(TargetExistsError, match="already has rows of checkpoint 8"):
            operator("timers").export(target, style=self.style, append_as=8, by_key_group=True)
        found = self.read(target)
        assert sorted(found["checkpoint_id"].to_pylist()) == [7] * table.num_rows + [8] * table.num_rows
        assert rows_of(found.select(table.schema.names)) == sorted(rows_of(table) * 2)

    def test_an_error_leaves_no_rows_and_names_the_place(self, lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        target = self.table(lake, "failed")

        def failing(*_: Any, **__: Any) -> Any:
            raise DecodeError("damaged")
            yield

        with monkeypatch.context() as patch:
            patch.setattr(scans, "read_split", failing)
            with pytest.raises(DecodeError, match="damaged"):
                operator("timers").export(target, style=self.style)
        assert operator("timers").export(target, style=self.style) == 14


class TestDelta(Lake):
    style = "delta"

    @pytest.fixture
    def lake(self, tmp_path: Path) -> Path:
        return tmp_path

    def table(self, folder: Path, name: str) -> str:
        return str(folder / name)

    def read(self, target: str) -> pa.Table:
        from deltalake import DeltaTable

        return DeltaTable(target).to_pyarrow_table()

    def test_a_directory_with_files_is_not_changed(self, lake: Path) -> None:
        (lake / "full").mkdir()
        (lake / "full" / "mine").touch()
        with pytest.raises(TargetExistsError):
            operator("timers").export(str(lake / "full"), style="delta")
        assert [p.name for p in (lake / "full").iterdir()] == ["mine"]


class TestIceberg(Lake):
    style = "iceberg"

    @pytest.fixture
    def lake(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        monkeypatch.setenv("PYICEBERG_CATALOG__LAKE__URI", f"sqlite:///{tmp_path}/catalog.db")
        monkeypatch.setenv("PYICEBERG_CATALOG__LAKE__WAREHOUSE", f"file://{tmp_path}/warehouse")
        monkeypatch.setattr("pyiceberg.catalog._ENV_CONFIG", __import__("pyiceberg.utils.config").utils.config.Config())
        return tmp_path

    def table(self, folder: Path, name: str) -> str:
        return f"lake.state.{name.replace('-', '_')}"

    def read(self, target: str) -> pa.Table:
        from pyiceberg.catalog import load_catalog

        return load_catalog("lake").load_table(target.partition(".")[2]).scan().to_arrow()

    def test_the_lines_of_the_guide_write_tables(self, tmp_path: Path) -> None:
        text = PAGE.read_text().partition("### Write to Delta and Iceberg without Spark")[2].partition("\n## ")[0]
        lines = [line for line in text.splitlines() if line.startswith(("export ", "statetool export "))]
        assert len(lines) == 3
        script = "\n".join(["set -e", *lines]).replace("statetool/demo/savepoint", SAVEPOINT)
        subprocess.run(
            ["bash", "-c", script],
            cwd=tmp_path,
            check=True,
            env={**os.environ, "PATH": str(Path(sys.executable).parent) + os.pathsep + os.environ["PATH"]},
        )
        assert {p.name for p in tmp_path.iterdir()} == {"delta-table", "catalog.db", "warehouse"}

    def test_a_name_without_a_catalog_is_an_error(self) -> None:
        with pytest.raises(OptionError, match=r"CATALOG\.NAMESPACE\.TABLE"):
            operator("timers").export("orders", style="iceberg")
