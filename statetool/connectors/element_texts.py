"""Elements of sources and sinks as text that people can read, by the connector that their bytes identify."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any, Final

from statetool.connectors import registry
from statetool.connectors.model import HeldSplit, SinkState, SourceBytes, as_json, as_plain
from statetool.connectors.sinks import ROLES, read_elements
from statetool.connectors.sources import READER_STATE
from statetool.connectors.wire import whole_versioned
from statetool.errors import StatetoolError

#: Names of the states whose elements have a version and the bytes of a connector.
CONNECTOR_STATES: Final = frozenset({READER_STATE, *ROLES})
#: Fields that describe a committable of any connector.
_PENDING: Final = (
    "name", "status", "subtask", "checkpoint_id", "retries", "version", "producer_id", "epoch", "start_ms", "size_bytes",
)  # fmt: skip


def element_texts(state: str, *sides: Iterable[bytes]) -> dict[bytes, str]:
    """Return the decoded fields of each element, as JSON. Elements that no connector reads, or that would look the same, are left out.

    Each of ``sides`` has the elements of one operator, which identify its connector together.
    """
    decode = _splits if state == READER_STATE else _sink_elements if state in ROLES else None
    if decode is None:
        return {}
    decoded: dict[bytes, Any] = {}
    for side in sides:
        distinct = list(dict.fromkeys(side))
        with suppress(StatetoolError):
            fields = decode(state, [whole_versioned(value, "an element") for value in distinct])
            decoded |= {v: f for v, f in zip(distinct, fields, strict=True) if f is not None}
    texts: dict[bytes, str] = {}
    for form in (_briefly, as_json):
        missing = {value: form(fields) for value, fields in decoded.items() if value not in texts}
        times = Counter(missing.values())
        texts |= {value: text for value, text in missing.items() if times[text] == 1}
    return texts


def _splits(_: str, elements: Sequence[tuple[int, bytes]]) -> list[Any]:
    held = tuple(HeldSplit(subtask=0, version=version, data=raw) for version, raw in elements)
    fitting = registry.recognise(SourceBytes(held=held))
    return [h.split for h in fitting[0][1].held] if len(fitting) == 1 else [None] * len(held)


def _sink_elements(state: str, elements: Sequence[tuple[int, bytes]]) -> list[Any]:
    return [_fields(element) for element in read_elements(state, elements)]


def _fields(element: SinkState | None) -> Any:
    """Return the decoded parts of an element, ``None`` if one of them is not decoded."""
    if element is None or element.unread or any(p.undecoded is not None for p in element.pending):
        return None
    if element.role == "writer":
        return element.writers[0][1] if element.writers else None
    return element.pending


def _briefly(fields: Any) -> str:
    if isinstance(fields, tuple):
        return as_json([{n: v for n in _PENDING if (v := getattr(p, n)) is not None and v != -1} for p in fields])
    return as_json(_without_nothing(as_plain(fields)))


def _without_nothing(fields: Any) -> Any:
    if isinstance(fields, dict):
        return {name: _without_nothing(v) for name, v in fields.items() if v is not None}
    return [_without_nothing(v) for v in fields] if isinstance(fields, list) else fields
