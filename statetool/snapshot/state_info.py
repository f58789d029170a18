"""Description of a state for users: its kind and types, and why it cannot be read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Literal

from statetool.types.operators import OperatorLabel, OperatorRecord

if TYPE_CHECKING:
    from statetool.formats.state_meta import StateMetaInfo
    from statetool.serializers.core.base import Serializer


@dataclass(frozen=True, slots=True, kw_only=True)
class StateInfo(OperatorRecord):
    """One state as shown to users. ``reason`` says why it is not readable, or which declaration would show more than bytes.

    ``operator`` is the uid, or the operator id if the uid is not known. ``uid`` and ``operator_id`` tell the two apart.
    """

    operator_id: str = field(init=False)
    uid: str = field(init=False)
    name: str
    scope: Literal["keyed", "operator"]
    kind: str
    key_type: str | None
    namespace_type: str | None
    value_type: str
    ttl: bool
    readable: bool
    reason: str

    def __post_init__(self) -> None:
        OperatorRecord.__post_init__(self)
        label = self.operator
        operator_id, uid = (label.operator_id, label.uid) if isinstance(label, OperatorLabel) else ("", "")
        object.__setattr__(self, "operator_id", operator_id)
        object.__setattr__(self, "uid", uid)

    def _repr_html_(self) -> str:
        """Return the description of the state as HTML, one line per property."""
        from statetool.html.fragment import fragment
        from statetool.html.markup import table

        words = {True: "yes", False: "no", None: "-", "": "-"}
        values = ((f.name.replace("_", " "), getattr(self, f.name)) for f in fields(self))
        rows = [(name, words.get(value, value)) for name, value in values]
        return fragment(table(("property", "value"), rows, self.name))


def undecoded_reasons(states: Mapping[str, StateInfo], table: str) -> list[str]:
    """Return the reasons why states in a table of an operator stay bytes, with the declarations that would decode them."""
    shown = [s for s in states.values() if s.scope == "keyed"] if table == "keyed_state" else [states.get(table)]
    return [f"{s.name}: {s.reason}" for s in shown if s is not None and s.reason]


def uses_ttl(serializer: Serializer) -> bool:
    """Return True if values, elements or map values carry their last access time."""
    from statetool.serializers.core.base import all_parts
    from statetool.serializers.runtime import TtlSerializer

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
    from statetool.formats.keyed.naming import types_to_declare
    from statetool.serializers.pyflink.serializer import what_to_declare

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
