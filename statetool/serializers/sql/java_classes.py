"""Class descriptors of the objects that the table runtime writes by Java serialization, and their differences between Flink releases.

Names, ``serialVersionUID`` and fields (primitives first, then by name, as ``ObjectStreamClass`` sorts them) are those of Flink 1.13 to 2.3.
All differences between these are in :class:`StreamForm`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from statetool.io.java_streams.reader import JavaClass

LOGICAL: Final = "org.apache.flink.table.types.logical."
RUNTIME: Final = "org.apache.flink.table.runtime.typeutils."
BASE: Final = "org.apache.flink.api.common.typeutils.base."
DATA: Final = "org.apache.flink.table.data."
_SERIALIZABLE: Final = 0x02
_ENUM: Final = 0x12
_WITH_WRITE_METHOD: Final = 0x03


def signature(name: str) -> str:
    """Return Java's signature of a class."""
    return f"L{name.replace('.', '/')};"


def _class(
    name: str, *fields: str, parent: JavaClass | None = None, suid: int = 1, flags: int = _SERIALIZABLE
) -> JavaClass:
    """Make a descriptor. A field is a primitive's code and name (``I length``), or a signature and name."""
    split = [f.split(" ") for f in fields]
    return JavaClass(
        name=name,
        flags=flags,
        fields=tuple((kind[0], field) for kind, field in split),
        parent=parent,
        suid=suid,
        signatures=tuple(kind for kind, _ in split if len(kind) > 1),
    )


_JAVA_ENUM: Final = _class("java.lang.Enum", suid=0, flags=_ENUM)
_STRING: Final = signature("java.lang.String")
_TYPE: Final = signature(LOGICAL + "LogicalType")
_SERIALIZER: Final = signature("org.apache.flink.api.common.typeutils.TypeSerializer")
_LIST: Final = signature("java.util.List")


def enum_class(name: str) -> JavaClass:
    """Return the descriptor of an enum."""
    return _class(name, parent=_JAVA_ENUM, suid=0, flags=_ENUM)


def plain_class(name: str) -> JavaClass:
    """Return the descriptor of a class that is not serializable, as needed for a ``Class`` object.

    Java resolves it by its name, and compares nothing else if the stream marks it as not serializable.
    """
    return _class(name, suid=0, flags=0)


# ---- the JDK ------------------------------------------------------------------------------------

_NUMBER: Final = _class("java.lang.Number", suid=-8742448824652078965)
INTEGER: Final = _class("java.lang.Integer", "I value", parent=_NUMBER, suid=1360826667806852920)
ARRAY_LIST: Final = _class("java.util.ArrayList", "I size", suid=8683452581122892189, flags=_WITH_WRITE_METHOD)
UNMODIFIABLE_LIST: Final = _class(
    "java.util.Collections$UnmodifiableList",
    f"{_LIST} list",
    parent=_class("java.util.Collections$UnmodifiableCollection", "Ljava/util/Collection; c", suid=1820017752578914078),
    suid=-283967356065247728,
)
IMMUTABLE_LIST: Final = _class("java.util.CollSer", "I tag", suid=6309168927139932177, flags=_WITH_WRITE_METHOD)
LAMBDA: Final = _class(
    "java.lang.invoke.SerializedLambda",
    "I implMethodKind",
    "[Ljava/lang/Object; capturedArgs",
    "Ljava/lang/Class; capturingClass",
    *(
        f"{_STRING} {name}"
        for name in (
            "functionalInterfaceClass",
            "functionalInterfaceMethodName",
            "functionalInterfaceMethodSignature",
            "implClass",
            "implMethodName",
            "implMethodSignature",
            "instantiatedMethodType",
        )
    ),
    suid=8025925345765570181,
)
OBJECTS: Final = _class("[Ljava.lang.Object;", suid=-8012369246846506644)

# ---- logical types ------------------------------------------------------------------------------

_LOGICAL_TYPE: Final = _class(
    LOGICAL + "LogicalType", "Z isNullable", f"{signature(LOGICAL + 'LogicalTypeRoot')} typeRoot"
)
TYPE_ROOT: Final = enum_class(LOGICAL + "LogicalTypeRoot")
TIMESTAMP_KIND: Final = enum_class(LOGICAL + "TimestampKind")
YEAR_MONTH: Final = enum_class(LOGICAL + "YearMonthIntervalType$YearMonthResolution")
DAY_TIME: Final = enum_class(LOGICAL + "DayTimeIntervalType$DayTimeResolution")


def logical_type(name: str, *fields: str, suid: int = 1) -> JavaClass:
    """Return the descriptor of a logical type."""
    return _class(LOGICAL + name, *fields, parent=_LOGICAL_TYPE, suid=suid)


PLAIN_TYPES: Final = {
    root: logical_type(f"{name}Type", suid=suid)
    for root, name, suid in (
        ("BOOLEAN", "Boolean", 1), ("TINYINT", "TinyInt", 1), ("SMALLINT", "SmallInt", 1), ("INT", "Int", 1),
        ("BIGINT", "BigInt", 1), ("FLOAT", "Float", 1), ("DOUBLE", "Double", 1), ("DATE", "Date", 1), ("NULL", "Null", 1),
        ("VARIANT", "Variant", -7525210688776332292), ("BITMAP", "Bitmap", 1),
    )
}  # fmt: skip
SIZED_TYPES: Final = {
    root: logical_type(f"{name}Type", "I length")
    for root, name in (("CHAR", "Char"), ("VARCHAR", "VarChar"), ("BINARY", "Binary"), ("VARBINARY", "VarBinary"))
}
DECIMAL_TYPE: Final = logical_type("DecimalType", "I precision", "I scale")
TIME_TYPE: Final = logical_type("TimeType", "I precision")
TIMESTAMP_TYPES: Final = {
    root: logical_type(name, "I precision", f"{signature(TIMESTAMP_KIND.name)} kind")
    for root, name in (("TIMESTAMP", "TimestampType"), ("TIMESTAMP_LTZ", "LocalZonedTimestampType"))
}
YEAR_MONTH_TYPE: Final = logical_type(
    "YearMonthIntervalType", "I yearPrecision", f"{signature(YEAR_MONTH.name)} resolution"
)
DAY_TIME_TYPE: Final = logical_type(
    "DayTimeIntervalType", "I dayPrecision", "I fractionalPrecision", f"{signature(DAY_TIME.name)} resolution"
)
ARRAY_TYPE: Final = logical_type("ArrayType", f"{_TYPE} elementType")
MULTISET_TYPE: Final = logical_type("MultisetType", f"{_TYPE} elementType")
MAP_TYPE: Final = logical_type("MapType", f"{_TYPE} keyType", f"{_TYPE} valueType")
ROW_TYPE: Final = logical_type("RowType", f"{_LIST} fields")
ROW_FIELD: Final = _class(LOGICAL + "RowType$RowField", f"{_STRING} description", f"{_STRING} name", f"{_TYPE} type")
RAW_TYPE: Final = logical_type("RawType", "Ljava/lang/Class; clazz", f"{_SERIALIZER} serializer")
_IDENTIFIER: Final = "org.apache.flink.table.catalog.ObjectIdentifier"
_USER_DEFINED: Final = logical_type(
    "UserDefinedType", "Z isFinal", f"{_STRING} description", f"{signature(_IDENTIFIER)} objectIdentifier"
)
DISTINCT_TYPE: Final = _class(LOGICAL + "DistinctType", f"{_TYPE} sourceType", parent=_USER_DEFINED)
ATTRIBUTE: Final = _class(
    LOGICAL + "StructuredType$StructuredAttribute", f"{_STRING} description", f"{_STRING} name", f"{_TYPE} type"
)

# ---- serializers --------------------------------------------------------------------------------

_TYPE_SERIALIZER: Final = _class("org.apache.flink.api.common.typeutils.TypeSerializer")
_SINGLETON: Final = _class(BASE + "TypeSerializerSingleton", parent=_TYPE_SERIALIZER, suid=8766687317209282373)
_ROW_BASE: Final = _class(
    RUNTIME + "AbstractRowDataSerializer", parent=_class(RUNTIME + "PagedTypeSerializer", parent=_TYPE_SERIALIZER)
)
SINGLETONS: Final = {
    name.rpartition(".")[2]: _class(name, parent=_SINGLETON, suid=suid)
    for name, suid in (
        *(
            (f"{BASE}{n}Serializer", 1)
            for n in ("Boolean", "Byte", "Short", "Int", "Long", "Float", "Double", "String")
        ),
        (f"{BASE}array.BytePrimitiveArraySerializer", 1),
        (f"{RUNTIME}StringDataSerializer", 1),
        (f"{BASE}VariantSerializer", 5163454885762653491),
        (f"{BASE}BitmapSerializer", 7562101549559034581),
        # The serializer of data views inside accumulators.
        ("org.apache.flink.table.dataview.NullSerializer", -5381596724707742625),
    )
}
DECIMAL_DATA: Final = _class(
    RUNTIME + "DecimalDataSerializer", "I precision", "I scale", parent=_TYPE_SERIALIZER
)  # fmt: skip
TIMESTAMP_DATA: Final = _class(RUNTIME + "TimestampDataSerializer", "I precision", parent=_TYPE_SERIALIZER)
RAW_DATA: Final = _class(RUNTIME + "RawValueDataSerializer", f"{_SERIALIZER} serializer", parent=_TYPE_SERIALIZER)
BINARY_ROW_DATA: Final = _class(
    RUNTIME + "BinaryRowDataSerializer", "I fixedLengthPartSize", "I numFields", parent=_ROW_BASE
)
ROW_DATA: Final = _class(
    RUNTIME + "RowDataSerializer",
    f"{signature(BINARY_ROW_DATA.name)} binarySerializer",
    f"[{signature(DATA + 'RowData$FieldGetter')} fieldGetters",
    f"[{_SERIALIZER} fieldSerializers",
    f"[{_TYPE} types",
    parent=_ROW_BASE,
)
_GETTER: Final = signature(DATA + "ArrayData$ElementGetter")
ARRAY_DATA: Final = _class(
    RUNTIME + "ArrayDataSerializer",
    f"{_SERIALIZER} eleSer",
    f"{_TYPE} eleType",
    f"{_GETTER} elementGetter",
    parent=_TYPE_SERIALIZER,
)
SERIALIZERS: Final = _class(f"[{_SERIALIZER.replace('/', '.')}", suid=4143624638847974296)
FIELD_GETTERS: Final = _class(
    f"[{signature(DATA + 'RowData$FieldGetter').replace('/', '.')}", suid=-7646304539732967285
)
TYPES: Final = _class(f"[{_TYPE.replace('/', '.')}", suid=1744097763440828726)

# ---- differences between releases ----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class StreamForm:
    """Form in which a Flink release writes these classes; ``release`` is (major, minor).

    ``MapDataSerializer`` declares no ``serialVersionUID``, and Flink 1.19 changed the value that Java computes for it: neither side can
    read the other's. Since 2.1, getters also check fields for null that cannot be null.
    """

    release: tuple[int, int]

    @property
    def wraps_all_getters(self) -> bool:
        return self.release >= (2, 1)

    @property
    def copies_attributes(self) -> bool:
        """Whether a structured type stores its attributes with ``List.copyOf``."""
        return self.release >= (2, 1)

    @property
    def usual_comparison(self) -> str:
        """Comparison of structured types that are based on a class."""
        return "EQUALS" if self.release >= (2, 1) else "NONE"

    @property
    def map_data(self) -> JavaClass:
        return _class(
            RUNTIME + "MapDataSerializer",
            f"{_GETTER} keyGetter",
            f"{_SERIALIZER} keySerializer",
            f"{_TYPE} keyType",
            f"{_GETTER} valueGetter",
            f"{_SERIALIZER} valueSerializer",
            f"{_TYPE} valueType",
            parent=_TYPE_SERIALIZER,
            suid=4073842523628732956 if self.release >= (1, 19) else 2533002123505507000,
        )

    @property
    def identifier(self) -> JavaClass:
        suid = -6621218754811268019 if self.release >= (1, 15) else -8448852970482651730
        names = (f"{_STRING} {n}Name" for n in ("catalog", "database", "object"))
        return _class(_IDENTIFIER, *names, suid=suid)

    @property
    def comparison_word(self) -> str:
        """Name of the field; 1.13 spells it differently."""
        return "comparison" if self.release >= (1, 14) else "comparision"

    @property
    def comparison(self) -> JavaClass:
        return enum_class(f"{LOGICAL}StructuredType$Structured{self.comparison_word.capitalize()}")

    @property
    def structured(self) -> JavaClass:
        name = (f"{_STRING} className",) if self.release >= (2, 1) else ()
        return _class(
            LOGICAL + "StructuredType",
            "Z isInstantiable",
            f"{_LIST} attributes",
            *name,
            f"{signature(self.comparison.name)} {self.comparison_word}",
            "Ljava/lang/Class; implementationClass",
            f"{signature(LOGICAL + 'StructuredType')} superType",
            parent=_USER_DEFINED,
        )


NEWEST: Final = StreamForm((2, 3))
