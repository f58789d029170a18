"""Parameters of verbs that change sources and sinks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar

from statetool.api.write.verbs.base import CopyVerb, operator_parameter, parameter, positional


@dataclass(frozen=True, slots=True, kw_only=True)
class EditSource(CopyVerb):
    """Write a copy in which a source resumes from other offsets, or reads other splits. Three commands have its parameters."""

    commands: ClassVar[tuple[str, ...]] = ("sources set", "sources add", "sources remove")
    answer: ClassVar[str] = "statetool.connectors.edits.edits:SplitChange"

    uid: str = operator_parameter(
        "The source, by uid or operator id.", "Source to change, by uid, name or operator id.", positional=True
    )
    positions: Mapping[str, int | str] | None = parameter(
        'Next offset by split (``{"orders:3": 1234}``) or split id. ``earliest``, ``latest``, ... become the connector\'s markers.',
        argument="SPLIT=POSITION...",
        kind="pairs",
        default=None,
        example="set a split whose id contains an equals sign with --offsets FILE, columns split and position",
    )
    offsets: str | None = parameter(
        help="CSV file of new positions: topic,partition,offset or split,position.", flag="--offsets CSV", default=None
    )
    to: str | None = parameter(
        "Next offset of all splits.",
        "Position of all splits: earliest, latest, committed or timestamp=MS.",
        flag="--to WORD",
        default=None,
    )
    remove: Iterable[str] = parameter(
        "Splits to remove from readers and enumerator. If the job discovers one again, it starts like a new split.",
        argument="SPLIT...",
        required=True,
        default=(),
    )
    add: Mapping[str, int | str] | None = parameter(
        "New splits with their next offsets. Each is assigned to the reader with the fewest splits.",
        argument="SPLIT=POSITION...",
        kind="pairs",
        required=True,
        default=None,
    )
    upgrade_enumerator: bool = parameter(
        "Write a newer version of enumerator state if the stored version has no positions of unassigned splits (Kafka's 1 and 2 become 3).",
        "If needed, upgrade enumerator state to a version that stores positions.",
        default=False,
    )
    connector: str | None = parameter(
        "Name of the connector, if the bytes do not identify it.",
        "Name of the connector, if the bytes do not identify it.",
        default=None,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ToKafkaSource(CopyVerb):
    """Write a copy that has state of ``KafkaSource`` instead of ``FlinkKafkaConsumer``."""

    commands: ClassVar[tuple[str, ...]] = ("sources convert",)
    answer: ClassVar[str] = "statetool.connectors.edits.edits:SplitChange"

    uid: str = operator_parameter(
        "The consumer, by uid or operator id. The source of the new job has the same uid.",
        "Source to convert, by uid, name or operator id.",
        positional=True,
    )
    enumerator_version: int = parameter(
        "Version of the enumerator state to write: 1, which every release of the connector reads, 2 or 3.",
        "Version of the enumerator state: 1 (read by every release), 2 or 3.",
        default=1,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DropTransactions(CopyVerb):
    """Write a copy in which a sink does not commit some of its transactions."""

    commands: ClassVar[tuple[str, ...]] = ("sinks forget",)
    answer: ClassVar[str] = "statetool.connectors.rows:TransactionRow"

    uid: str = operator_parameter(
        "The operator that holds them (see :meth:`statetool.Operator.transactions`), by uid or operator id.",
        "Sink to change, by uid, name or operator id.",
        positional=True,
    )
    names: Iterable[str] = positional(
        "The names of the transactions, which confirms the loss of each.",
        "Transaction or file to drop, by its name in `sinks pending`.",
        flag="--lose NAME",
    )
