"""Follow checkpoints by batches of changes, for PySpark before 4.2, whose streams do not tell a source the position.

The position is the name of an empty file below ``--offsets``, which is written after the batch. A batch that was killed is read again from the
position before it, and changes that the table has are not applied twice (:mod:`statetool.spark.folding`). If the checkpoint of the position is
gone, the next batch is the whole table.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from statetool.cli.output import echo_err
from statetool.errors import CheckpointDeletedError, FormatError, OptionError, SnapshotNotFoundError
from statetool.io import files, targets
from statetool.operations.directories.following import completed_checkpoints
from statetool.operations.directories.heads import SnapshotHead

_POSITION: Final = re.compile(r"checkpoint-(\d+)")
#: Maximum number of successive batches whose checkpoints may be deleted while they are read.
_MOST_DELETED: Final = 5
#: Options of streams that choose checkpoints.
_OF_STREAMS: Final = frozenset(
    (
        "startingCheckpoint", "endingCheckpoint", "maxSnapshotsPerTrigger", "backlogThreshold", "intervalDuringBacklog", "skipBacklog",
        "initialRows",
    )
)  # fmt: skip


def follow_in_batches(
    spark: Any,
    root: str,
    options: Mapping[str, str],
    fold: Callable[[Any, int], None],
    offsets: str,
    *,
    seconds: float | None,
) -> None:
    """Fold the changes of all new checkpoints, again and again.

    Parameters
    ----------
    options
        Options of the data source, with ``mode=changes``.
    offsets
        A directory for the position.
    seconds
        Time between two looks for new checkpoints; ``None`` to end after those that exist.

    Raises
    ------
    CheckpointDeletedError
        The checkpoint of the position was deleted, and ``failOnDataLoss`` is true; or checkpoints are deleted again and again.
    OptionError
        An option is for streams.
    """
    if given := _OF_STREAMS & options.keys():
        raise OptionError(f"{min(given)} is an option of streams", hint="use PySpark 4.2 or later")
    targets.make_dir(offsets)
    position, deleted, batch = _read_position(offsets), 0, 0
    known: dict[str, SnapshotHead] = {}
    is_whole = position is None
    while True:
        ids = _completed(root, known)
        newest = max(ids, default=None)
        if newest is not None and (position is None or newest > position):
            if position is not None and position not in ids and options.get("failOnDataLoss") == "true":
                raise CheckpointDeletedError(
                    f"checkpoint {position} was deleted before the next one was read", hint="retain more checkpoints"
                )
            start = newest if is_whole or position is None or position not in ids else position
            try:
                fold(_changes(spark, root, options, start, newest), batch)
            except (SnapshotNotFoundError, FormatError) as error:
                # The whole table of the newest checkpoint, because the position or a checkpoint after it is gone.
                deleted += 1
                if deleted > _MOST_DELETED or (start == newest and isinstance(error, FormatError)):
                    raise
                is_whole = True
                echo_err(f"{error.message}; reading the newest checkpoint")
                continue
            position, deleted, is_whole, batch = newest, 0, False, batch + 1
            _write_position(offsets, newest)
        if seconds is None:
            return
        time.sleep(seconds)


def _completed(root: str, known: dict[str, SnapshotHead] | None = None) -> list[int]:
    return [head.checkpoint_id for head in completed_checkpoints(root, known) if head.checkpoint_id is not None]


def _changes(spark: Any, root: str, options: Mapping[str, str], start: int, end: int) -> Any:
    """Return what changed after a checkpoint; all rows of one checkpoint if ``start`` is ``end``.

    Raises
    ------
    CheckpointDeletedError
        A checkpoint of the ends was deleted in the meantime.
    """
    span = {
        "startingCheckpoint": str(start),
        "endingCheckpoint": str(end),
        "initialRows": "true" if start == end else "false",
        "failOnDataLoss": "true",
    }
    frame = spark.read.format("flink-state").options(**{**options, **span}).load(root).persist()
    frame.count()
    # A checkpoint that was gone when the batch was planned would be missing in it without an error.
    remaining = _completed(root)
    for checkpoint in (start, end):
        if checkpoint not in remaining:
            frame.unpersist()
            raise CheckpointDeletedError(f"checkpoint {checkpoint} was deleted while it was read")
    return frame


def _positions(offsets: str) -> dict[int, str]:
    found = ((name, _POSITION.fullmatch(name)) for name in targets.list_sizes(offsets))
    return {int(match[1]): name for name, match in found if match is not None}


def _read_position(offsets: str) -> int | None:
    return max(_positions(offsets), default=None)


def _write_position(offsets: str, checkpoint: int) -> None:
    older = _positions(offsets)
    if checkpoint not in older:
        targets.put_new(files.join(offsets, f"checkpoint-{checkpoint}"), b"")
    for number, name in older.items():
        if number < checkpoint:
            targets.remove(files.join(offsets, name))
