"""Keyed state of Flink's two APIs: state of the first one (``KEY_VALUE``), and asynchronous state of ForSt (``KEY_VALUE_V2``).

Entries have the same bytes. Descriptions differ (``org.apache.flink.runtime.state.v2.RegisteredKeyValueStateBackendMetaInfo``): that of an
asynchronous state names the serializers of elements, map keys and map values one by one, and has another class for values with a time to live.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final, Literal

from statetool.entries.joined_headers import meta_bytes
from statetool.errors import OptionError, UnsupportedError
from statetool.formats.state_meta import KEY_VALUE, KEY_VALUE_V2, StateMetaInfo
from statetool.java.declaring import flink_types as flink
from statetool.migration.choices import Choices
from statetool.migration.conversion import TypeConversion
from statetool.serializers.core.base import Serializer
from statetool.serializers.runtime import TtlSerializer, unwrap
from statetool.snapshot.inventory import Inventory

StateApi = Literal["v1", "v2"]
_TYPES: Final[Mapping[str, int]] = {"v1": KEY_VALUE, "v2": KEY_VALUE_V2}


def as_state_of(meta: StateMetaInfo, api: StateApi) -> StateMetaInfo:
    """Return the description of a keyed state as one of the other API; states that are not of keys stay as they are.

    Raises
    ------
    UnsupportedError
        It is an asynchronous map of Flink 2.0, which does not describe the keys of maps.
    """
    backend_type = _TYPES[api]
    if meta.backend_type not in _TYPES.values() or meta.backend_type == backend_type or meta.namespace is None:
        return meta
    *keys, value = (_part(p, api) for p in meta.parts or (unwrap(meta.value),))
    serializers = {"VALUE_SERIALIZER": value, "NAMESPACE_SERIALIZER": meta.namespace}
    if api == "v2":
        serializers.update(("USER_KEY_SERIALIZER", key) for key in keys)
    elif meta.kind == "list":
        serializers["VALUE_SERIALIZER"] = flink.list_of(value)
    elif meta.kind == "map":
        if not keys:
            raise UnsupportedError("an asynchronous map whose keys are not described, as Flink 2.0 writes it").at(
                state=meta.name
            )
        serializers["VALUE_SERIALIZER"] = flink.map_of(keys[0], value)
    return replace(meta, backend_type=backend_type, serializers=serializers)


def _part(part: Serializer, api: StateApi) -> Serializer:
    return flink.ttl(part.value, asynchronous=api == "v2") if isinstance(part, TtlSerializer) else part


def api_conversions(snapshot: Inventory, api: StateApi) -> dict[str, dict[str, TypeConversion]]:
    """Return the conversions of all keyed states of a snapshot to an API, by operator id and state."""
    if api not in _TYPES:
        raise OptionError(f"state_api={api!r} is not one of {', '.join(_TYPES)}")
    found: dict[str, dict[str, TypeConversion]] = {}
    for operator in snapshot.operators.values():
        for name, (_, meta) in operator.keyed_states.items():
            after = as_state_of(meta, api)
            if after is not meta:
                found.setdefault(operator.state.operator_id, {})[name] = TypeConversion(
                    before=meta_bytes(meta),
                    before_types=operator.types,
                    after=meta_bytes(after),
                    types=operator.types,
                    choices=Choices(),
                )
    return found
