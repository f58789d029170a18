"""Five tools that return plain JSON. None of them writes, starts Spark, or runs code contained in a snapshot."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any, Final

import statetool
from statetool.cli.assistants.bounds import Root
from statetool.errors import OptionError
from statetool.tables.request import ScanRequest

MOST_ROWS: Final = 1000
#: Maximum characters of an answer with rows.
_MOST_TEXT: Final = 1 << 20
_TABLES: Final = ("operators", "states", "largest", "skew", "timers")


class Tools:
    """Tools for the snapshots below a root."""

    def __init__(self, root: str) -> None:
        self._root = Root(root)

    def list_snapshots(self) -> dict[str, Any]:
        """List the checkpoints and savepoints below the root, by path, with ids and sizes, or the error if one cannot be opened."""
        snapshots: list[dict[str, Any]] = []
        for path, opened in self._root.snapshots():
            if isinstance(opened, statetool.StatetoolError):
                snapshots.append({"path": path, "problem": str(opened)})
                continue
            operators = opened.metadata_rows("operators")
            snapshots.append(
                {
                    "path": path,
                    "checkpoint_id": opened.checkpoint_id,
                    "metadata_version": opened.metadata_version,
                    "operators": len(operators),
                    "state_bytes": sum(o.state_bytes for o in operators),
                }
            )
        return {"snapshots": snapshots}

    def describe(self, path: str) -> dict[str, Any]:
        """Describe a snapshot: its operators, with parallelism, tables, and states with their types, or the reason why one stays bytes.

        path: as returned by list_snapshots.
        """
        savepoint = self._root.open(path)
        operators = [
            asdict(row)
            | {"tables": savepoint[row.operator].tables}
            | {"states": [asdict(s) for s in savepoint[row.operator].states.values()]}
            for row in savepoint.metadata_rows("operators")
        ]
        head = {"checkpoint_id": savepoint.checkpoint_id, "metadata_version": savepoint.metadata_version}
        return _plain(head | {"operators": operators})

    def read_rows(
        self,
        path: str,
        operator: str,
        table: str = "keyed_state",
        limit: int = 20,
        keys: list[int | str | float | bool] | None = None,
    ) -> dict[str, Any]:
        """Read the first rows of a table of an operator. Values that cannot be decoded are hex digits in _undecoded.

        path, operator, table: as returned by list_snapshots and describe. limit: number of rows, at most 1000. keys: only rows with these
        keys.
        """
        from statetool.columns.python_values import rows_to_python

        if not 1 <= limit <= MOST_ROWS:
            raise OptionError(f"limit is {limit}", hint=f"ask for 1 to {MOST_ROWS} rows; keys= finds single ones")
        request = ScanRequest.of(table, keys=keys, on_error="keep_raw")
        rows: list[dict[str, Any]] = []
        size = 0
        for batch in self._root.open(path)[operator].plan(request).batches():
            for row in rows_to_python(batch.slice(0, limit + 1 - len(rows))):
                if len(rows) == limit:
                    return _plain({"rows": rows, "more": True})
                size += len(json.dumps(row, default=_text))
                if size > _MOST_TEXT and rows:
                    return _plain({"rows": rows, "more": True, "note": f"the answer ends at {_MOST_TEXT} characters"})
                rows.append(row)
        return _plain({"rows": rows, "more": False})

    def stats(self, path: str, operators: list[str] | None = None, largest: int = 10) -> dict[str, Any]:
        """Measure sizes: bytes, entries and keys by operator and state, the largest keys and values, skew across subtasks, timers.

        path: as returned by list_snapshots. operators: measure only these. largest: number of largest keys and values to list.
        """
        statistics = self._root.open(path).stats(operators=operators, largest=largest)
        tables = {name: [asdict(r) for r in statistics.rows(name)] for name in _TABLES}
        return _plain(tables | {"unread": list(statistics.unread)})

    def check(self, path: str, other: str | None = None, flink: str | None = None) -> dict[str, Any]:
        """Check whether a job would restore from a snapshot: against a savepoint of the new job, a Flink release such as 2.3, or both.

        path, other: as returned by list_snapshots.
        """
        second = None if other is None else self._root.open(other)
        verdict = statetool.check(self._root.open(path), second, flink_version=flink)
        return _plain(verdict.record() | {"ok": verdict.ok})


def _plain(answer: dict[str, Any]) -> dict[str, Any]:
    # JSON has neither NaN nor infinities, so they become text.
    plain: dict[str, Any] = json.loads(json.dumps(answer, default=_text), parse_constant=str)
    return plain


def _text(value: Any) -> str:
    return value.hex() if isinstance(value, bytes) else str(value)
