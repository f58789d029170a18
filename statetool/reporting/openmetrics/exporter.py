"""Metrics that follow a job: a new checkpoint is read once, and nothing is read as long as there is no new one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from statetool.errors import CheckpointDeletedError, StatetoolError
from statetool.io import files
from statetool.io.deletion import noticing_deletion
from statetool.io.threads import in_threads
from statetool.reporting.openmetrics.collect import Collected, Ends, Read, collect, job_labels, lag_samples
from statetool.reporting.openmetrics.families import Samples, render
from statetool.reporting.openmetrics.targets import Find, Target
from statetool.snapshot.inventory import Inventory
from statetool.snapshot.locate import METADATA_NAME

if TYPE_CHECKING:
    from statetool.analysis.statistics.statistics import Each

#: How often a job may delete the checkpoint that is being read.
_MOST_DELETED: Final = 5


class Exporter:
    """The metrics of some jobs.

    Parameters
    ----------
    find
        Finds the snapshots to measure.
    open
        Opens the snapshot at a path.
    read
        State to read, besides metadata.
    ends
        End offsets of sources, asked for again at each refresh.
    each
        Calls a function for each item, to read keyed state.
    """

    def __init__(
        self,
        find: Find,
        open: Callable[[str], Inventory],
        read: Sequence[Read] = (),
        ends: Ends | None = None,
        each: Each = in_threads,
    ) -> None:
        self._find = find
        self._open = open
        self._read = read
        self._ends = ends
        self._each = each
        self._known: dict[tuple[str, str], _Known] = {}
        self._text = render(())

    @property
    def text(self) -> str:
        """The OpenMetrics text of the last refresh."""
        return self._text

    @property
    def is_readable(self) -> bool:
        """Whether the newest snapshot of some job was read by the last refresh."""
        return any(known.readable for known in self._known.values())

    @property
    def unread(self) -> list[str]:
        """Why some state of the snapshots could not be read. Its samples are left out."""
        collected = [known.collected for known in self._known.values() if known.collected is not None]
        return list(dict.fromkeys(reason for of_job in collected for reason in of_job.unread))

    def refresh(self) -> list[StatetoolError]:
        """Read new snapshots, and return the errors of jobs whose newest snapshot could not be read.

        Such a job keeps its last samples, and ``statetool_job_readable`` is 0. If not even the jobs were found, this applies to all.
        """
        for _ in range(_MOST_DELETED):
            errors = self._refresh()
            if not any(isinstance(error, CheckpointDeletedError) for error in errors):
                break
        self._text = render(samples for known in self._known.values() for samples in known.samples())
        return errors

    def _refresh(self) -> list[StatetoolError]:
        for known in self._known.values():
            known.readable = False
        try:
            targets = {(target.job_id, target.job_name): target for target in self._find()}
        except StatetoolError as error:
            return [error]
        for gone in self._known.keys() - targets.keys():
            del self._known[gone]
        errors = []
        for job, target in targets.items():
            known = self._known.setdefault(job, _Known(target=target))
            try:
                self._update(known, target)
            except StatetoolError as error:
                errors.append(error)
        return errors

    def _update(self, known: _Known, target: Target) -> None:
        """Read the target if it is another snapshot than before."""
        if target.error is not None:
            raise target.error
        if known.collected is None or target != known.target:
            file = target.metadata_file
            with noticing_deletion(files.join(target.path, METADATA_NAME) if file is None else file.uri):
                inventory = self._open(target.path)
                if target.read_names is not None and not inventory.stores_names:
                    found = target.read_names({o.operator_id: o.parallelism for o in inventory.metadata.operators})
                    inventory = inventory.with_names(found.names, found.possible)
                known.collected = collect(inventory, target, self._read, self._each)
            known.target = target
        if self._ends is not None:
            known.lag = Samples()  # an earlier lag is wrong as soon as the end offsets are not known
            known.lag = lag_samples(known.collected.sources, target, self._ends)
        known.readable = True


@dataclass(slots=True, kw_only=True)
class _Known:
    """The last known snapshot of a job, and its samples."""

    target: Target
    collected: Collected | None = None
    lag: Samples = field(default_factory=Samples)
    readable: bool = False

    def samples(self) -> list[Samples]:
        """Return the samples of the job."""
        own = Samples()
        own.add("statetool_job_readable", self.readable, **job_labels(self.target))
        return [own] if self.collected is None else [own, self.collected.samples, self.lag]
