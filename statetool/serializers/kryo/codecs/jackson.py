"""JSON trees of Jackson 2 (``ObjectNode`` and the other nodes), which Kryo writes field by field, as JSON text.

A tree is a struct of ``json`` and ``node_types``. ``node_types`` is null if Jackson's parser makes the same nodes from ``json``. Otherwise it
is a JSON object with the class of each other node by its JSON Pointer: ``{"/count": "LongNode"}`` for a ``LongNode`` of a small number.

================  ==========================================================================================
``ObjectNode``    ``_children`` (a ``LinkedHashMap``), ``_nodeFactory``
``ArrayNode``     ``_children`` (an ``ArrayList``), ``_nodeFactory``
``BinaryNode``    ``_data``, shown as base64
other nodes       ``_value``; ``NullNode`` and ``MissingNode`` have no fields
================  ==========================================================================================

Numbers of a ``DecimalNode`` are shown as text, as their digits may not survive in JSON. A factory that keeps zeros at the end of decimals
(``bigDecimalExact``) is noted behind the class of its node: ``ObjectNode bigDecimalExact``. The classes are the same in Jackson 2.4 to 2.19,
as confirmed by bytes of 2.19 and of Flink's shaded 2.14 and 2.18.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from statetool.errors import DecodeError, EncodeError
from statetool.serializers.kryo.model import Obj

_PACKAGES: Final = tuple(
    f"{shaded}com.fasterxml.jackson.databind." for shaded in ("", "org.apache.flink.shaded.jackson2.")
)
_TEXT: Final = "java.lang.String"
#: The field of each node, and its type: the box is the class of the value.
_SCALARS: Final = {
    "TextNode": ("_value", "String", _TEXT),
    "BooleanNode": ("_value", "boolean", "boolean"),
    "ShortNode": ("_value", "short", "short"),
    "IntNode": ("_value", "int", "int"),
    "LongNode": ("_value", "long", "long"),
    "FloatNode": ("_value", "float", "float"),
    "DoubleNode": ("_value", "double", "double"),
    "BigIntegerNode": ("_value", "java.math.BigInteger", "java.math.BigInteger"),
    "DecimalNode": ("_value", "java.math.BigDecimal", "java.math.BigDecimal"),
    "BinaryNode": ("_data", "byte[]", "[B"),
    "POJONode": ("_value", "Object", ""),
}
_EMPTY: Final = ("NullNode", "MissingNode")
_CONTAINERS: Final = {
    "ObjectNode": ("java.util.LinkedHashMap", "Map<String, {package}JsonNode>"),
    "ArrayNode": ("java.util.ArrayList", "List<{package}JsonNode>"),
}
_NUMBERS: Final = frozenset(
    {"ShortNode", "IntNode", "LongNode", "FloatNode", "DoubleNode", "BigIntegerNode", "DecimalNode"}
)
_ALL: Final = frozenset({*_SCALARS, *_EMPTY, *_CONTAINERS})
#: Classes of the nodes that a field of an abstract class may hold.
_ABSTRACT: Final = {
    "JsonNode": _ALL,
    "node.BaseJsonNode": _ALL,
    "node.ContainerNode": frozenset(_CONTAINERS),
    "node.ValueNode": _ALL - _CONTAINERS.keys(),
    "node.NumericNode": _NUMBERS,
}
_EXACT: Final = " bigDecimalExact"
_INT: Final = 1 << 31
_LONG: Final = 1 << 63


def _records() -> dict[str, tuple[dict[str, str], bool]]:
    records: dict[str, tuple[dict[str, str], bool]] = {}
    for package in _PACKAGES:
        node = f"{package}node."
        records |= {f"{package}{name}": ({}, False) for name in _ABSTRACT}
        records |= {f"{node}{name}": ({field: kind}, False) for name, (field, kind, _) in _SCALARS.items()}
        records |= {f"{node}{name}": ({}, name == "MissingNode") for name in _EMPTY}
        for name, (_, kind) in _CONTAINERS.items():
            fields = {"_children": kind.format(package=package), "_nodeFactory": f"{node}JsonNodeFactory"}
            records[f"{node}{name}"] = fields, False
        records[f"{node}JsonNodeFactory"] = {"_cfgBigDecimalExact": "boolean"}, False
    return records


#: Fields of each class, and whether it is final.
RECORDS: Final = _records()
#: Declared types of trees, with the classes of nodes that they allow.
TREES: Final = {
    **{f"{package}{name}": nodes for package in _PACKAGES for name, nodes in _ABSTRACT.items()},
    **{f"{package}node.{name}": frozenset({name}) for package in _PACKAGES for name in _ALL},
}
#: Conversion of the value of a ``POJONode`` to JSON, or back.
OfPojo = Callable[[Any], Any]


def to_tree(obj: Obj, pojo: OfPojo) -> tuple[Any, dict[str, str]]:
    """Return a node as JSON, and the classes of the nodes that Jackson's parser would not make from it, by JSON Pointer.

    Raises
    ------
    DecodeError
        The tree has a null, or a class that is not Jackson's, where a node must be.
    """
    node_types: dict[str, str] = {}
    return _tree(obj, "", node_types, pojo), node_types


def _tree(obj: Obj | None, pointer: str, node_types: dict[str, str], pojo: OfPojo) -> Any:
    if obj is None or obj.cls not in TREES or not isinstance(obj.value, dict):
        found = "null" if obj is None else f"a {obj.cls}"
        raise DecodeError(f"{found} where a JSON tree has a node, at {pointer or 'its root'}")
    name = obj.cls.rpartition(".")[2]
    kind = name
    if name in _CONTAINERS:
        children = _children(obj, name)
        kind += _factory(obj)
        tree: Any
        if name == "ArrayNode":
            tree = [_tree(child, f"{pointer}/{i}", node_types, pojo) for i, child in enumerate(children)]
        else:
            tree = {}
            for key, child in children:
                if key is None or key.cls != _TEXT or key.value in tree:
                    shown = "null" if key is None else f"{key.cls} {key.value!r}"
                    raise DecodeError(f"{shown} is not a new name of a child, at {pointer or 'the root'}")
                tree[key.value] = _tree(child, _below(pointer, key.value), node_types, pojo)
    else:
        tree = _scalar_tree(obj, name, pojo)
    if kind != _parsed_as(tree):
        node_types[pointer] = kind
    return tree


def _children(obj: Obj, name: str) -> Any:
    children = obj.value["_children"]
    expected = _CONTAINERS[name][0]
    if children is None or children.cls != expected or not isinstance(children.value, list):
        found = "null" if children is None else children.cls
        raise DecodeError(f"the children of {name} are in {found}, not in {expected}")
    return children.value


def _factory(obj: Obj) -> str:
    factory = obj.value["_nodeFactory"]
    if factory is None or factory.cls != f"{obj.cls.rpartition('.')[0]}.JsonNodeFactory":
        raise DecodeError(f"{obj.cls} has {'no factory' if factory is None else f'the factory {factory.cls}'}")
    return _EXACT if factory.value["_cfgBigDecimalExact"].value else ""


def _scalar_tree(obj: Obj, name: str, pojo: OfPojo) -> Any:
    if name in _EMPTY:
        return None
    field, _, cls = _SCALARS[name]
    held = obj.value[field]
    if name == "POJONode":
        return pojo(held)
    if held is None or held.cls != cls:
        raise DecodeError(f"{name} with {'null' if held is None else f'a {held.cls}'}, not a value of {cls}")
    value = held.value
    match name:
        case "BinaryNode":
            return base64.b64encode(value).decode("ascii")
        case "DecimalNode":
            return str(value)
        case "FloatNode" | "DoubleNode" if not math.isfinite(value):
            return str(value)
    return value


def _parsed_as(tree: Any) -> str:
    """Return the class of the node that Jackson's parser makes, with its default settings."""
    match tree:
        case None:
            return "NullNode"
        case bool():
            return "BooleanNode"
        case int():
            return "IntNode" if -_INT <= tree < _INT else "LongNode" if -_LONG <= tree < _LONG else "BigIntegerNode"
        case float():
            return "DoubleNode"
        case str():
            return "TextNode"
        case list():
            return "ArrayNode"
        case dict():
            return "ObjectNode"
    raise EncodeError(f"{tree!r} is not JSON")


def _below(pointer: str, key: str) -> str:
    escaped = key.replace("~", "~0").replace("/", "~1")
    return f"{pointer}/{escaped}"


def from_tree(declared: str, tree: Any, node_types: Any, pojo: OfPojo) -> Obj:
    """Return the node of a JSON tree.

    Parameters
    ----------
    declared
        The declared type, one of :data:`TREES`.

    Raises
    ------
    EncodeError
        A node has another class than the declared type, or a value that its class cannot hold.
    """
    if node_types is not None and not isinstance(node_types, dict):
        raise EncodeError("node_types is not a JSON object of classes by JSON Pointer")
    unused = dict(node_types or {})
    package = next(p for p in _PACKAGES if declared.startswith(p))
    obj = _node(tree, "", unused, f"{package}node.", pojo)
    if unused:
        raise EncodeError(f"node_types has {', '.join(sorted(unused))}, which the JSON does not have")
    if (name := obj.cls.rpartition(".")[2]) not in TREES[declared]:
        raise EncodeError(f"the root is of class {name}, not {declared.rpartition('.')[2]}")
    return obj


def _node(tree: Any, pointer: str, node_types: dict[str, str], package: str, pojo: OfPojo) -> Obj:
    kind = node_types.pop(pointer, None) or _parsed_as(tree)
    name = kind.removesuffix(_EXACT) if isinstance(kind, str) else ""
    if name in _CONTAINERS:
        return _container(name, tree, pointer, node_types, package, pojo, exact=kind != name)
    if kind not in _ALL:
        raise EncodeError(f"{kind!r} is not a class of a node, at {pointer or 'the root'}")
    if name in _EMPTY:
        if tree is not None:
            raise _not_a(name, tree, pointer)
        return Obj(package + name, {})
    field, _, cls = _SCALARS[name]
    if name == "POJONode":
        return Obj(package + name, {field: pojo(tree)})
    try:
        value = _scalar(name, tree)
    except (TypeError, ValueError, InvalidOperation, binascii.Error) as error:
        raise _not_a(name, tree, pointer) from error
    return Obj(package + name, {field: Obj(cls, value)})


def _container(
    name: str, tree: Any, pointer: str, node_types: dict[str, str], package: str, pojo: OfPojo, *, exact: bool
) -> Obj:
    children: list[Any]
    if name == "ObjectNode" and isinstance(tree, dict):
        nodes = ((k, _node(v, _below(pointer, k), node_types, package, pojo)) for k, v in tree.items())
        children = [(Obj(_TEXT, k), node) for k, node in nodes]
    elif name == "ArrayNode" and isinstance(tree, list):
        children = [_node(v, f"{pointer}/{i}", node_types, package, pojo) for i, v in enumerate(tree)]
    else:
        raise _not_a(name, tree, pointer)
    fields: dict[str, Obj | None] = {
        "_children": Obj(_CONTAINERS[name][0], children),
        "_nodeFactory": Obj(f"{package}JsonNodeFactory", {"_cfgBigDecimalExact": Obj("boolean", exact)}),
    }
    return Obj(package + name, fields)


def _scalar(name: str, tree: Any) -> Any:
    match name:
        case "BinaryNode":
            return base64.b64decode(tree, validate=True)
        case "DecimalNode" if type(tree) in (str, int, float):
            return Decimal(str(tree))
        case "FloatNode" | "DoubleNode":
            return float(tree)
        case "TextNode" if not isinstance(tree, str):
            raise TypeError
        case "DecimalNode":
            raise TypeError
        case "BooleanNode" if not isinstance(tree, bool):
            raise TypeError
        case "ShortNode" | "IntNode" | "LongNode" | "BigIntegerNode" if type(tree) is not int:
            raise TypeError
    return tree


def _not_a(name: str, tree: Any, pointer: str) -> EncodeError:
    return EncodeError(f"{json.dumps(tree, default=str)} is not a value of {name}, at {pointer or 'the root'}")
