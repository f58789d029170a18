"""Growth of a job's state over the checkpoints below a directory."""

from __future__ import annotations

from dataclasses import replace

from statetool.analysis.statistics.records import GrowthRow
from statetool.analysis.statistics.statistics import Each, StatisticsRequest, statistics_of
from statetool.errors import CheckpointDeletedError, SnapshotNotFoundError
from statetool.html.records import RecordList
from statetool.io import files
from statetool.io.deletion import noticing_deletion
from statetool.operations.directories.snapshots import chain_of, list_snapshots
from statetool.snapshot.inventory import Inventory
from statetool.snapshot.locate import METADATA_NAME


def growth_rows(root: str, rebase: tuple[tuple[str, str], ...], each: Each) -> list[GrowthRow]:
    """Return the rows of :func:`statetool.growth`."""
    snapshots = [row for row in list_snapshots(root, rebase=dict(rebase)) if row.complete]
    if not snapshots:
        raise SnapshotNotFoundError(
            f"no complete snapshot below {root}", hint=f"list the snapshots: statetool ls {root}"
        )
    rows: list[GrowthRow] = []
    before: dict[tuple[str, str, str], GrowthRow] = {}
    deleted: CheckpointDeletedError | None = None
    for snapshot in snapshots:
        try:
            with noticing_deletion(files.join(snapshot.path, METADATA_NAME)):
                measured = _rows(Inventory(snapshot.path, rebase=rebase), each)
        except CheckpointDeletedError as error:
            deleted = error  # omitted, as if it had been deleted before the listing
            continue
        for row in measured:
            state = (chain_of(snapshot), row.operator, row.state)
            rows.append(_since(before.get(state), row))
            before[state] = row
    if deleted is not None and not before:
        raise deleted
    return RecordList(rows)


def _since(last: GrowthRow | None, row: GrowthRow) -> GrowthRow:
    if last is None:
        return row
    return replace(
        row, entries_added=_growth(last.entries, row.entries), bytes_added=_growth(last.size_bytes, row.size_bytes)
    )


def _growth(before: int | None, after: int | None) -> int | None:
    return None if before is None or after is None else after - before


def _rows(inventory: Inventory, each: Each) -> list[GrowthRow]:
    request = StatisticsRequest.of(largest=0)
    statistics = statistics_of(list(inventory.operators.values()), request, each)
    # Unreadable state was not counted: its size is unknown, not 0.
    unread = {("keyed", r.operator) for r in statistics.rows("operators") if r.unread_bytes}
    return [
        GrowthRow(
            checkpoint_id=inventory.metadata.checkpoint_id,
            path=inventory.path,
            operator=state.operator,
            state=state.state,
            entries=None if (state.scope, state.operator) in unread else state.entries,
            size_bytes=None if (state.scope, state.operator) in unread else state.size_bytes,
            entries_added=None,
            bytes_added=None,
        )
        for state in statistics.rows("states")
    ]
