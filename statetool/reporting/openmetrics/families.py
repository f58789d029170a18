"""The metric families, and the OpenMetrics text format (https://github.com/prometheus/OpenMetrics).

Every family is a gauge. A sample that is not known is left out: it is never 0. All labels of job ids are named ``job_id``, because Prometheus
sets a label ``job`` itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from statetool.errors import printable

CONTENT_TYPE: Final = "application/openmetrics-text; version=1.0.0; charset=utf-8"
#: For scrapers that do not ask for OpenMetrics: the text is valid in the format of Prometheus, too.
PROMETHEUS_CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_JOB: Final = ("job_id", "job_name")
_OPERATOR: Final = (*_JOB, "operator", "operator_name")
_STATE: Final = (*_OPERATOR, "scope", "state")
_TIMER: Final = (*_OPERATOR, "state", "domain")
_SOURCE: Final = (*_OPERATOR, "connector")


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """A metric family. ``unit`` is empty for counts and ids; ``reads`` is the ``--read`` choice that adds it, empty if sizes suffice."""

    help: str
    labels: tuple[str, ...]
    unit: str = ""
    reads: str = ""


#: The families by name, in the order of the text.
FAMILIES: Final[Mapping[str, Family]] = {
    "statetool_job_readable": Family(
        labels=_JOB, help="1 if the values are those of the job's newest checkpoint, 0 if it could not be read."
    ),
    "statetool_checkpoint_id": Family(labels=_JOB, help="Id of the checkpoint or savepoint."),
    "statetool_checkpoint_timestamp_seconds": Family(
        labels=_JOB, unit="seconds", help="Time when its _metadata was written."
    ),
    "statetool_checkpoint_bytes": Family(
        labels=_JOB, unit="bytes", help="State that it needs, shared files of earlier checkpoints included."
    ),
    "statetool_metadata_bytes": Family(labels=_JOB, unit="bytes", help="Size of its _metadata."),
    "statetool_operator_bytes": Family(
        labels=(*_OPERATOR, "slot"), unit="bytes", help="State of an operator by slot, as stored."
    ),
    "statetool_operator_largest_subtask_bytes": Family(
        labels=_OPERATOR, unit="bytes", help="State of the subtask that has most."
    ),
    "statetool_operator_parallelism": Family(labels=_OPERATOR, help="Parallelism."),
    "statetool_operator_max_parallelism": Family(labels=_OPERATOR, help="Max parallelism, the number of key groups."),
    "statetool_state_bytes": Family(
        labels=_STATE, unit="bytes", help="Entries of a state. Keyed state needs --read keyed."
    ),
    "statetool_state_entries": Family(
        labels=_STATE, help="Number of entries of a state. Keyed state needs --read keyed."
    ),
    "statetool_state_largest_value_bytes": Family(
        labels=_STATE, unit="bytes", help="Largest value of a state. Keyed state needs --read keyed."
    ),
    "statetool_state_keys": Family(labels=_STATE, reads="keyed", help="Number of distinct keys of a state."),
    "statetool_operator_keys": Family(labels=_OPERATOR, reads="keyed", help="Number of distinct keys of an operator."),
    "statetool_operator_unread_bytes": Family(
        labels=_OPERATOR, unit="bytes", reads="keyed", help="Keyed state that cannot be read."
    ),
    "statetool_timers": Family(labels=_TIMER, reads="keyed", help="Number of timers."),
    "statetool_timers_overdue": Family(
        labels=_TIMER, reads="keyed", help="Processing-time timers that were due when _metadata was written."
    ),
    "statetool_timers_earliest_timestamp_seconds": Family(
        labels=_TIMER, unit="seconds", reads="keyed", help="Firing time of the earliest timer."
    ),
    "statetool_connector_readable": Family(
        labels=_OPERATOR, reads="connectors", help="1 if the state of a source or sink was decoded, 0 if not."
    ),
    "statetool_source_splits": Family(
        labels=(*_SOURCE, "status"), reads="connectors", help="Number of splits: held by readers, or by status."
    ),
    "statetool_source_problems": Family(
        labels=_SOURCE, reads="connectors", help="Number of contradictions between readers and enumerator."
    ),
    "statetool_source_position": Family(
        labels=(*_SOURCE, "split"), reads="connectors", help="Next offset of a split, if it is a number."
    ),
    "statetool_source_lag": Family(
        labels=(*_SOURCE, "split"),
        reads="connectors",
        help="End offset minus next offset. Needs --ends or --bootstrap-servers.",
    ),
    "statetool_sink_pending_transactions": Family(
        labels=(*_SOURCE, "role"), reads="connectors", help="Number of uncommitted transactions or files."
    ),
    "statetool_sink_open_transactions": Family(
        labels=(*_SOURCE, "role"), reads="connectors", help="Number of those that a restore aborts."
    ),
    "statetool_sink_oldest_pending_checkpoint_id": Family(
        labels=(*_SOURCE, "role"), reads="connectors", help="Oldest checkpoint with an uncommitted transaction."
    ),
}


@dataclass(frozen=True, slots=True)
class Samples:
    """Values by family and by values of the family's labels."""

    values: dict[str, dict[tuple[str, ...], float]] = field(default_factory=dict)

    def add(self, family: str, value: float | None, **labels: str) -> None:
        """Add a value to the sample with these labels. ``None`` adds nothing."""
        if value is not None:
            of_family = self.values.setdefault(family, {})
            # Names come from snapshots: control characters, and lone surrogates, which UTF-8 does not support, become escapes.
            key = tuple(printable(labels[name]) for name in FAMILIES[family].labels)
            of_family[key] = of_family.get(key, 0) + value


def render(samples: Iterable[Samples]) -> str:
    """Return samples as OpenMetrics text. Each set of labels must occur only once."""
    parts, lines = list(samples), list[str]()
    for name, family in FAMILIES.items():
        found = [item for part in parts for item in part.values.get(name, {}).items()]
        if found:
            lines += _head(name, family)
            lines += (f"{name}{{{_labels(family, values)}}} {_number(value)}" for values, value in found)
    return "\n".join([*lines, "# EOF", ""])


def _head(name: str, family: Family) -> Iterator[str]:
    yield f"# TYPE {name} gauge"
    if family.unit:
        yield f"# UNIT {name} {family.unit}"
    yield f"# HELP {name} {family.help}"


def _labels(family: Family, values: tuple[str, ...]) -> str:
    return ",".join(f'{name}="{_escape(value)}"' for name, value in zip(family.labels, values, strict=True))


def _escape(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"')


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(float(value))
