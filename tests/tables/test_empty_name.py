"""A state with an empty name, which Flink allows, is a state like others."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

import statetool as st
from statetool.cli.main import cli
from statetool.errors import UnknownNameError


@pytest.fixture(scope="module")
def nameless(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A savepoint whose operator ``timers`` has one state, of integers, with an empty name."""
    target = str(tmp_path_factory.mktemp("nameless") / "savepoint")
    st.rename_states(str(corpus / "v2_3_0-hashmap-canonical" / "snapshot"), target, "timers", {"registered": ""})
    return target


def run(*arguments: str) -> str:
    done = CliRunner().invoke(cli, arguments)
    assert done.exit_code == 0, done.output
    return done.stdout


def test_python_reads_it(nameless: str) -> None:
    operator = st.load(nameless)["timers"]
    assert "" in operator.tables
    assert operator.to_arrow("").num_rows == operator.count("") == 14
    assert operator.to_arrow("keyed_state", states=[""]).num_rows == 14
    assert st.query(nameless, "SELECT count(*) AS n FROM timers_").read_all().to_pylist() == [{"n": 14}]
    with pytest.raises(UnknownNameError, match=r"no state 'x'.*there is '',"):
        operator.to_arrow("x")
    with pytest.raises(UnknownNameError, match="no state ''"):
        st.load(nameless)["orders"].to_arrow("")


def test_commands_read_it(nameless: str) -> None:
    assert "timer-0" in run("head", nameless, "timers", "")
    assert "timer-0" in run("head", nameless, "timers", "--states", '[""]')
    assert "value INT" in run("schema", nameless, "timers", "")
    assert run("count", nameless, "timers", "").split()[-1] == "14"


def test_values_are_set(nameless: str, tmp_path: Path) -> None:
    run("set", nameless, str(tmp_path / "new"), "--uid", "timers", "--key", "timer-3", "--set", "=9")
    values = {row["key"]: row["value"] for row in st.load(str(tmp_path / "new"))["timers"].to_arrow("").to_pylist()}
    assert values["timer-3"] == 9
