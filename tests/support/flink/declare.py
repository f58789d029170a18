"""Declarations with which a job can read a state: types as text (see ``Types.java``), from serializers that statetool has read.

The Java side makes Flink's serializers from the text and from its classes, so Flink's compatibility check detects a snapshot that does not
match the job.
"""

from __future__ import annotations

from typing import Any, Final

from statetool.serializers.core.base import Serializer
from statetool.snapshot.operator import OperatorInventory

_FLINK_CLASSES: Final = {
    "Variant": "org.apache.flink.types.variant.Variant",
    "Bitmap": "org.apache.flink.types.bitmap.Bitmap",
}
_GENERIC: Final = {
    "TupleSerializer": "TUPLE",
    "RowSerializer": "ROW",
    "EitherSerializer": "EITHER",
    "ListSerializer": "LIST",
    "MapSerializer": "MAP",
    "SetSerializer": "SET",
    "GenericArraySerializer": "ARRAY",
    "StreamElementSerializer": "ELEMENT",
}


def expression(serializer: Serializer) -> str:
    """Return the type that a job declares to get this serializer."""
    name = type(serializer).__name__
    children = [s for _, s in serializer.children()]
    if name == "TtlSerializer":
        return expression(children[1])
    if name in _GENERIC:
        return f"{_GENERIC[name]}<{','.join(map(expression, children))}>"
    for attribute in ("pojo_class", "enum_class"):
        if hasattr(serializer, attribute):
            return str(getattr(serializer, attribute))
    if hasattr(serializer, "type_class"):
        return f"KRYO<{serializer.type_class}>"
    word = serializer.type_name
    if word.endswith("PrimitiveArray"):
        return f"PRIMITIVES<{word.removesuffix('PrimitiveArray').upper()}>"
    if word == "StringArray":
        return "ARRAY<STRING>"
    if word.endswith("Value"):
        return f"org.apache.flink.types.{word}"
    return _FLINK_CLASSES.get(word) or word.upper()


def operator_request(operator: OperatorInventory, name: str, uid: str | None) -> dict[str, Any]:
    """Return the request with which the Java side restores an operator of a savepoint with all its states.

    Parameters
    ----------
    operator
        The operator as read by statetool.
    name
        Name in answers.
    uid
        Its uid; without it, the operator is found by its id.
    """
    request: dict[str, Any] = {
        "name": name,
        "uid": uid,
        "operator_id": operator.state.operator_id,
        "max_parallelism": operator.state.max_parallelism,
        "states": [],
        "timers": [],
        "operator_states": [],
    }
    services: dict[str, str] = {}
    for state, (key, meta) in operator.keyed_states.items():
        request["key"] = expression(key.key)
        if meta.kind == "timers":
            service = state.removeprefix("_timer_state/").partition("_")[2]
            services[service] = meta.value.children()[1][1].type_name
            continue
        assert meta.namespace is not None
        declared: dict[str, Any] = {"name": state, "kind": meta.kind, "namespace": meta.namespace.type_name}
        value = meta.value
        if meta.kind == "map":
            map_key, value = meta.parts
            declared["map_key"] = expression(map_key)
        elif meta.kind == "list":
            (value,) = meta.parts
        declared["ttl"] = type(value).__name__ == "TtlSerializer"
        declared["type"] = expression(value)
        request["states"].append(declared)
    request["timers"] = [{"service": s, "namespace": n} for s, n in sorted(services.items())]
    for state, meta in operator.operator_states.items():
        described = {"name": state, "mode": meta.kind, "type": expression(meta.value)}
        if meta.kind == "broadcast":
            described["key"] = expression(meta.serializers["KEY_SERIALIZER"])
        request["operator_states"].append(described)
    return request
