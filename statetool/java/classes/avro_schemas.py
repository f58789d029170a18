"""Schemas of Avro classes from their class files: the static field ``SCHEMA$``, which Avro's compiler initializes with the schema's text."""

from __future__ import annotations

import json
from typing import Final

from statetool.java.classes.bytecode import INVOKEVIRTUAL, NEW, PUTSTATIC, constant, instructions
from statetool.java.classes.class_file import ClassFile

_PARSER: Final = "org.apache.avro.Schema$Parser"


def schema_constant(cls: ClassFile) -> str | None:
    """Return the text of a generated class's schema, ``None`` if its static initializer does not parse it as generated code does.

    Raises
    ------
    FormatError
        The static initializer is damaged.
    """
    initializer = next((m.code for m in cls.methods if m.name == "<clinit>"), b"")
    texts: list[str] | None = None
    parsed: str | None = None
    for operation, operands in instructions(initializer):
        if operation == NEW:
            texts, parsed = ([] if cls.constants.class_name(operands.u2()) == _PARSER else None), None
        elif operation == INVOKEVIRTUAL:
            called = cls.constants.member(operands.u2())
            # A long schema comes in several texts.
            parsed = "".join(texts) if texts and (called.owner, called.name) == (_PARSER, "parse") else None
            texts = None
        elif operation == PUTSTATIC:
            if parsed is not None and cls.constants.member(operands.u2()).name == "SCHEMA$":
                return parsed if _is_record(parsed) else None
            parsed = None
        elif texts is not None and isinstance(text := constant(operation, operands, cls.constants), str):
            texts.append(text)
    return None


def _is_record(text: str) -> bool:
    try:
        schema = json.loads(text)
    except json.JSONDecodeError:
        return False
    return isinstance(schema, dict) and schema.get("type") == "record"
