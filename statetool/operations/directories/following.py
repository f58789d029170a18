"""Selection of the checkpoints to read next when following the checkpoint directory of a job."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from statetool.errors import OptionError, UnsupportedError, warn
from statetool.operations.directories.heads import SnapshotHead, checkpoint_heads
from statetool.snapshot.locate import has_complete_metadata

FOLLOW_OPTIONS: Final = (
    "mode",
    "changes",
    "initialRows",
    "upserts",
    "startingCheckpoint",
    "endingCheckpoint",
    "maxSnapshotsPerTrigger",
    "backlogThreshold",
    "intervalDuringBacklog",
    "skipBacklog",
    "failOnDataLoss",
)
#: The offset before every checkpoint.
BEFORE_ALL: Final = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowOptions:
    """Options for following a directory of checkpoints.

    Attributes
    ----------
    changes
        Read the changes since the previously read checkpoint instead of the whole state.
    initial_rows
        With ``changes``: also read the first checkpoint, with all its rows as inserts.
    upserts
        With ``changes``: do not distinguish inserts from updates, so that less has to be read.
    starting
        The first checkpoint: an id, ``earliest`` for the first that exists, or ``latest`` for the newest and those after it.
    ending
        Id of the last checkpoint. ``None`` never ends.
    most
        Maximum number of checkpoints to read at once. ``None`` reads all that exist.
    threshold
        More unread checkpoints than this count as backlog. ``None``: there is never a backlog.
    backlog_interval_ms
        During backlog, minimum interval between the checkpoints that are read. 0 reads only the newest. An interval below the
        job's checkpoint interval skips no checkpoint and causes a warning (FLIP-309 allows 0, or at least the interval).
    skip_backlog
        When the stream starts for the first time, skip the backlog except for its newest checkpoint.
    fail_on_data_loss
        Whether a checkpoint that was deleted before it was read is an error. Otherwise it is skipped with a warning.
    """

    changes: bool = False
    initial_rows: bool = True
    upserts: bool = False
    starting: int | Literal["earliest", "latest"] = "earliest"
    ending: int | None = None
    most: int | None = None
    threshold: int | None = None
    backlog_interval_ms: int = 0
    skip_backlog: bool = False
    fail_on_data_loss: bool = True

    def __post_init__(self) -> None:
        if self.most is not None and self.most < 1:
            raise OptionError(f"maxSnapshotsPerTrigger={self.most} reads nothing")
        for name, value in (("backlogThreshold", self.threshold), ("intervalDuringBacklog", self.backlog_interval_ms)):
            if value is not None and value < 0:
                raise OptionError(f"{name}={value} is below 0")
        if self.threshold is None and (self.backlog_interval_ms or self.skip_backlog):
            raise OptionError(
                "intervalDuringBacklog and skipBacklog need to know what backlog is",
                hint="set backlogThreshold: more unread checkpoints than that",
            )
        if isinstance(self.starting, int) and self.ending is not None and self.ending < self.starting:
            raise OptionError(f"endingCheckpoint={self.ending} comes before startingCheckpoint={self.starting}")

    @classmethod
    def parse(cls, texts: Mapping[str, str]) -> FollowOptions:
        """Read the options among ``texts``, by the names in :data:`FOLLOW_OPTIONS`.

        Raises
        ------
        OptionError
            A text is not valid for its option, or the class refuses the options.
        """
        changes = _flag(texts, "changes", default=texts.get("mode") == "changes")
        if texts.get("mode", "changes" if changes else "full") != ("changes" if changes else "full"):
            raise OptionError(
                f"mode={texts['mode']!r}" + (f" with changes={texts['changes']!r}" if "changes" in texts else ""),
                hint="mode=full gives the whole state of each checkpoint, mode=changes what changed in it",
            )
        for name in ("initialRows", "upserts"):
            if name in texts and not changes:
                raise OptionError(f"{name} is for mode=changes")
        start = texts.get("startingCheckpoint", "earliest")
        interval = texts.get("intervalDuringBacklog", "0")
        return cls(
            changes=changes,
            initial_rows=_flag(texts, "initialRows", default=True),
            upserts=_flag(texts, "upserts", default=False),
            starting="earliest"
            if start == "earliest"
            else "latest"
            if start == "latest"
            else _number("startingCheckpoint", start),
            ending=_optional(texts, "endingCheckpoint"),
            most=_optional(texts, "maxSnapshotsPerTrigger"),
            threshold=_optional(texts, "backlogThreshold"),
            backlog_interval_ms=_number("intervalDuringBacklog", interval),
            skip_backlog=_flag(texts, "skipBacklog", default=False),
            fail_on_data_loss=_flag(texts, "failOnDataLoss", default=True),
        )


def _number(name: str, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise OptionError(f"{name}={text!r} is not a whole number") from None


def _optional(texts: Mapping[str, str], name: str) -> int | None:
    return _number(name, texts[name]) if name in texts else None


def _flag(texts: Mapping[str, str], name: str, *, default: bool) -> bool:
    text = texts.get(name, str(default)).lower()
    if text not in ("true", "false"):
        raise OptionError(f"{name}={text!r} is neither true nor false")
    return text == "true"


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """The checkpoints to read next, oldest first. ``behind`` is the number of unread checkpoints after them."""

    chosen: tuple[int, ...]
    behind: int
    is_backlog: bool


def completed_checkpoints(root: str, known: dict[str, SnapshotHead] | None = None) -> list[SnapshotHead]:
    """Return the checkpoints below a directory by id. Savepoints, and snapshots without a readable head, are left out.

    Parameters
    ----------
    known
        Heads of earlier calls, which are not read again; see :func:`checkpoint_heads`.

    Raises
    ------
    SnapshotNotFoundError
        The directory does not exist or cannot be listed.
    OptionError
        Two checkpoints have the same id, so the directory holds more than one job.
    UnsupportedError
        The metadata version of a checkpoint is not known.
    """
    heads = checkpoint_heads(root, {} if known is None else known)
    for head in heads:
        if head.checkpoint_id is None and head.metadata_version is not None:
            raise UnsupportedError(
                f"{head.path} has metadata version {head.metadata_version}, which is not known",
                hint="it is of a release after those that this one reads",
            )
    completed = [h for h in heads if h.checkpoint_id is not None]
    for first, second in itertools.pairwise(completed):
        if first.checkpoint_id == second.checkpoint_id:
            raise OptionError(
                f"checkpoint {first.checkpoint_id} exists twice: {first.path} and {second.path}",
                hint="follow the directory of one job; a job that is restored from a checkpoint goes on with its ids",
            )
    return completed


def first_offset(completed: Sequence[SnapshotHead], options: FollowOptions) -> int:
    """Return the checkpoint id after which a new stream starts to read."""
    if isinstance(options.starting, int):
        return options.starting - 1
    ids = [h.checkpoint_id for h in completed if h.checkpoint_id is not None]
    late = options.skip_backlog and options.threshold is not None and len(ids) > options.threshold
    return ids[-1] - 1 if ids and (options.starting == "latest" or late) else BEFORE_ALL


def next_step(completed: Sequence[SnapshotHead], after: int, options: FollowOptions, most: int | None) -> Step:
    """Choose the checkpoints to read after a given one. The step is empty if no new checkpoint is complete.

    Parameters
    ----------
    completed
        The result of :func:`completed_checkpoints`.
    most
        Maximum number of checkpoints to read at once.
    """
    last = options.ending
    unread = [
        h for h in completed if (h.checkpoint_id or 0) > after and (last is None or (h.checkpoint_id or 0) <= last)
    ]
    # On file systems without atomic writes, the newest metadata may be incomplete.
    if unread and not has_complete_metadata(unread[-1].path):
        unread.pop()
    is_backlog = options.threshold is not None and len(unread) > options.threshold
    wanted = _thin_out(unread, options.backlog_interval_ms) if is_backlog else unread
    if is_backlog and len(wanted) == len(unread) > 1:
        warn(
            f"intervalDuringBacklog={options.backlog_interval_ms} is less than the interval at which this job takes checkpoints: it "
            "leaves out none; 0 reads the newest alone",
            stacklevel=2,
        )
    chosen = tuple(h.checkpoint_id or 0 for h in wanted[:most])
    behind = sum((h.checkpoint_id or 0) > chosen[-1] for h in unread) if chosen else 0
    return Step(chosen=chosen, behind=behind, is_backlog=is_backlog)


def _thin_out(unread: Sequence[SnapshotHead], interval_ms: int) -> list[SnapshotHead]:
    """Return the newest checkpoint and, if there is an interval, those before it that are at least this interval apart."""
    kept: list[SnapshotHead] = []
    for head in unread[:-1] if interval_ms else ():
        if not kept or (head.modified_ms or 0) - (kept[-1].modified_ms or 0) >= interval_ms:
            kept.append(head)
    return [*kept, unread[-1]]
