"""States with other names: in a copy of a snapshot, everything else stays."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner

import statetool as st
from statetool.cli.main import cli
from statetool.errors import OptionError, UnknownNameError


@pytest.fixture
def source(tmp_path: Path) -> str:
    table = pa.table({"id": [1, 2], "total": [3, 4], "count": [5, 6]})
    keyed = st.bootstrap_keyed_state(table, key="id", states={"total": st.value("BIGINT"), "count": st.value("BIGINT")})
    listed = st.bootstrap_list_state("offsets", pa.table({"value": [7, 8]}), type="BIGINT")
    writer = st.SavepointWriter.new().with_operator("orders", keyed, listed, parallelism=1, max_parallelism=128)
    writer.write(str(tmp_path / "source"), flink_version="2.3")
    return str(tmp_path / "source")


def columns(path: str) -> dict[str, list[int]]:
    table = st.load(path)["orders"].to_arrow().sort_by("key")
    return {name: table.column(name).to_pylist() for name in table.column_names}


def test_states_swap_their_names(source: str, tmp_path: Path) -> None:
    target = str(tmp_path / "renamed")
    plan = st.rename_states(source, target, "orders", {"total": "count", "count": "total", "offsets": "positions"})
    assert [(r.state, r.new_name, r.kind) for r in plan.renamed] == [
        ("total", "count", "value"),
        ("count", "total", "value"),
        ("offsets", "positions", "list"),
    ]
    assert columns(target) == {"key": [1, 2], "count": [3, 4], "total": [5, 6]}
    assert sorted(st.load(target)["orders"].tables) == sorted(
        {*st.load(source)["orders"].tables} - {"offsets"} | {"positions"}
    )


def test_names_must_exist_and_stay_unique(source: str, tmp_path: Path) -> None:
    target = str(tmp_path / "renamed")
    with pytest.raises(UnknownNameError, match="has no state 'totals'"):
        st.rename_states(source, target, "orders", {"totals": "sum"})
    with pytest.raises(OptionError, match="would have two states 'count'"):
        st.rename_states(source, target, "orders", {"total": "count"})
    with pytest.raises(OptionError, match="nothing to rename"):
        st.rename_states(source, target, "orders", {})
    assert not Path(target).exists()


def test_check_suggests_the_command_for_a_renamed_state(source: str, tmp_path: Path) -> None:
    new = str(tmp_path / "new")
    st.rename_states(source, new, "orders", {"total": "sum"})
    checked = CliRunner().invoke(cli, ["check", source, new])
    assert checked.exit_code == 1
    assert f"statetool state rename {source} NEW --uid orders --state total --to sum" in checked.stdout
    target = str(tmp_path / "renamed")
    arguments = ["state", "rename", source, target, "--uid", "orders", "--state", "total", "--to", "sum"]
    planned = CliRunner().invoke(cli, [*arguments, "--dry-run"])
    assert (planned.exit_code, Path(target).exists()) == (0, False)
    done = CliRunner().invoke(cli, arguments)
    assert done.exit_code == 0, done.output
    assert CliRunner().invoke(cli, ["check", target, new]).exit_code == 0
    lacking = CliRunner().invoke(cli, [*arguments, "--state", "count"])
    assert "each --state needs one --to" in lacking.stderr
