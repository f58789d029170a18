"""Declarations of the corpora's own classes, which Kryo writes by their fields."""

from __future__ import annotations

from typing import Final

from statetool.types.declared import class_of_fields, enum_of

CLASSES: Final = (
    class_of_fields(
        "gen.Types$Opaque",
        {"any": "Object", "boxed": "Integer", "items": "List<String>", "label": "String", "n": "int"},
    ),
    class_of_fields("gen.Types$Address", {"number": "int", "street": "String"}),
    class_of_fields("corpus.PublicTypes$Money", {"cents": "long", "currency": "String"}),
    class_of_fields(
        "corpus.PublicTypes$Cat",
        {"legs": "int", "lives": "long", "name": "String", "owner": "String"},
        extends=["corpus.PublicTypes$Pet"],
    ),
    enum_of("gen.Types$Color", ("RED", "GREEN", "BLUE")),
)
