"""Classes written by a serializer of the job: a struct of the calls of its ``write`` method, as listed in the declaration.

Each step is a method of Kryo's ``Output`` or ``Kryo``, as written in the source of the serializer: ``writeInt`` (4 bytes),
``writeInt(true)`` and ``writeInt(false)`` (variable length, positive or zigzag), ``writeString``, ``writeObject(com.acme.Person)``, ...
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from statetool.errors import EncodeError
from statetool.serializers.kryo import wire
from statetool.serializers.kryo.codecs.scalars import SCALARS, Body
from statetool.serializers.kryo.model import Obj
from statetool.serializers.kryo.values import ValueReader, ValueWriter
from statetool.serializers.typeutils.composite import inside
from statetool.types.declared import ClassDeclaration
from statetool.types.java import PRIMITIVES, JavaType

Ints = tuple[Callable[[Any], int], Callable[[Any, int], None], int]
#: Numbers that Kryo's field serializers write in another form: reader, writer, bits.
_INTS: Final[dict[str, Ints]] = {
    **dict.fromkeys(("writeInt(true)", "writeVarInt(true)"), (wire.read_positive, wire.write_positive, 32)),
    **dict.fromkeys(("writeInt(false)", "writeVarInt(false)"), (wire.read_signed, wire.write_signed, 32)),
    **dict.fromkeys(("writeLong(true)", "writeVarLong(true)"), (wire.read_positive_long, wire.write_positive_long, 64)),
    **dict.fromkeys(("writeLong(false)", "writeVarLong(false)"), (wire.read_signed_long, wire.write_signed_long, 64)),
}
_FIXED: Final = {"writeInt": ("i", 32), "writeLong": ("q", 64)}


def read_steps(g: ValueReader, declared: ClassDeclaration) -> dict[str, Obj | None]:
    """Read the output of a serializer of the job."""
    fields: dict[str, Obj | None] = {}
    for (name, kind), step in zip(declared.fields, declared.steps, strict=True):
        with inside(name):
            fields[name] = _read(g, step, kind)
    return fields


def write_steps(g: ValueWriter, declared: ClassDeclaration, value: Any) -> None:
    """Append the output of a serializer of the job."""
    if not isinstance(value, dict) or value.keys() != {n for n, _ in declared.fields}:
        raise EncodeError(f"{value!r} does not have exactly the fields of {declared.name}")
    for (name, kind), step in zip(declared.fields, declared.steps, strict=True):
        with inside(name):
            _write(g, step, kind, value[name])


def _read(g: ValueReader, step: str, kind: JavaType) -> Obj | None:
    if step in _INTS:
        return Obj(kind.name, _INTS[step][0](g.c))
    if step in _FIXED:
        return Obj(kind.name, wire.read_fixed(g.c, g.gen, _FIXED[step][0]))
    if kind.name in PRIMITIVES:
        return Obj(kind.name, _body(kind).read(g))
    if step == "writeString":
        text = wire.read_string(g.c)
        return None if text is None else Obj(kind.name, text)
    if step == "writeClassAndObject":
        return g.value()
    return g.object(kind.binary_name, nullable=step.startswith("writeObjectOrNull"))


def _write(g: ValueWriter, step: str, kind: JavaType, obj: Obj | None) -> None:
    if step == "writeString":
        wire.write_string(g.out, None if obj is None else str(obj.value), g.gen)
        return
    if step == "writeClassAndObject":
        g.value(obj)
        return
    if kind.name not in PRIMITIVES:
        if obj is not None and obj.cls != kind.binary_name:
            raise EncodeError(f"a {obj.cls} where {step} writes a {kind}")
        g.object(obj, nullable=step.startswith("writeObjectOrNull"))
        return
    if obj is None:
        raise EncodeError(f"a null where {step} writes a number")
    if step in _INTS or step in _FIXED:
        bits = _INTS[step][2] if step in _INTS else _FIXED[step][1]
        if (
            isinstance(obj.value, bool)
            or not isinstance(obj.value, int)
            or not -(1 << bits - 1) <= obj.value < 1 << bits - 1
        ):
            raise EncodeError(f"{obj.value!r} is not an integer of {bits} bits")
        if step in _INTS:
            _INTS[step][1](g.out, obj.value)
        else:
            wire.write_fixed(g.out, g.gen, _FIXED[step][0], obj.value)
        return
    _body(kind).write(g, obj.value)


def _body(kind: JavaType) -> Body:
    return SCALARS[PRIMITIVES[kind.name]]
