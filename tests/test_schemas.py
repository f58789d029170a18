from __future__ import annotations

import io
import json
from pathlib import Path

import fastavro
import pytest

import statetool
from statetool.api import METADATA_TABLES
from statetool.arrow.metadata import metadata_schema
from statetool.arrow.text_schemas import avro_schema
from statetool.demo import SAVEPOINT

SCHEMAS = Path(__file__).parents[1] / "schemas"


def test_there_is_a_schema_for_each_metadata_table() -> None:
    assert {p.stem for p in SCHEMAS.glob("*.avsc")} == set(METADATA_TABLES)


@pytest.mark.parametrize("table", METADATA_TABLES)
def test_what_the_tool_emits_fits_its_schema(table: str) -> None:
    schema = json.loads((SCHEMAS / f"{table}.avsc").read_text())
    assert schema == avro_schema(metadata_schema(table), name=table)
    rows = statetool.load(SAVEPOINT).to_arrow(table).to_pylist()
    assert rows
    buffer = io.BytesIO()
    fastavro.writer(buffer, fastavro.parse_schema(schema), rows, strict=True)
    buffer.seek(0)
    assert list(fastavro.reader(buffer)) == rows
