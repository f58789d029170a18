"""Options shared by all functions and commands that write a changed copy of a snapshot, each declared once.

``python -m tools.verbs`` writes the signatures and docstrings of the functions from them, and :mod:`statetool.cli.options` the commands.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from typing_extensions import Self

from statetool.saving.forms import DEFAULT_FORMAT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from statetool.api.execution import Execution
    from statetool.api.savepoint import Savepoint
    from statetool.saving.forms import SnapshotForm
    from statetool.snapshot.inventory import Inventory


def described(doc: str = "", help: str = "", **more: Any) -> dict[str, Any]:
    """Describe a field that is a parameter of a function, an option of a command, or both.

    Parameters
    ----------
    doc
        Its description in docstrings, if it is a parameter of the function.
    help
        Its description in ``--help``, if it is an option of the command.
    more
        ``flag``: the option and its metavar, if they are not those of the field's name and type. ``positional``: the function takes it by
        position. ``argument``: the metavar of an argument of the command. ``required``: the command needs it. ``kind``: that of its text, if
        it does not follow from the type (:mod:`statetool.cli.verb`). ``names``: what the shell completes. ``least``: the smallest number.
        ``example``: the hint if a value is malformed.
    """
    return {"doc": doc, "help": help, **more}


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyOptions:
    """Options of the new snapshot, which commands have too, in the order of ``--help``."""

    dry_run: bool = field(
        default=False,
        metadata=described("Only plan, without writing.", "Show the changes without writing anything."),
    )
    take_over: bool = field(
        default=False,
        metadata=described(
            "Take over the target from a write that may still be running: the one that publishes first succeeds, the other fails. By"
            " default, statetool takes over only if that write's process on this machine ended, or if it began 24 hours ago on another"
            " machine.",
            "Take over DST from another write, which may still be running.",
        ),
    )
    checkpoint_id: int | None = field(
        default=None,
        metadata=described(
            "Checkpoint id of the new snapshot. Defaults to that of the snapshot that is copied, or to the highest one if state comes from several.",
            "Checkpoint id of the new snapshot.  [default: that of SRC]",
            least=0,
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOptions(CopyOptions):
    """Options of functions that write a changed copy of a snapshot, and the steps that all of them have."""

    spark: SparkSession | None = field(
        default=None, metadata=described("Session to run on. Without one, threads of this process are used.")
    )
    uids: Iterable[str] = field(
        default=(),
        metadata=described("Uids of operators whose uid the snapshot does not store, if it is given as a path."),
    )
    rebase: Mapping[str, str] | None = field(
        default=None,
        metadata=described(
            "``{old prefix: new prefix}`` for absolute paths of files that were moved, if the snapshot is given as a path."
        ),
    )
    progress: Callable[[int], object] | None = field(
        default=None, metadata=described("Called with the number of bytes processed (not on Spark).")
    )

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Self:
        """Return the options among the arguments of a function, ``locals()`` at its first line."""
        return cls(**{f.name: values[f.name] for f in fields(cls) if f.name in values})

    @property
    def execution(self) -> Execution:
        """Where the streams are written."""
        from statetool.api.execution import Execution

        return Execution(self.spark, progress=self.progress)

    def open(self, src: str | Savepoint, dst: str) -> Inventory:
        """Return the inventory of a snapshot that is to be written to a target; errors as for :meth:`check_target`."""
        from statetool.api.load import inventory_of

        inventory = inventory_of(src, self.uids, self.rebase)
        self.check_target(inventory, dst)
        return inventory

    def check_target(self, base: Inventory, dst: str) -> None:
        """Check a target before any state is read.

        Raises
        ------
        OptionError
            The target is inside the snapshot ``base``.
        TargetExistsError
            The target exists, or another write to it may still be running.
        """
        from statetool.saving.overlap import check_outside
        from statetool.saving.publish import Publication

        Publication.check(dst, take_over=self.take_over)
        check_outside(dst, base)

    def write(
        self,
        base: Inventory,
        dst: str,
        *,
        flink_version: str | None = None,
        prove: Callable[[], object] | None = None,
        **composition: Any,
    ) -> None:
        """Write a changed copy. A dry run does the same, except for writing it and ``prove``.

        Parameters
        ----------
        flink_version
            Release that will read it. By default, the metadata version of the base stays.
        prove
            Called before the copy is published, while ``dst`` opens as the copy in this thread. If it raises an error, nothing is published.
        composition
            The changes: arguments of :class:`statetool.saving.composition.Composition`.
        """
        from statetool.saving.compose import rehearse_composition, write_composition
        from statetool.saving.composition import Composition
        from statetool.saving.plan_checks import warn_of_assumed_timers
        from statetool.saving.versions import parse_release, warn_if_unreleased

        planned = Composition(base=base, checkpoint_id=self.checkpoint_id, **composition)
        warn_of_assumed_timers(planned, stacklevel=4)
        release = parse_release(flink_version, default=base.metadata.version)
        warn_if_unreleased(flink_version, stacklevel=3)
        runner = self.execution.runner()
        if self.dry_run:
            rehearse_composition(planned, dst, release, runner, take_over=self.take_over)
        else:
            write_composition(planned, dst, release, runner, take_over=self.take_over, prove=prove)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyedWriteOptions(WriteOptions):
    """Options of functions that write keyed state in the canonical format, in the native one of a backend, or in that of the base."""

    format: str = DEFAULT_FORMAT
    backend: str | None = None

    def __post_init__(self) -> None:
        _ = self.form  # a form that does not exist is refused before anything is read

    @property
    def form(self) -> SnapshotForm:
        """The form of keyed state in the new snapshot."""
        from statetool.saving.forms import parse_form

        return parse_form(self.format, self.backend)

    def write(self, base: Inventory, dst: str, **more: Any) -> None:
        """Write a changed copy in the chosen form; parameters as for :meth:`WriteOptions.write`."""
        WriteOptions.write(self, base, dst, form=self.form, **more)
