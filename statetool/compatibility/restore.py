"""The restore that is checked: the snapshot, what is known of the new job, and how the job is started."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from statetool.compatibility.classes.job_classes import jars_of, strings_in_jars
from statetool.compatibility.classes.undescribed_subclasses import hidden_subclasses
from statetool.compatibility.job_graph import JobGraph
from statetool.compatibility.running.summary import RunOptions
from statetool.compatibility.states import Hidden, Job, RanStates
from statetool.compatibility.verdicts import Level, Resolution, combine
from statetool.errors import FormatError, OptionError
from statetool.formats.metadata.properties import CheckpointProperties, read_properties
from statetool.formats.operator_id import operator_id_for_uid
from statetool.operations.advice.configuration import Configuration
from statetool.operations.advice.restore_settings import ClaimMode, claim_mode
from statetool.snapshot.inventory import Inventory
from statetool.snapshot.operator import OperatorInventory

if TYPE_CHECKING:
    from collections.abc import Iterator

    from statetool.compatibility.running.runner import Runner


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreOptions:
    """How the job is started, as far as the user says. Options that are not given come from the configuration.

    Attributes
    ----------
    parallelism, max_parallelism
        Those with which the new job runs. Otherwise those of its savepoint count.
    last_state
        The job is started again from its high-availability data, as operators of Kubernetes do with ``upgradeMode: last-state``.
    map_uids
        Uid or id of an operator of the snapshot, and uid or id that it has in the new job (``setUidHash``).
    graph
        The job graph of the new job.
    run
        How the classes of the new job are run, ``None`` if they are not.
    all_files
        Each file of the snapshot is looked for, also if that takes many requests.
    """

    config: Configuration | None = None
    parallelism: int | None = None
    max_parallelism: int | None = None
    claim_mode: ClaimMode | None = None
    allow_non_restored: bool | None = None
    last_state: bool = False
    map_uids: Mapping[str, str] = field(default_factory=dict)
    graph: JobGraph | None = None
    run: RunOptions | None = None
    all_files: bool = False

    @property
    def mode(self) -> ClaimMode | None:
        """The claim mode, ``None`` if it is not known: Flink's default is NO_CLAIM."""
        if self.claim_mode is not None or self.config is None:
            return self.claim_mode
        return claim_mode(self.config)

    @property
    def skips_state(self) -> bool:
        """Whether state that the job does not have is left out (``--allowNonRestoredState``)."""
        if self.allow_non_restored is not None:
            return self.allow_non_restored
        return self.config is not None and self.config.flag("execution.state-recovery.ignore-unclaimed-state")

    @property
    def set_max_parallelism(self) -> int | None:
        """The max parallelism that the job sets; ``None`` if that is not known."""
        if self.max_parallelism is not None or self.config is None:
            return self.max_parallelism
        number = self.config.number("pipeline.max-parallelism")
        return number if number is not None and number > 0 else None


@dataclass(frozen=True, slots=True)
class Pair:
    """An operator of the snapshot, and the operator of the new job that restores it. ``new`` is ``None`` if no snapshot of the job is known."""

    old: OperatorInventory
    new: OperatorInventory | None


class Restore:
    """A restore: the facts of all steps.

    Parameters
    ----------
    old
        The snapshot.
    new
        A snapshot of the new job, ``None`` if only its release or its jar is known.
    runner
        Runs the classes of the new job, ``None`` if they are not run.
    """

    def __init__(
        self, old: Inventory, new: Inventory | None, job: Job, options: RestoreOptions, runner: Runner | None = None
    ) -> None:
        self.old = old
        self.new = new
        self.job = job
        self.options = options
        self.runner = runner
        self._ran: dict[str, RanStates] = {}
        self._hidden: dict[str, tuple[Resolution, Hidden]] = {}

    @property
    def has_snapshot(self) -> bool:
        """Whether a snapshot of the new job is known. Otherwise its states are those of the old one, with the classes of its jar."""
        return self.new is not None and not any(o.types.renewed for o in self.new.operators.values())

    @cached_property
    def properties(self) -> CheckpointProperties | None:
        """The properties of the snapshot; ``None`` before metadata version 4."""
        return _properties(self.old)

    @cached_property
    def new_properties(self) -> CheckpointProperties | None:
        """The properties of the snapshot of the new job; ``None`` if it has none."""
        return None if self.new is None else _properties(self.new)

    @property
    def releases(self) -> tuple[str, ...]:
        """The Flink releases that the new job may have, oldest first; none if that is not known."""
        return self.job.releases

    @cached_property
    def _new_by_id(self) -> dict[str, OperatorInventory]:
        return {} if self.new is None else {o.state.operator_id: o for o in self.new.operators.values()}

    @cached_property
    def _renamed(self) -> dict[str, str]:
        """Ids of operators of the snapshot, and ids that they have in the new job."""
        renamed = {}
        for before, after in self.options.map_uids.items():
            operator_id = self.old.operator(before).state.operator_id
            if not self.has_snapshot or self.new is None:
                renamed[operator_id] = after
                continue
            found = self._new_by_id.get(operator_id_for_uid(after)) or self.new.operator(after)
            renamed[operator_id] = found.state.operator_id
        if len(set(renamed.values())) < len(renamed):
            raise OptionError(
                "two operators are mapped to the same operator of the new job", hint="check --map OLD=NEW"
            )
        return {**self.by_hash, **renamed}

    @cached_property
    def by_hash(self) -> Mapping[str, str]:
        """Ids of operators that the jar of the new job has as texts, and the ids of the operators that restore them (``setUidHash``).

        A snapshot of the new job has the operators under ids that Flink generated (``StateAssignmentOperation``). Only an operator that has the
        same states can be the one, if there is no other.
        """
        if not self.has_snapshot or not self.new_jars:
            return {}
        gone = {i: o for i, o in self._old_by_id.items() if i not in self._new_by_id and _state_names(o)}
        fresh = [o for i, o in self._new_by_id.items() if i not in self._old_by_id and _state_names(o)]
        if not gone or not fresh:
            return {}
        alike = {
            i: [o for o in fresh if _state_names(o) == _state_names(gone[i])]
            for i in strings_in_jars(self.new_jars, gone)
        }
        return {i: found[0].state.operator_id for i, found in alike.items() if len(found) == 1}

    def successor(self, old: OperatorInventory) -> OperatorInventory | None:
        """Return the operator of the new job that restores an operator; ``None`` if it has none, or is not known."""
        operator_id = old.state.operator_id
        return self._new_by_id.get(self._renamed.get(operator_id, operator_id))

    @cached_property
    def pairs(self) -> tuple[Pair, ...]:
        """The operators of the snapshot that the new job has; all of them if no snapshot of the job is known."""
        found = ((old, self.successor(old)) for old in self.old.operators.values())
        return tuple(Pair(old, new) for old, new in found if new is not None or self.new is None)

    @cached_property
    def removed(self) -> tuple[OperatorInventory, ...]:
        """The operators of the snapshot that the new job does not have."""
        known = {p.old.state.operator_id for p in self.pairs}
        return tuple(o for i, o in self._old_by_id.items() if i not in known)

    @cached_property
    def _old_by_id(self) -> dict[str, OperatorInventory]:
        return {o.state.operator_id: o for o in self.old.operators.values()}

    @cached_property
    def added(self) -> tuple[OperatorInventory, ...]:
        """The operators that only the new job has."""
        known = {p.new.state.operator_id for p in self.pairs if p.new is not None}
        return tuple(o for i, o in self._new_by_id.items() if i not in known)

    def hidden(self, pair: Pair) -> tuple[Resolution, Hidden]:
        """Return the resolutions of values that no header describes: of the keys, and by scope and state."""
        operator_id = pair.old.state.operator_id
        if operator_id not in self._hidden:
            self._hidden[operator_id] = hidden_values(pair.old, pair.new, self.job)
        return self._hidden[operator_id]

    def ran(self, pair: Pair) -> RanStates:
        """Return the results of a run of the new job's classes, by scope and state; none without a run."""
        if self.runner is None or pair.new is None:
            return {}
        operator_id = pair.old.state.operator_id
        if operator_id not in self._ran:
            self._ran[operator_id] = self.runner.results(pair.old, pair.new, self.job)
        return self._ran[operator_id]

    @property
    def new_jars(self) -> tuple[str, ...]:
        """The jars of the new job, as far as they are known."""
        return () if self.job.classes is None else jars_of(self.job.classes.new.source)

    @property
    def old_jars(self) -> tuple[str, ...]:
        """The jars of the old job, as far as they are known."""
        return jars_of(self.old.types.source)

    @property
    def parallelism_changes(self) -> Iterator[tuple[Pair, int]]:
        """The operators that run with another parallelism in the new job, with that parallelism, as far as it is known."""
        for pair in self.pairs:
            after = self.parallelism_of(pair)
            if after is not None and after != pair.old.state.parallelism:
                yield pair, after

    def parallelism_of(self, pair: Pair) -> int | None:
        """Return the parallelism of an operator in the new job: as given, or as in the snapshot of the job; ``None`` if not known."""
        given = self.options.parallelism
        if pair.old.state.max_parallelism == 1 and pair.new is not None:
            return pair.new.state.parallelism
        if given is not None:
            return given
        return None if pair.new is None else pair.new.state.parallelism


def _state_names(operator: OperatorInventory) -> set[str]:
    return {*operator.listed_keyed, *operator.listed_elements}


def _properties(snapshot: Inventory) -> CheckpointProperties | None:
    try:
        return read_properties(snapshot.metadata.properties)
    except FormatError:
        return None


def hidden_values(old: OperatorInventory, new: OperatorInventory | None, job: Job) -> tuple[Resolution, Hidden]:
    """Return the resolutions of values that no header describes: of the keys, and by scope and state."""
    from statetool.compatibility.rules.plans import plan_resolutions

    if job.classes is not None:
        hidden = dict(job.classes.resolutions(old))
    else:
        hidden = {} if new is None else dict(hidden_subclasses(old, new))
    key = hidden.pop(("keyed", ""), Resolution(Level.AS_IS))
    plans = plan_resolutions(old, new)
    key = combine([key, plans.pop(("keyed", ""), Resolution(Level.AS_IS))])
    return key, {**hidden, **{at: combine([r, *([hidden[at]] if at in hidden else [])]) for at, r in plans.items()}}
