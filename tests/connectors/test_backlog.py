"""Sources with a backlog, inferred from their state, from offsets, and from the user's settings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner

import statetool
from statetool.cli.main import cli
from statetool.connectors.backlog import BacklogRow, BacklogRules, backlog_rows, source_rows
from statetool.connectors.sources import source_of
from statetool.errors import OptionError


def inferred(path: Path, rules: BacklogRules | None = None) -> dict[str, tuple[bool | None, str]]:
    sp = statetool.load(str(path / "snapshot"))
    rows = source_rows([o.inventory for o in sp.operators.values()], rules or BacklogRules())
    return {r.connector: (r.backlog, r.backlog_inferred_from) for r in rows}


def test_phases_tell(connector_cases: Path) -> None:
    wanted = {
        "hybrid-first": (True, "it reads its source 0, and others follow"),
        "hybrid-second": (None, ""),
        "mysql-cdc-snapshot": (True, "it reads the snapshot"),
        "mysql-cdc-binlog": (False, "it reads the binlog"),
        "incremental-cdc-snapshot": (True, "it reads the snapshot"),
        "incremental-cdc-stream": (False, "it reads the stream"),
        "number-sequence": (None, ""),
    }
    for case, expected in wanted.items():
        for release in ("v1_20_5", "v2_3_0"):
            (backlog,) = inferred(connector_cases / f"{release}-{case}").values()
            assert backlog == expected, case


def test_the_index_of_the_last_source_tells_of_hybrid_ones(connector_cases: Path) -> None:
    case = connector_cases / "v2_3_0-hybrid-second"
    assert inferred(case, BacklogRules(last_source=1))["hybrid-source"][0] is False
    assert inferred(case, BacklogRules(last_source=2))["hybrid-source"] == (
        True,
        "it reads its source 1, the last is 2",
    )
    # The first source to be read has a backlog, whatever the user says.
    assert inferred(connector_cases / "v2_3_0-hybrid-first", BacklogRules(last_source=0))["hybrid-source"][0] is True


def test_positions_tell_with_a_threshold(connector_cases: Path) -> None:
    sp = statetool.load(str(connector_cases / "v2_3_0-kafka-source" / "snapshot"))
    rows = [r for r in sp.connector_rows("source_splits") if r.position is not None]
    ends = {r.split_id: int(r.position) + 10 for r in rows}
    table = sp.sources(ends=ends, behind=9).to_pylist()
    assert table[0]["backlog"] is True
    assert table[0]["backlog_inferred_from"].startswith(f"{len(ends)} of ")
    # Splits without an offset do not imply that there is no backlog.
    assert sp.sources(ends=ends, behind=10).to_pylist()[0]["backlog"] is None
    as_table = pa.table({"split": list(ends), "position": list(ends.values())})
    assert sp.sources(ends=as_table, behind=9).to_pylist() == table
    assert sp.sources(ends={"other:0": 5}, behind=1).to_pylist()[0]["backlog"] is None
    # All of these have an offset, and none has a backlog.
    numbers = statetool.load(str(connector_cases / "v2_3_0-number-sequence" / "snapshot"))
    splits = {r.split_id: int(r.position) + 1 for r in numbers.connector_rows("source_splits")}
    assert numbers.sources(ends=splits, behind=1).to_pylist()[0]["backlog"] is False


def test_rules_that_make_no_sense() -> None:
    senseless: list[dict[str, Any]] = [{"ends": {}}, {"behind": 3}, {"ends": {}, "behind": -1}, {"last_source": -1}]
    for rules in senseless:
        with pytest.raises(OptionError):
            BacklogRules(**rules)


def test_info_and_the_list_show_it(connector_cases: Path, tmp_path: Path) -> None:
    path = str(connector_cases / "v2_3_0-hybrid-second" / "snapshot")
    first = str(connector_cases / "v2_3_0-hybrid-first" / "snapshot")
    run = CliRunner().invoke
    assert "it reads its source 0, and others follow" in run(cli, ["info", first]).stdout
    assert "backlog" not in run(cli, ["info", path]).stdout
    backlog = json.loads(run(cli, ["info", first, "--json"]).stdout)["backlog"]
    assert [(r["operator"], r["backlog"]) for r in backlog] == [("hybrid", True)]
    rows = json.loads(run(cli, ["sources", "list", path, "--last-source", "4", "--json"]).stdout)
    assert [(r["operator"], r["backlog"]) for r in rows] == [("hybrid", True)]
    (tmp_path / "ends.csv").write_text("split,position\n1,100000\n")
    rows = json.loads(
        run(cli, ["sources", "list", path, "--ends", str(tmp_path / "ends.csv"), "--behind", "5", "--json"]).stdout
    )
    assert rows[0]["backlog_inferred_from"].startswith("1 of 2 splits is more than 5 behind")
    assert run(cli, ["sources", "list", path, "--behind", "5"]).exit_code == 2


def test_a_source_that_cannot_be_read_does_not_hide_the_others(connector_cases: Path, tmp_path: Path) -> None:
    path = connector_cases / "v2_3_0-hybrid-first" / "snapshot" / "_metadata"
    source = source_of(statetool.load(str(path))["hybrid"].inventory)
    assert source is not None
    raw, split = path.read_bytes(), source.state.held[0].data
    at = raw.index(split)
    # The length of the split.
    (tmp_path / "_metadata").write_bytes(raw[: at - 4] + b"\x7f\xff\xff\xff" + raw[at:])
    sp = statetool.load(str(tmp_path))
    (row,) = backlog_rows(o.inventory for o in sp.operators.values())
    assert isinstance(row, BacklogRow)
    assert (row.operator, row.backlog) == ("hybrid", None)
    assert row.backlog_inferred_from.startswith("not known: ")
