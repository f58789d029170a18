"""The families of the table runtime compared with bytes of Flink 1.15 to 2.3."""

from tests.support.checks.contract import SerializerContract


class TestRowData(SerializerContract):
    names = (
        "rowdata-simple", "rowdata-all-primitives", "rowdata-key-long", "rowdata-key-string-int", "rowdata-nested", "rowdata-raw",
        "rowdata-64-fields", "rowdata-variant-bitmap",
    )  # fmt: skip


class TestArraysAndMaps(SerializerContract):
    names = (
        "array-data-boolean", "array-data-decimal", "array-data-double", "array-data-integer",
        "array-data-timestamp_without_time_zone", "array-data-tinyint", "array-data-varchar", "map-data",
    )  # fmt: skip


class TestNumbersAndTimes(SerializerContract):
    names = (
        "decimal-big",
        "decimal-compact",
        "timestamp-0",
        "timestamp-3",
        "timestamp-4",
        "timestamp-9",
        "string-data",
    )


class TestExternalAndRaw(SerializerContract):
    names = ("external-array", "external-row", "raw-value", "variant", "bitmap")


class TestOthers(SerializerContract):
    names = (
        "linked-list", "linked-list-nomask", "sorted-map", "window-key", "meta-sqn-info", "row-sqn-info", "sqn-node", "sorted-long",
        "list-of-rowdata",
    )  # fmt: skip


class TestStreamAndJoins(SerializerContract):
    names = ("stream-element", "union", "buffer-entry")


class TestComplexEvents(SerializerContract):
    names = ("cep-dewey", "cep-edge", "cep-event-id", "cep-lockable", "cep-nfa-state", "cep-node", "cep-node-id")
