"""Java records, and a class equivalent to a Kotlin data class, written by Flink 1.20.5 and 2.3.0 as POJOs (``kryo/JavaRecords.java``)."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any, Final, Literal

import pytest

from statetool.columns.from_plain import plain_to_arrow
from statetool.io.cursor import Cursor
from statetool.io.output import Output
from statetool.serializers.core.base import Serializer
from statetool.serializers.table import snapshot_reader
from statetool.types.declared import TypeContext
from statetool.types.options import ReadOptions
from tests.support.values.arrow_columns import by_kernels, rows_of

VERSIONS: Final = ("1.20.5", "2.3.0")
#: Values of the job; fields are sorted by name.
VALUES: Final[dict[str, list[Any]]] = {
    "point": [{"x": -2, "y": 1}, {"x": 0, "y": 0}],
    "order": [
        {
            "at": (4, 3), "color": "GREEN", "count": None, "id": 1 << 40, "letter": "é", "name": "Zoë", "paid": True,
            "prices": [0.5],
        },
        {"at": None, "color": None, "count": 7, "id": 0, "letter": "z", "name": None, "paid": False, "prices": None},
    ],
    "person": [{"age": 33, "at": (6, 5), "name": "Ann"}, {"age": 0, "at": None, "name": None}],
    # In 1.20, lists and maps of POJOs are Kryo's, which do not store element types.
    "lists": [{"counts": [("k", 1)], "tags": ["a", "b"]}],
}  # fmt: skip
OF_KRYO: Final = [{"counts": '{"java.util.HashMap":[["k",1]]}', "tags": '["a","b"]'}]


@lru_cache
def lines(version: str) -> dict[tuple[str, str], bytes]:
    path = Path(__file__).parent / "kryo" / f"records-{version}.tsv"
    rows = [line.split("\t") for line in path.read_text("utf-8").splitlines()]
    return {(section, name): bytes.fromhex(raw) for section, name, raw, *_ in rows}


def serializer(version: str, section: str) -> Serializer:
    gen: Literal[2, 5] = 5 if version.startswith("2.") else 2
    raw = lines(version)[section, "snapshot"]
    s = snapshot_reader(TypeContext(kryo=gen)).snapshot(Cursor(raw))
    out = Output()
    s.write_snapshot(out)
    assert bytes(out) == raw
    return s


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("section", VALUES)
def test_records_are_structs_both_ways(version: str, section: str) -> None:
    s = serializer(version, section)
    expected = OF_KRYO if (version, section) == ("1.20.5", "lists") else VALUES[section]
    names = [f.name for f in s.logical.fields]  # type: ignore[attr-defined]
    raws = [raw for (other, name), raw in lines(version).items() if other == section and name != "snapshot"]
    values = []
    for raw in raws:
        c = Cursor(raw)
        values.append(s.decode(c))
        assert c.left == 0
        out = Output()
        s.encode(out, values[-1])
        assert bytes(out) == raw
    assert [dict(zip(names, value, strict=True)) for value in values] == expected
    ends = [sum(map(len, raws[: i + 1])) for i in range(len(raws))]
    array, after = by_kernels(s, b"".join(raws), [0, *ends[:-1]], ends, ReadOptions())
    assert after == ends
    assert rows_of(array) == rows_of(plain_to_arrow(values, s.logical, ReadOptions()))


@pytest.mark.parametrize("version", VERSIONS)
def test_a_record_without_fields_is_left_to_kryo(version: str) -> None:
    s = serializer(version, "empty")
    assert s.needs_frame
    assert 'statetool.declare("JavaRecords$Empty"' in s.missing_declaration_hint
