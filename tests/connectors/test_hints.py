"""Bytes of connectors: what shows a table names the command that reads them."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

import statetool as st
from statetool.cli.main import cli

CASES = (
    ("v1_20_5-flink-kafka-consumer", "topic-partition-offset-states", "flink-kafka-consumer", "sources show"),
    ("v1_20_5-file-sink-row", "writer_raw_states", "file-sink", "sinks pending"),
    ("v1_20_5-hybrid-first", "SourceReaderState", "hybrid", "sources show"),
)


@pytest.mark.parametrize(("case", "state", "connector", "command"), CASES)
def test_the_command_for_a_connector_is_named(
    case: str, state: str, connector: str, command: str, connector_cases: Path
) -> None:
    snapshot = str(connector_cases / case / "snapshot")
    (operator,) = [o for o in st.load(snapshot).operators.values() if state in o.tables]
    done = CliRunner().invoke(cli, ["head", snapshot, operator.operator_id, state])
    assert done.exit_code == 0, done.output
    assert f"statetool {command} SNAPSHOT --uid {operator.name}" in done.stderr
    assert connector in done.stderr
    assert "declare" not in done.stderr
    assert command in operator.head(table=state)._repr_html_()
    words = command.split()
    shown = CliRunner().invoke(cli, [*words, snapshot, "--uid", operator.name])
    assert shown.exit_code == 0, shown.output
