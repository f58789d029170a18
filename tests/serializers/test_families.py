"""The families of the DataStream API compared with bytes of Flink 1.15 to 2.3."""

from tests.support.checks.contract import FramedContract, SerializerContract


class TestPrimitives(SerializerContract):
    names = ("boolean", "byte", "short", "int", "long", "float", "double", "char", "string", "bigint", "bigdec")


class TestValues(SerializerContract):
    names = (
        "boolean-value", "byte-value", "short-value", "int-value", "long-value", "float-value", "double-value",
        "char-value", "string-value", "copyable-value",
    )  # fmt: skip


class TestTimes(SerializerContract):
    names = (
        "date", "sql-date", "sql-time", "sql-timestamp", "instant", "local-date", "local-time", "local-date-time",
    )  # fmt: skip


class TestNothing(SerializerContract):
    names = ("void", "null-value", "null-serializer", "void-namespace", "global-window", "table-global-window")


class TestArrays(SerializerContract):
    names = (
        "array-boolean", "array-byte", "array-short", "array-int", "array-long", "array-float", "array-double",
        "array-char", "array-string", "array-generic-int", "array-generic-nested",
    )  # fmt: skip


class TestCollections(SerializerContract):
    names = (
        "list-int", "list-string", "list-list-long", "array-list", "list-view", "map-string-long", "map-nested",
        "map-enum-row", "null-aware-map", "map-view", "set-int", "set-string",
    )  # fmt: skip


class TestTuplesAndRows(SerializerContract):
    names = ("tuple0", "tuple1", "tuple2", "tuple5-nested", "row", "row-named", "row-no-kind", "row-wide")


class TestPojos(SerializerContract):
    names = (
        "pojo-address", "pojo-subclass-mixed", "pojo-subclass-registered", "pojo-subclass-unregistered",
        "record", "record-nested",
    )  # fmt: skip


class TestEnumsAndChoices(SerializerContract):
    names = ("enum", "enum-with-bodies", "either", "nullable-padded-long", "nullable-unpadded-long",
             "nullable-int-array")  # fmt: skip


class TestRuntime(SerializerContract):
    names = (
        "time-window", "table-time-window", "table-count-window", "timer", "timer-void", "ttl-string", "ttl-list",
        "ttl-map", "ttl-aware-list", "ttl-aware-on", "ttl-aware-off",
    )  # fmt: skip


class TestJava(SerializerContract):
    names = ("java-serializer",)


class TestUserFormats(FramedContract):
    names = ("value",)
