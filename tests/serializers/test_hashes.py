"""Hash codes without a golden case; the expected values are computed by Java's rules."""

import pytest

from statetool.errors import UnsupportedError
from statetool.io.cursor import Cursor
from statetool.serializers.table import snapshot_reader
from tests.support.snapshots import build

_ARRAY = "org.apache.flink.api.common.typeutils.base.array."


def _hash(snapshot: bytes, value: object) -> int:
    return snapshot_reader().snapshot(Cursor(snapshot)).hash_code(value)


def test_row_looks_into_arrays_lists_and_maps() -> None:
    ints = build.simple("IntPrimitiveArray", _ARRAY)
    raw = build.simple("BytePrimitiveArray", _ARRAY)
    texts = build.simple("StringArray", _ARRAY)
    assert _hash(build.row_of(build.INT), (5, "+I")) == 31 + (31 + 5)
    assert _hash(build.row_of(build.INT), (5, "-D")) == 31 * 3 + 31 + (31 + 5)
    assert _hash(build.row_of(ints), ([1, 2], "+I")) == 31 + 31 + (31 * (31 + 1) + 2)
    assert _hash(build.row_of(raw), (b"\x01\xff", "+I")) == 31 + 31 + (31 * (31 + 1) - 1)
    assert _hash(build.row_of(texts), (["a", None], "+I")) == 31 + (31 * (31 + (31 + 97)))
    assert _hash(build.row_of(build.list_of(build.INT)), ([1, 2], "+I")) == 31 + (31 * (31 + 32) + 33)
    pairs = [(1, 7), (2, None)]
    assert _hash(build.row_of(build.map_of(build.INT, build.INT)), (pairs, "+I")) == 31 + 1 + (32 ^ 38) + (33 ^ 0)
    assert _hash(build.row_of(build.nullable(build.list_of(build.INT))), ([1], "+I")) == 31 + (31 + 32)


def test_lists_sets_and_maps_hash_as_java_util_does() -> None:
    assert _hash(build.list_of(build.INT), [1, 2]) == 31 * (31 + 1) + 2
    assert _hash(build.map_of(build.INT, build.INT), [(1, 7), (2, 5)]) == (1 ^ 7) + (2 ^ 5)


def test_scala_numbers_hash_by_their_value() -> None:
    def scala(*parts: bytes) -> bytes:
        outer = b"\0\1C"
        name = "org.apache.flink.api.scala.typeutils.ScalaCaseClassSerializerSnapshot"
        return build.composite(name, 2, outer, *parts)

    double, date = build.simple("Double"), build.simple("LocalDate")
    assert _hash(scala(build.INT), (5,)) == _hash(scala(build.LONG), (5,)) == _hash(scala(double), (5.0,))
    assert _hash(scala(build.LONG), (1 << 40,)) == _hash(scala(double), (float(1 << 40),))
    assert _hash(scala(double), (0.5,)) == _hash(scala(build.simple("Float")), (0.5,))
    assert _hash(scala(double), (0.1,)) != _hash(scala(build.simple("Float")), (0.1,))
    # A date is not a number, although its plain value is one.
    assert _hash(scala(date), (18_321,)) != _hash(scala(build.INT), (18_321,))


@pytest.mark.parametrize(
    "snapshot",
    [build.pojo("P", {"a": build.INT}), build.simple("IntPrimitiveArray", _ARRAY), build.kryo("java.lang.Object")],
)
def test_user_and_identity_hashes_are_refused(snapshot: bytes) -> None:
    with pytest.raises(UnsupportedError, match=r"hashCode\(\)"):
        _hash(snapshot, (1,))


def test_tuple_of_fixed_fields_has_their_length_unless_one_takes_nothing() -> None:
    assert snapshot_reader().snapshot(Cursor(build.tuple_of(build.INT, build.LONG))).length == 12
    assert snapshot_reader().snapshot(Cursor(build.tuple_of(build.INT, build.STRING))).length == -1
    assert snapshot_reader().snapshot(Cursor(build.tuple_of(build.INT, build.NULL_VALUE))).length == -1
