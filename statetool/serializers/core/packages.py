"""Packages of the serializers of Flink.

A class is identified by its full name. Other libraries and jobs have classes with the same simple names and other layouts
(``org.apache.flinkx.api.serializer.ScalaCaseClassSerializerSnapshot``), and so does Flink: the ``SqlTimestampSerializer`` of the
Blink planner 1.10 stores another type than the one of the DataStream API. Packages are those of Flink 1.3 to 2.3.
"""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import Final

_FLINK: Final = "org.apache.flink."
#: Outermost classes by package. Of ``XSerializer``, ``XSerializerSnapshot`` and ``XSerializerConfigSnapshot``, only X is given.
_CLASSES: Final = {
    f"{_FLINK}api.common.typeutils": "Composite ParameterlessTypeSerializerConfig SingleThreadAccessCheckingType",
    f"{_FLINK}api.common.typeutils.base": (
        "Byte ByteValue Short ShortValue Int IntValue Long LongValue Float FloatValue Double DoubleValue Boolean BooleanValue Char "
        "CharValue String StringValue Void NullValue BigInt BigDec Variant Bitmap "
        "Date SqlDate SqlTime SqlTimestamp Instant LocalDate LocalTime LocalDateTime "
        "GenericArray List Collection Set Map Enum"
    ),
    f"{_FLINK}api.common.typeutils.base.array": (
        "BooleanPrimitiveArray BytePrimitiveArray ShortPrimitiveArray IntPrimitiveArray LongPrimitiveArray FloatPrimitiveArray "
        "DoublePrimitiveArray CharPrimitiveArray StringArray"
    ),
    f"{_FLINK}api.java.typeutils.runtime": (
        "Tuple0 Tuple Row Pojo Nullable JavaEither Either Value CopyableValue Writable"
    ),
    f"{_FLINK}api.java.typeutils.runtime.kryo": "Kryo",
    **dict.fromkeys(
        # The second package is that of Flink SQL for Scala, since 1.15.
        (f"{_FLINK}api.scala.typeutils", f"{_FLINK}table.api.typeutils"),
        "ScalaCaseClass Tuple2CaseClass ScalaEnum EnumValue ScalaOption ScalaEither ScalaTry Traversable Unit Nothing",
    ),
    f"{_FLINK}runtime.state": "ArrayList VoidNamespace Java",
    f"{_FLINK}queryablestate.client": "VoidNamespace",
    f"{_FLINK}runtime.state.ttl": "TtlStateFactory TtlAware",
    f"{_FLINK}runtime.state.v2.ttl": "TtlStateFactory",
    f"{_FLINK}streaming.api.datastream": "CoGroupedStreams",
    f"{_FLINK}streaming.api.functions.sink": "TwoPhaseCommitSinkFunction",
    f"{_FLINK}streaming.api.functions.sink.legacy": "TwoPhaseCommitSinkFunction",
    f"{_FLINK}streaming.api.operators": "Timer",
    f"{_FLINK}streaming.api.operators.co": "IntervalJoinOperator",
    f"{_FLINK}streaming.api.utils": "ByteArrayWrapper",
    f"{_FLINK}streaming.api.windowing.windows": "TimeWindow GlobalWindow",
    f"{_FLINK}streaming.connectors.kafka": "FlinkKafkaProducer FlinkKafkaProducer011",
    f"{_FLINK}streaming.runtime.streamrecord": "StreamElement",
    f"{_FLINK}cep.nfa": "DeweyNumber NFA NFAState SharedBuffer",
    f"{_FLINK}cep.nfa.sharedbuffer": "EventId NodeId Lockable LockableType SharedBufferEdge SharedBufferNode",
    f"{_FLINK}formats.avro.typeutils": "Avro",
    f"{_FLINK}graph.drivers.transform": "LongValueWithProperHashCode",
    f"{_FLINK}graph.types.valuearray": (
        "ByteValueArray ShortValueArray IntValueArray LongValueArray FloatValueArray DoubleValueArray CharValueArray StringValueArray "
        "NullValueArray"
    ),
    f"{_FLINK}table.dataview": "Null NullAwareMap ListView MapView",
    f"{_FLINK}table.runtime.operators.sink": "SortedLong",
    f"{_FLINK}table.runtime.operators.window": "TimeWindow GlobalWindow CountWindow",
    f"{_FLINK}table.runtime.sequencedmultisetstate.linked": "MetaSqnInfo RowSqnInfo Node RowDataKey",
    f"{_FLINK}table.runtime.typeutils": (
        "StringData DecimalData TimestampData ArrayData MapData RawValueData RowData BinaryRowData AbstractRowData WindowKey LinkedList "
        "SortedMap External"
    ),
}
_KNOWN: Final = frozenset((package, name) for package, names in _CLASSES.items() for name in names.split())
_HOME: Final = MappingProxyType({name: package for package, name in sorted(_KNOWN, reverse=True)})
_ENDING: Final = re.compile(r"Serializer(?:(?:Config)?Snapshot(?:V2)?)?$")


def known_name(class_name: str) -> str:
    """Return a class's name without its package, empty if the package does not have this class in any release.

    Examples
    --------
    >>> known_name("org.apache.flink.api.common.typeutils.base.IntSerializer$IntSerializerSnapshot")
    'IntSerializer$IntSerializerSnapshot'
    >>> known_name("com.acme.IntSerializer$IntSerializerSnapshot")
    ''
    """
    package, _, name = class_name.rpartition(".")
    return name if (package, _outermost(name)) in _KNOWN else ""


def full_name(name: str) -> str:
    """Return a known class's name with its package.

    Examples
    --------
    >>> full_name("IntSerializer$IntSerializerSnapshot")
    'org.apache.flink.api.common.typeutils.base.IntSerializer$IntSerializerSnapshot'
    """
    return f"{_HOME[_outermost(name)]}.{name}"


def binary_name(canonical: str) -> str:
    """Return the name by which a Java class is loaded from the one by which source code knows it.

    Examples
    --------
    >>> binary_name("org.apache.flink.cep.nfa.DeweyNumber.DeweyNumberSerializer")
    'org.apache.flink.cep.nfa.DeweyNumber$DeweyNumberSerializer'
    """
    return re.sub(r"(?<=\.)([A-Z]\w*)\.(?=[A-Z])", r"\1$", canonical)


def _outermost(name: str) -> str:
    return _ENDING.sub("", name.partition("$")[0])
