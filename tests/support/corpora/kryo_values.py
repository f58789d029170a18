"""Declarations of the classes of ``KryoValues.java``."""

from __future__ import annotations

from typing import Final

from statetool.types.declared import ClassDeclaration, class_of_fields, enum_of
from statetool.types.java import parse_java_type

_ITEM: Final = "KryoValues$Item"
CLASSES: Final = (
    enum_of("KryoValues$Color", ("RED", "GREEN", "BLUE")),
    enum_of("KryoValues$Op", ("PLUS{}", "MINUS{}")),
    class_of_fields(_ITEM, {"n": "int", "name": "String"}),
    class_of_fields(
        "KryoValues$BigItem", {"n": "int", "name": "String", "size": "Long", "parts": f"List<{_ITEM}>"}, extends=[_ITEM]
    ),
    class_of_fields("KryoValues$Fixed", {"x": "double", "y": "Float"}, final=True),
    class_of_fields("KryoValues$Box", {"value": "T", "more": "List<T>"}, parameters=["T"]),
    ClassDeclaration(name="KryoValues$Tags", kind="collection", element_types=(parse_java_type("String"),)),
    class_of_fields(
        "KryoValues$Rec",
        {
            "a": "int",
            "b": "Integer",
            "c": "String",
            "d": "List<String>",
            "e": _ITEM,
            "f": "KryoValues$Color",
            "g": "long[]",
        },
        record=True,
    ),
    class_of_fields("KryoValues$Node", {"label": "String", "next": "KryoValues$Node"}),
    class_of_fields(
        "KryoValues$Order",
        {
            "id": "int",
            "boxed": "Integer",
            "big": "long",
            "bigBoxed": "Long",
            "small": "short",
            "tiny": "byte",
            "letter": "char",
            "ratio": "float",
            "price": "double",
            "paid": "boolean",
            "maybe": "Boolean",
            "name": "String",
            "tags": "List<String>",
            "numbers": "List<Integer>",
            "items": f"List<{_ITEM}>",
            "exact": "ArrayList<String>",
            "counts": "Map<String, Long>",
            "nested": "Map<String, List<String>>",
            "byId": f"Map<Integer, {_ITEM}>",
            "ids": "Set<UUID>",
            "item": _ITEM,
            "other": _ITEM,
            "fixed": "KryoValues$Fixed",
            "color": "KryoValues$Color",
            "op": "KryoValues$Op",
            "any": "Object",
            "array": f"{_ITEM}[]",
            "words": "String[]",
            "ints": "int[]",
            "boxes": "Integer[]",
            "raw": "byte[]",
            "matrix": "int[][]",
            "objects": "Object[]",
            "maybeText": "Optional<String>",
            "pair": "org.apache.flink.api.java.tuple.Tuple2<String, Integer>",
            "pairs": "List<org.apache.flink.api.java.tuple.Tuple2<String, Long>>",
            "lists": "List<List<String>>",
            "day": "LocalDate",
            "at": "Instant",
            "amount": "BigDecimal",
            "token": "UUID",
            "box": "KryoValues$Box<String>",
            "fixeds": "List<KryoValues$Fixed>",
            "sorted": "json:TreeMap<String, Integer>",
            "colors": "List<KryoValues$Color>",
            "anything": "Collection<Object>",
        },
    ),
)
