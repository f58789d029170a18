"""Description of a state for users: its kind and types, and why it cannot be read."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Literal

from statetool.formats.naming import types_to_declare
from statetool.formats.state_meta import StateMetaInfo
from statetool.serializers.base import Serializer, all_parts
from statetool.serializers.pyflink import what_to_declare
from statetool.serializers.runtime import TtlSerializer
from statetool.snapshot.html import html_table


@dataclass(frozen=True, slots=True, kw_only=True)
class StateInfo:
    """One state as shown to users. ``reason`` says why it is not readable, or which declaration would show more than bytes."""

    operator: str
    name: str
    scope: Literal["keyed", "operator"]
    kind: str
    key_type: str | None
    namespace_type: str | None
    value_type: str
    ttl: bool
    readable: bool
    reason: str

    def _repr_html_(self) -> str:
        """Return the description of the state as HTML, one line per property."""
        return html_table(self.name, (), [(f.name, getattr(self, f.name)) for f in fields(self)])


def uses_ttl(serializer: Serializer) -> bool:
    """Return True if values, elements or map values carry their last access time."""
    return any(isinstance(part, TtlSerializer) for part in all_parts(serializer))


def unread_info(operator: str, scope: Literal["keyed", "operator"], reason: str) -> StateInfo:
    """Return a placeholder row for all keyed or all operator state of an operator, if this state cannot be listed."""
    return StateInfo(
        operator=operator,
        name=f"({scope} state)",
        scope=scope,
        kind="unread",
        key_type=None,
        namespace_type=None,
        value_type="not read",
        ttl=False,
        readable=False,
        reason=reason,
    )


def state_info(
    operator: str,
    meta: StateMetaInfo,
    scope: Literal["keyed", "operator"],
    *,
    key: Serializer | None = None,
    key_found: bool = False,
) -> StateInfo:
    """Return a state of an operator as a row.

    Parameters
    ----------
    key
        The serializer of the keys of keyed state.
    key_found
        Whether the key type was inferred from the key groups of the keys.
    """
    involved = [*meta.serializers.values(), *([key] if key is not None else [])]
    reason = "; ".join(dict.fromkeys(r for s in involved for r in _opaque_reasons(s)))
    declarable = types_to_declare(meta, key)
    if scope == "operator" and "KEY_SERIALIZER" in meta.serializers:
        key = meta.serializers["KEY_SERIALIZER"]
    return StateInfo(
        operator=operator,
        name=meta.name,
        scope=scope,
        kind=meta.kind,
        key_type=None if key is None else f"{key.type_name}{' (found by key groups)' if key_found else ''}",
        namespace_type=meta.namespace.type_name if meta.namespace is not None else None,
        value_type=meta.value.type_name,
        ttl=uses_ttl(meta.value),
        readable=not reason,
        reason=reason or what_to_declare(meta.name, meta.serializers) or declarable,
    )


def _opaque_reasons(serializer: Serializer) -> Iterable[str]:
    if serializer.needs_frame:
        missing = "" if serializer.children() else serializer.missing_declaration_hint
        yield f"{serializer.type_name}: {missing}" if missing else serializer.type_name
    for _, child in serializer.children():
        yield from _opaque_reasons(child)
