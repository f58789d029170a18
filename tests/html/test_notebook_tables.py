"""Tables of sources, sinks and metadata in notebooks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from IPython.core.interactiveshell import InteractiveShell

import statetool


@pytest.fixture
def shell() -> Iterator[Any]:
    yield InteractiveShell.instance()
    InteractiveShell.clear_instance()


def test_tables_of_sources_sinks_and_states_are_html(shell: Any, connector_cases: Path) -> None:
    def html(value: Any) -> str | None:
        data: dict[str, str] = shell.display_formatter.format(value)[0]
        return data.get("text/html")

    source = statetool.load(str(connector_cases / "v1_20_5-kafka-source" / "snapshot"))
    sink = statetool.load(str(connector_cases / "v1_20_5-kafka-sink" / "snapshot"))
    sources = source.sources()
    (operator, *_) = (o for o in source.operators.values() if o.inventory.operator_states)
    shown = {"kafka-source": sources, "payments.eu-1": operator.source_splits(), "committer": sink.sinks()}
    for text, table in {**shown, "SourceReaderState": source.states()}.items():
        assert isinstance(table, pa.Table)
        found = html(table)
        assert found is not None
        assert "<table" in found
        assert text in found
    assert html(sources.slice(0, 0)) is not None  # a selection is still one of ours
    assert html(pa.table({"a": [1]})) is None


def test_tables_are_plain_outside_of_notebooks(connector_cases: Path) -> None:
    table = statetool.load(str(connector_cases / "v1_20_5-kafka-source" / "snapshot")).sources()
    assert isinstance(table, pa.Table)
    assert not table.schema.metadata
