"""Protobuf messages as JSON, according to the user's descriptor.

The JSON is that of ``google.protobuf.json_format``, with the names of the ``.proto`` file. Fields that are not in the descriptor stay as
bytes (base64) in a member ``$unknown`` of their message. JSON that would not produce the same message again is an error.
"""

from __future__ import annotations

import base64
import binascii
import importlib
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final

from statetool.errors import DecodeError, EncodeError, MissingDependencyError
from statetool.io.output import Output
from statetool.types.declared import ClassDeclaration

_UNKNOWN: Final = "$unknown"
_GROUP_END: Final = 4
_OLDEST: Final = (4, 25)


def to_tree(declared: ClassDeclaration, raw: bytes) -> Any:
    """Return a message as JSON.

    Raises
    ------
    DecodeError
        Not such a message, one without a required field, or one that JSON cannot represent without loss.
    MissingDependencyError
        The package ``protobuf`` is not installed.
    """
    json_format = _module("google.protobuf.json_format")
    decode_error = _module("google.protobuf.message").DecodeError
    pool, kind = message_class(declared.descriptor, declared.message)
    try:
        message = kind.FromString(raw)
    except decode_error as e:
        raise DecodeError(f"not a {declared.message}: {e}") from e
    if missing := message.FindInitializationErrors():
        # Java's parser raises an error, Python's does not.
        raise DecodeError(f"a {declared.message} without its required {', '.join(missing)}")
    try:
        tree = json_format.MessageToDict(message, preserving_proto_field_name=True, descriptor_pool=pool)
        _add_unknown(message, tree)
        reparsed = _from_tree(kind(), tree, pool)
    except (json_format.Error, EncodeError, ValueError, TypeError, KeyError) as e:
        raise DecodeError(
            f"a {declared.message} that JSON cannot represent: {e}",
            hint="give a descriptor of all messages that it packs (protoc --include_imports)",
        ) from e
    if reparsed.SerializePartialToString(deterministic=True) != message.SerializePartialToString(deterministic=True):
        raise DecodeError(
            f"a {declared.message} with parts that its descriptor does not know",
            hint="declare it with a newer descriptor",
        )
    return tree


def from_tree(declared: ClassDeclaration, tree: Any) -> bytes:
    """Return the bytes of a message.

    Raises
    ------
    EncodeError
        Not valid JSON of such a message.
    """
    json_format = _module("google.protobuf.json_format")
    encode_error = _module("google.protobuf.message").EncodeError
    pool, kind = message_class(declared.descriptor, declared.message)
    try:
        return bytes(_from_tree(kind(), tree, pool).SerializeToString(deterministic=True))
    except (json_format.Error, encode_error, ValueError, TypeError, KeyError) as e:
        raise EncodeError(f"not a {declared.message}: {e}") from e


def _module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as e:
        raise MissingDependencyError(
            "Protobuf messages need the package protobuf", hint="pip install 'statetool[protobuf]'"
        ) from e


def _check_release(version: str) -> None:
    """Raise an error for protobuf releases whose C code aborts the process when asked for unknown fields."""
    major, minor, *_ = version.split(".")
    if (int(major), int(minor)) < _OLDEST:
        raise MissingDependencyError(
            f"Protobuf messages need the package protobuf from {'.'.join(map(str, _OLDEST))}, this is {version}",
            hint="pip install 'statetool[protobuf]'",
        )


@lru_cache(maxsize=64)
def message_class(descriptor: bytes, message: str) -> tuple[Any, Any]:
    """Return the pool of a descriptor's messages and the class of one of them.

    Raises
    ------
    DecodeError
        The descriptor does not describe it.
    MissingDependencyError
        The package ``protobuf`` is too old.
    """
    _check_release(_module("google.protobuf").__version__)
    pool = _module("google.protobuf.descriptor_pool").DescriptorPool()
    try:
        file_set = _module("google.protobuf.descriptor_pb2").FileDescriptorSet.FromString(descriptor)
        for file in file_set.file:
            pool.Add(file)
        kind = _module("google.protobuf.message_factory").GetMessageClass(pool.FindMessageTypeByName(message))
    except (KeyError, TypeError, ValueError, _module("google.protobuf.message").DecodeError) as e:
        raise DecodeError(
            f"the descriptor that is declared for {message} does not describe it: {e}",
            hint="make it with protoc --descriptor_set_out=FILE --include_imports, and give the message's full name",
        ) from e
    return pool, kind


def bytes_or_not(old: ClassDeclaration, new: ClassDeclaration) -> str:
    """Return a field that has bytes in one of two messages, and in the other one another type; empty if there is none.

    In JSON, bytes are text, so one would become the other without an error.

    Raises
    ------
    DecodeError
        A descriptor does not describe its message.
    MissingDependencyError
        The package ``protobuf`` is not installed.
    """
    fields = [dict(_are_bytes(message_class(d.descriptor, d.message)[1].DESCRIPTOR, ())) for d in (old, new)]
    return next((name for name, is_bytes in fields[0].items() if fields[1].get(name, is_bytes) != is_bytes), "")


def _are_bytes(message: Any, outer: tuple[str, ...]) -> Iterator[tuple[str, bool]]:
    """Yield the path of each field, and whether it has bytes. A message in itself is not repeated."""
    for field in message.fields:
        inner = field.message_type
        yield field.name, field.type == field.TYPE_BYTES
        if inner is not None and inner.full_name not in outer:
            for name, is_bytes in _are_bytes(inner, (*outer, message.full_name)):
                yield f"{field.name}.{name}", is_bytes


def _inner_messages(message: Any) -> list[tuple[str, Any, Any]]:
    """Return the messages inside a message: field, key (or index, or nothing), message."""
    inner_messages: list[tuple[str, Any, Any]] = []
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        name = f"[{field.full_name}]" if field.is_extension else field.name
        if field.message_type.GetOptions().map_entry:
            if field.message_type.fields_by_name["value"].message_type is not None:
                inner_messages += [(name, _key_text(k), v) for k, v in value.items()]
        elif hasattr(value, "ListFields"):
            inner_messages.append((name, None, value))
        else:
            inner_messages += [(name, i, v) for i, v in enumerate(value)]
    return inner_messages


def _key_text(key: Any) -> str:
    return str(key).lower() if isinstance(key, bool) else str(key)


def _add_unknown(message: Any, tree: Any) -> None:
    unknown = _module("google.protobuf.unknown_fields").UnknownFieldSet(message)
    if len(unknown):
        if not isinstance(tree, dict):
            raise EncodeError(f"unknown fields in a {message.DESCRIPTOR.full_name}")
        tree[_UNKNOWN] = base64.b64encode(_encode(unknown)).decode("ascii")
    if isinstance(tree, dict) and not message.DESCRIPTOR.full_name.startswith("google.protobuf."):
        for name, key, part in _inner_messages(message):
            inner = tree[name]
            _add_unknown(part, inner if key is None else inner[key])


def _encode(unknown: Any) -> bytes:
    out = Output()
    for field in unknown:
        out.varint(field.field_number << 3 | field.wire_type)
        match field.wire_type:
            case 0:
                out.varint(field.data)
            case 1:
                out += int(field.data).to_bytes(8, "little")
            case 2:
                out.varint(len(field.data))
                out += field.data
            case 3:
                out += _encode(field.data)
                out.varint(field.field_number << 3 | _GROUP_END)
            case 5:
                out += int(field.data).to_bytes(4, "little")
    return bytes(out)


def _from_tree(message: Any, tree: Any, pool: Any) -> Any:
    known, unknown = _split(tree)
    _module("google.protobuf.json_format").ParseDict(known, message, descriptor_pool=pool)
    for path, raw in unknown:
        _message_at(message, path).MergeFromString(raw)
    return message


def _split(tree: Any) -> tuple[Any, list[tuple[tuple[Any, ...], bytes]]]:
    """Return JSON without unknown fields, and the path and bytes of each unknown field."""
    unknown: list[tuple[tuple[Any, ...], bytes]] = []
    if isinstance(tree, list):
        items = [_split(item) for item in tree]
        return [known for known, _ in items], [((i, *p), raw) for i, (_, inner) in enumerate(items) for p, raw in inner]
    if not isinstance(tree, dict):
        return tree, unknown
    known = {}
    for name, value in tree.items():
        if name == _UNKNOWN:
            try:
                unknown.append(((), base64.b64decode(value, validate=True)))
            except (binascii.Error, TypeError, ValueError) as e:
                raise EncodeError(f"{value!r} is not base64") from e
            continue
        known[name], inner = _split(value)
        unknown += [((name, *p), raw) for p, raw in inner]
    return known, unknown


def _message_at(message: Any, path: tuple[Any, ...]) -> Any:
    while path:
        name, *rest = path
        for field, key, part in _inner_messages(message):
            if field == name and (key is None or (rest and rest[0] == key)):
                message, path = part, tuple(rest if key is None else rest[1:])
                break
        else:
            raise EncodeError(f"unknown fields in {name}, which is not a message")
    return message
