"""The support table of the README, generated from the table of serializers."""

from __future__ import annotations

from statetool.serializers.table import FAMILIES

START = "<!-- support:start -->"
END = "<!-- support:end -->"
#: Families, or classes, whose values are not decoded (fully) yet, with what is shown instead.
GAPS = {
    "RowDataSerializer$RowDataSerializerSnapshot": "binary row as exact bytes",
    "BinaryRowDataSerializer$BinaryRowDataSerializerSnapshot": "binary row as exact bytes",
    "ArrayDataSerializer$ArrayDataSerializerSnapshot": "binary array as exact bytes",
    "MapDataSerializer$MapDataSerializerSnapshot": "binary map as exact bytes",
    "VariantSerializer$VariantSerializerSnapshot": "its two parts as bytes",
    "BitmapSerializer$BitmapSerializerSnapshot": "portable RoaringBitmap as bytes",
    "KryoSerializerSnapshot": "exact bytes where the value fills its frame, else the state's whole value as bytes",
    "KryoSerializer$KryoSerializerConfigSnapshot": "as KryoSerializerSnapshot",
    "ValueSerializer$ValueSerializerSnapshot": "values of org.apache.flink.types; user classes as exact bytes",
    "ValueSerializer$ValueSerializerConfigSnapshot": "as ValueSerializerSnapshot",
    "CopyableValueSerializer$CopyableValueSerializerSnapshot": "values of org.apache.flink.types; others as bytes",
    "CopyableValueSerializer$CopyableValueSerializerConfigSnapshot": "as CopyableValueSerializerSnapshot",
    "WritableSerializer$WritableSerializerSnapshot": "exact bytes",
    "WritableSerializer$WritableSerializerConfigSnapshot": "exact bytes",
    "JavaSerializer$JavaSerializerSnapshot": "the Java stream as exact bytes",
    "StreamElementSerializer$StreamElementSerializerSnapshot": "records and watermarks; other elements are an error",
    "StreamElementSerializer$StreamElementSerializerConfigSnapshot": "as StreamElementSerializerSnapshot",
}


def support_table() -> str:
    """Return the table as Markdown, between its markers."""
    lines = [START, "| family | snapshot class | values |", "|---|---|---|"]
    for family, readers in FAMILIES.items():
        for name in sorted(readers):
            lines.append(f"| {family} | `{name}` | {GAPS.get(name, 'decoded')} |")
    return "\n".join([*lines, END])
