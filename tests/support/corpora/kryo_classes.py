"""Declarations of the corpora's classes, which Kryo writes field by field."""

from __future__ import annotations

from typing import Final

from statetool.types.declared import class_of_fields, enum_of

_ANIMALS: Final = "org.apache.flink.api.java.typeutils.runtime.kryo.KryoPojosForMigrationTests$"
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
    class_of_fields("gen.Types$MyValue", {"a": "int", "s": "String"}),
    *(
        class_of_fields(f"org.apache.flink.api.java.typeutils.runtime.{name}", fields)
        for name, fields in (
            ("CopyableSerializerUpgradeTest$SimpleCopyable", {"value": "long"}),
            ("ValueSerializerUpgradeTest$NameValue", {"name": "String"}),
            ("WritableSerializerUpgradeTest$WritableName", {"name": "String"}),
            ("kryo.KryoPojosForMigrationTests$Animal", {}),
        )
    ),
    *(
        class_of_fields(f"{_ANIMALS}{name}", fields, extends=[f"{_ANIMALS}Animal"])
        for name, fields in (("Dog", {"name": "String"}), ("Cat", {"name": "String", "age": "int"}))
    ),
    enum_of("gen.Types$Color", ("RED", "GREEN", "BLUE")),
)
