"""Random commands that remove parts of a snapshot: values, timers, states, operators, splits and transactions."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

import pyarrow as pa

import statetool
from statetool.columns.values import StateLayout
from statetool.errors import StatetoolError
from statetool.io.cursor import Cursor
from statetool.snapshot.state_tables import timer_names
from statetool.types import MapType, Scalar, TtlType
from tests.support.removal.compare import Expected
from tests.support.removal.conditions import strip_ttl
from tests.support.removal.key_lists import given_form, lookalikes
from tests.support.removal.rows import OperatorRows, Row
from tests.support.removal.trials import Contents, Refusal, Snapshot, Trial, only, without

_VOID = Scalar("null")


def namespace_is_void(operator: OperatorRows, row: Row) -> bool:
    """Return True if an entry belongs to no window and no other namespace."""
    meta = operator.metas[row.state]
    namespace = dict(meta.value.children())["namespace"] if row.kind == "timers" else meta.namespace
    return namespace is None or namespace.logical == _VOID


def items_of(operator: OperatorRows, row: Row) -> list[bytes]:
    """Return the bytes of the elements of a list."""
    layout = StateLayout(operator.metas[row.state])
    c, items = Cursor(row.value), []
    while c.left:
        start = c.pos
        layout.element.decode(c)
        items.append(row.value[start : c.pos])
        if c.left:
            c.skip(1)
    return items


# ---- set --remove -----------------------------------------------------------------------------


def removal_of_value(r: random.Random, snapshot: Snapshot, operator_id: str) -> Trial | None:
    """Draw the removal of a state of one key, of an element of its list or of an entry of its map, or of a timer."""
    operator = snapshot.rows[operator_id]
    rows = [row for row in operator.rows if namespace_is_void(operator, row)]
    if not rows:
        return None
    row = r.choice(sorted(rows))
    left = Counter(operator.rows)
    options: dict[str, Any] = {}
    refusal: Refusal = "allowed"
    if row.kind == "timers":
        assert row.timestamp_ms is not None
        domain, service = timer_names(row.state)
        wraps = r.random() < 0.3
        stamp = row.timestamp_ms + (1 << 64) * r.choice((1, -1)) if wraps else row.timestamp_ms
        options = {"remove_timers": [(f"{domain}/{service}", stamp)]}
        del left[row]
        refusal = "always" if wraps else "never"
    elif row.state in operator.columns:
        of_state = [o for o in rows if o.state == row.state and o.key == row.key]
        path = row.state
        layout = StateLayout(operator.metas[row.state])
        choice = r.random()
        if row.kind == "list" and choice < 0.6:
            items = items_of(operator, row)
            at = r.randrange(-1, len(items) + 1)
            path += f"[{at}]"
            del left[row]
            if 0 <= at < len(items) and len(items) > 1:
                left[row._replace(value=b",".join(items[:at] + items[at + 1 :]))] += 1
            refusal = "allowed" if 0 <= at < len(items) else "always" if at >= len(items) else "allowed"
            if at == -1:
                return None
        elif row.kind == "map" and choice < 0.6 and isinstance(operator.columns[row.state], MapType):
            ((user_key, _),) = operator.parts(row)
            assert layout.user_key is not None
            if not isinstance(user_key, str | int) or "\0" in str(user_key):
                return None
            path += f"[{json.dumps(user_key)}]"
            del left[row]
        else:
            for other in of_state:
                del left[other]
        options = {"remove": [path]}
    else:
        return None
    assert operator.key is not None
    key = given_form(operator.plain_key(row.key), operator.key.logical)
    if r.random() < 0.25:
        key = r.choice(lookalikes(key))
        fits = [operator.fit(key, k) for k in operator.keys]
        if set(fits) == {"no"}:
            refusal = "always"
        else:
            return None
    return Trial(
        verb="set",
        snapshot=snapshot,
        kind="timer" if row.kind == "timers" else "value",
        command=f"statetool.set_values({snapshot.name!r}, DST, {operator_id!r}, {key!r}, **{options!r})",
        run=lambda target: statetool.set_values(snapshot.savepoint, target, operator_id, key, **options),
        expect=lambda after: Expected(rows={operator_id: left}),
        refusal=refusal,
    )


# ---- purge ------------------------------------------------------------------------------------


def purge(r: random.Random, snapshot: Snapshot, spark: Any = None) -> Trial | None:
    """Draw a purge of expired values, overdue timers and empty lists of the whole snapshot."""
    options: dict[str, Any] = {"now_ms": 0}
    decodable = {i: o for i, o in snapshot.rows.items() if not o.unread and o.key is not None}
    stamps = {
        domain: sorted(
            row.timestamp_ms
            for o in decodable.values()
            for row in o.rows
            if row.timestamp_ms is not None and timer_names(row.state)[0] == domain
        )
        for domain in ("event", "processing")
    }
    for domain, found in stamps.items():
        if found and r.random() < 0.6:
            options[f"{domain}_timers_before_ms"] = min(r.choice(found) + r.choice((0, 1)), (1 << 63) - 1)
    times = {name: _access_times(o, name) for o in decodable.values() if not o.undecoded for name in o.columns}
    if any(o.undecoded for o in decodable.values()):
        times = {}
    ttl_states = sorted(name for name, of_state in times.items() if of_state)
    accesses = sorted(t for of_state in times.values() for t in of_state)
    if accesses and r.random() < 0.8:
        now = r.choice(accesses) + r.choice((0, 1, 50))
        ttl = r.choice((1, 10, 1000))
        options |= {"now_ms": now, "ttl_ms": dict.fromkeys(r.sample(ttl_states, r.randint(1, len(ttl_states))), ttl)}
    options["empty"] = r.random() < 0.3
    if len(options) == 2 and not options["empty"]:
        return None

    def expect(after: Contents) -> Expected:
        expected = Expected()
        for i, o in decodable.items():
            left: Counter[Row] = Counter()
            for row, n in o.rows.items():
                for kept in _after_purge(o, row, options, after[i]):
                    left[kept] += n
            expected.rows[i] = left
        return expected

    return Trial(
        verb="purge",
        snapshot=snapshot,
        kind="with times to live" if "ttl_ms" in options else "",
        command=f"statetool.purge({snapshot.name!r}, DST, **{options!r})",
        run=lambda target: statetool.purge(snapshot.savepoint, target, spark=spark, **options),
        expect=expect,
        refusal="allowed",
    )


def _access_times(operator: OperatorRows, name: str) -> list[int]:
    """Return the last accesses of the values of a state, empty if it has no time to live."""
    if name not in operator.columns:
        return []
    layout = StateLayout(operator.metas[name])
    if not isinstance(layout.element.logical, TtlType):
        return []
    times = []
    for row in operator.rows:
        if row.state == name:
            times += [v[0] for part in operator.parts(row) if (v := _ttl_value(layout, part)) is not None]
    return times


def _ttl_value(layout: StateLayout, part: Any) -> Any:
    return part[1] if layout.user_key is not None else part


def _after_purge(operator: OperatorRows, row: Row, options: Mapping[str, Any], after: OperatorRows) -> Iterator[Row]:
    if row.kind == "timers":
        domain, _ = timer_names(row.state)
        limit = options.get(f"{domain}_timers_before_ms")
        assert row.timestamp_ms is not None
        if limit is None or row.timestamp_ms >= limit:
            yield row
        elif not namespace_is_void(operator, row):
            # A timer of a window or another namespace may go only if the key has no such state any more.
            has_state = any(
                o.kind != "timers" and o.key == row.key and not _is_plain(operator, o) for o in operator.rows
            )
            if has_state or row in after.rows:
                yield row
        return
    ttl = options.get("ttl_ms", {}).get(row.state)
    layout = StateLayout(operator.metas[row.state])
    if row.kind == "list":
        if not row.value:
            if not options["empty"]:
                yield row
            return
        if ttl is None:
            yield row
            return
        items = items_of(operator, row)
        fresh = [
            item
            for item, value in zip(items, operator.parts(row), strict=True)
            if value is None or value[0] + ttl > options["now_ms"]
        ]
        if fresh:
            yield row._replace(value=b",".join(fresh))
        return
    if ttl is not None:
        for part in operator.parts(row):
            value = _ttl_value(layout, part)
            if value is not None and value[0] + ttl <= options["now_ms"]:
                return
    yield row


def _is_plain(operator: OperatorRows, row: Row) -> bool:
    return namespace_is_void(operator, row) and "merging" not in row.state and "session-window" not in row.state


# ---- drop -------------------------------------------------------------------------------------


def drop(r: random.Random, snapshot: Snapshot) -> Trial | None:
    """Draw the removal of operators, or of states of one."""
    stateful = [i for i, o in snapshot.rows.items() if o.metas or o.rest["element states"]]
    if not stateful:
        return None
    if r.random() < 0.4:
        names = r.sample(stateful, r.randint(1, min(2, len(stateful))))
        return Trial(
            verb="drop",
            snapshot=snapshot,
            kind="operators",
            command=f"statetool.drop({snapshot.name!r}, DST, {names!r})",
            run=lambda target: statetool.drop(snapshot.savepoint, target, names),
            expect=lambda after: Expected(removed=set(names)),
            refusal="never",
        )
    operator_id = r.choice(stateful)
    operator = snapshot.rows[operator_id]
    states = [*operator.metas, *operator.rest["element states"]]
    chosen = set(r.sample(states, r.randint(1, max(1, len(states) // 2))))
    expected = Expected(
        rows={operator_id: Counter({row: n for row, n in operator.rows.items() if row.state not in chosen})},
        elements={operator_id: Counter({e: n for e, n in operator.elements.items() if e.state not in chosen})},
        dropped={operator_id: chosen},
        free_rest={operator_id},
    )
    return Trial(
        verb="drop",
        snapshot=snapshot,
        kind="states",
        command=f"statetool.drop({snapshot.name!r}, DST, states={{{operator_id!r}: {sorted(chosen)!r}}})",
        run=lambda target: statetool.drop(snapshot.savepoint, target, states={operator_id: sorted(chosen)}),
        expect=lambda after: expected,
        refusal="allowed",
    )


# ---- transform --------------------------------------------------------------------------------


def transform(r: random.Random, snapshot: Snapshot, operator_id: str) -> Trial | None:
    """Draw a function that leaves out rows: these keys lose the states of the table, and keep everything else."""
    operator = snapshot.rows[operator_id]
    names = sorted(operator.columns)
    if not names:
        return None
    share, seed = r.choice((0.0, 0.3, 1.0)), r.random()
    dropped: set[int] = set()

    def change(table: Any) -> Any:
        chooser = random.Random(seed)
        kept = [i for i in range(table.num_rows) if chooser.random() >= share]
        dropped.update(set(range(table.num_rows)) - set(kept))
        return table.take(pa.array(kept, pa.int64()))

    def run(target: str) -> Any:
        return snapshot.savepoint[operator_id].transform(change, states=names).write(target)

    def expect(after: Contents) -> Expected:
        # The rows of a table have no bytes of keys: a key lost all of its states of the table, or none of them.
        of_table = {row for row in operator.rows if row.state in names}
        left = {row.key for row in after[operator_id].rows if row.state in names}
        gone = {row.key for row in of_table} - left
        rows = Counter({row: n for row, n in operator.rows.items() if row.state not in names or row.key not in gone})
        if len(gone) != len(dropped):
            rows = Counter()
        return Expected(rows={operator_id: _with_bytes_of(rows, after[operator_id], operator, names)})

    return Trial(
        verb="transform",
        snapshot=snapshot,
        kind="function",
        command=f"statetool.load({snapshot.name!r})[{operator_id!r}].transform(drop {share:.0%} of rows, states={names!r})",
        run=run,
        expect=expect,
        refusal="allowed",
    )


def _with_bytes_of(
    rows: Counter[Row], after: OperatorRows, before: OperatorRows, names: Collection[str]
) -> Counter[Row]:
    """Return rows with the bytes of written values that are equal. A function returns values: Flink may have written others for them."""
    written = {row._replace(value=b""): row for row in after.rows if row.state in names}
    found: Counter[Row] = Counter()
    for row, n in rows.items():
        new = written.get(row._replace(value=b""), row)
        same = new.value == row.value or repr(list(before.parts(row))) == repr(list(after.parts(new)))
        found[new if same else row] += n
    return found


# ---- sources and sinks ------------------------------------------------------------------------


def forget(r: random.Random, snapshot: Snapshot) -> Trial | None:
    """Draw the loss of some transactions of a sink."""
    found = []
    for name in snapshot.savepoint:
        rows = _table(snapshot.savepoint[name].transactions)
        if names := sorted({row["name"] for row in rows if row["status"] != "open" and row.get("undecoded") is None}):
            found.append((name, names, rows))
    if not found:
        return None
    uid, names, rows = r.choice(found)
    chosen = r.sample(names, r.randint(1, len(names)))
    operator_id = snapshot.savepoint[uid].operator_id
    left = [row for row in rows if row["name"] not in chosen or row["status"] == "open"]
    return _connector_trial(
        "sinks forget",
        f"statetool.drop_transactions({snapshot.name!r}, DST, {uid!r}, {chosen!r})",
        lambda target: statetool.drop_transactions(snapshot.savepoint, target, uid, chosen),
        snapshot,
        operator_id,
        lambda savepoint: _table(savepoint[uid].transactions),
        left,
    )


def remove_splits(r: random.Random, snapshot: Snapshot) -> Trial | None:
    """Draw the removal of some splits of a source."""
    found = []
    for name in snapshot.savepoint:
        operator = snapshot.savepoint[name]
        splits = [row for table in (operator.source_splits, operator.enumerator) for row in _table(table)]
        if names := sorted({row["split_id"] for row in splits if row.get("split_id")}):
            found.append((name, names, splits))
    if not found:
        return None
    uid, names, splits = r.choice(found)
    chosen = r.sample(names, r.randint(1, len(names)))
    left = [row for row in splits if row.get("split_id") not in chosen]
    return _connector_trial(
        "sources remove",
        f"statetool.edit_source({snapshot.name!r}, DST, {uid!r}, remove={chosen!r})",
        lambda target: statetool.edit_source(snapshot.savepoint, target, uid, remove=chosen),
        snapshot,
        snapshot.savepoint[uid].operator_id,
        lambda savepoint: [
            row for table in (savepoint[uid].source_splits, savepoint[uid].enumerator) for row in _table(table)
        ],
        left,
    )


def _connector_trial(
    verb: str,
    command: str,
    run: Callable[[str], Any],
    snapshot: Snapshot,
    operator_id: str,
    read: Callable[[Any], list[Any]],
    left: list[Any],
) -> Trial:
    target_of: list[str] = []

    def write(target: str) -> Any:
        target_of.append(target)
        return run(target)

    def check(done: Any, after: Contents) -> Iterator[str]:
        rows = read(statetool.load(target_of[0], uids=()))
        a, b = (sorted(json.dumps(row, default=repr, sort_keys=True) for row in x) for x in (rows, left))
        if a != b:
            yield f"rows of the connector are {sorted(set(a) - set(b))!r:.300}, not {sorted(set(b) - set(a))!r:.300}"

    free = {(operator_id, name) for name in snapshot.rows[operator_id].rest["element states"]}
    return Trial(
        verb=verb,
        snapshot=snapshot,
        command=command,
        run=write,
        expect=lambda after: Expected(free=free, free_rest={operator_id}),
        refusal="allowed",
        check=check,
    )


def _table(read: Callable[[], Any]) -> list[dict[str, Any]]:
    try:
        return list(read().to_pylist())
    except StatetoolError:
        return []


__all__ = ["drop", "forget", "only", "purge", "removal_of_value", "remove_splits", "strip_ttl", "transform", "without"]
