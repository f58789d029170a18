"""Erase and keep by random conditions, purge at random times, and compare what is left with what was asked.

``python -m tests.support.checks.condition_check SNAPSHOT... [--conditions 500] [--seed 0] [--spark]``: all long-form tables of an operator
are read before and after. A condition is evaluated in one query over all rows of the operator. Prints the numbers, and each difference.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

import statetool
from statetool.errors import StatetoolError
from statetool.snapshot.operator import OperatorInventory

#: Rows of a table as text, with the key of each.
Rows = list[tuple[str, str]]
#: Refused conditions are drawn among the others, one in so many.
_ONE_IN = 12
_REFUSED = (
    "{c} = (SELECT max({c}) FROM keys)", "max({c}) IS NULL", "count(*) OVER () > 0", "keys::VARCHAR <> ''", "__statetool_keys IS NULL",
    "__statetool_row < 5", "rowid < 5", "hash(COLUMNS(*)) > 0", "random() < 0.5", "now()::VARCHAR <> {c}::VARCHAR",
    "current_setting('TimeZone') = 'UTC'", "{c} IS NULL) LIMIT (3", "EXISTS (SELECT 1 FROM keys)", "nosuch > 1",
)  # fmt: skip


@dataclass
class Figures:
    """Numbers of a run."""

    trials: Counter[str] = field(default_factory=Counter)
    removed_rows: int = 0
    differences: list[str] = field(default_factory=list)


class Chance:
    """Conditions on the columns of a table, with constants near those that it has."""

    def __init__(self, seed: object, rows: pa.Table) -> None:
        self.random = random.Random(repr(seed))
        self.rows = rows

    def condition(self) -> str:
        """Return a condition: one or several simple ones."""
        parts = [self._simple() for _ in range(self.random.choice([1, 1, 1, 2, 3]))]
        joined = self.random.choice([" AND ", " OR "]).join(f"({p})" for p in parts)
        shape = self.random.choice(
            ["{}", "{}", "{}", "NOT ({})", "coalesce({}, true)", "CASE WHEN {} THEN key IS NOT NULL END"]
        )
        return shape.format(joined) + self.random.choice(["", "", " -- now()", " /* (SELECT 1) */"])

    def refused(self) -> str:
        """Return a condition that must be refused."""
        return self.random.choice(_REFUSED).format(c=_quoted(self.random.choice(self.rows.schema.names)))

    def _simple(self) -> str:
        # The key is named in half of the conditions that name anything.
        name = "key" if self.random.random() < 0.4 else self.random.choice(self.rows.schema.names)
        values = self.rows[name].to_pylist()
        return self._of(_quoted(name), self.rows.schema.field(name).type, values)

    def _of(self, sql: str, kind: pa.DataType, values: Sequence[Any]) -> str:
        choose = self.random.choice
        known = [v for v in values if v is not None]
        if not known or self.random.random() < 0.1:
            return f"{sql} IS {choose(['', 'NOT '])}NULL"
        value = choose(known)
        if pa.types.is_struct(kind):
            if not kind.num_fields or self.random.random() < 0.1:
                return f"hash({sql}) % 3 = {choose([0, 1, 2])}"
            inner = choose(list(kind))
            return self._of(f"{sql}.{_quoted(inner.name)}", inner.type, [v[inner.name] for v in known])
        if pa.types.is_map(kind):
            keys = [k for v in known for k, _ in v]
            if not keys or self.random.random() < 0.4:
                return f"cardinality({sql}) {self._order()} {len(value)}"
            key = _literal(choose(keys), kind.key_type)
            items = [item for v in known for _, item in v]
            return f"map_contains({sql}, {key})" if key and choose([True, False]) else self._item(sql, key, kind, items)
        if pa.types.is_list(kind):
            items = [item for v in known for item in v]
            one = self._of("x", kind.value_type, items)
            return choose(
                [
                    f"len({sql}) {self._order()} {len(value)}", f"len(list_filter({sql}, lambda x: {one})) > 0",
                    f"len([x for x in {sql} if {one}]) = {len(value)}",
                ]
            )  # fmt: skip
        return self._scalar(sql, kind, value, known)

    def _item(self, sql: str, key: str, kind: pa.DataType, items: Sequence[Any]) -> str:
        return self._of(f"{sql}[{key}]", kind.item_type, items) if key else f"cardinality({sql}) > 1"

    def _order(self) -> str:
        return self.random.choice(["=", "<>", "<", "<=", ">", ">="])

    def _scalar(self, sql: str, kind: pa.DataType, value: Any, known: Sequence[Any]) -> str:
        choose, literal = self.random.choice, _literal(value, kind)
        other = _literal(choose(known), kind)
        if not literal or not other:
            return f"hash({sql}) % 2 = 0"
        simple = [
            f"{sql} {self._order()} {literal}", f"{sql} IN ({literal}, {other})", f"{sql} BETWEEN {literal} AND {other}",
            f"{sql} IS DISTINCT FROM {literal}", f"hash({sql}) % 4 < 2",
        ]  # fmt: skip
        if pa.types.is_integer(kind):
            simple += [
                f"{sql} % {choose([2, 3, 7])} = 0",
                f"{sql}::VARCHAR LIKE '%{str(value)[-1]}'",
                f"-({sql}::HUGEINT) < {literal}",
            ]
        if pa.types.is_string(kind):
            simple += [
                f"{sql} LIKE {_literal(value[:4] + '%', kind)}", f"len({sql}) {self._order()} {len(value)}", f"upper({sql}) > {literal}",
                f"right({sql}, 1) = {_literal(value[-1:], kind)}", f"regexp_matches({sql}, '[0-4]$')", f"{sql} COLLATE NOCASE < {literal}",
            ]  # fmt: skip
        if pa.types.is_timestamp(kind):
            simple += [f"hour({sql}) < 12", f"{sql}::DATE = {literal}::DATE", f"date_trunc('day', {sql}) <= {literal}"]
            simple += [
                f"{sql}::VARCHAR < {literal}::VARCHAR",
                f"strftime({sql}, '%H') > '06'",
                f"year({sql}) = year({literal})",
            ]
        if pa.types.is_boolean(kind):
            simple += [sql, f"NOT {sql}"]
        return choose(simple)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _literal(value: Any, kind: pa.DataType) -> str:
    """Return a constant in SQL; empty if it has none."""
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind):
        return str(value).lower()
    if pa.types.is_floating(kind):
        return f"'{value!r}'::DOUBLE"
    if pa.types.is_decimal(kind) or pa.types.is_date(kind) or pa.types.is_time(kind):
        return f"'{value}'"
    if pa.types.is_timestamp(kind):  # without a zone: it is UTC
        return f"'{value.replace(tzinfo=None).isoformat(sep=' ')}'"
    if pa.types.is_string(kind) and value.isprintable():
        return f"'{value.replace(chr(39), chr(39) * 2)}'"
    return ""


class Subject:
    """One operator of a snapshot: all its rows, and the complete table that conditions see."""

    def __init__(self, path: str, uid: str) -> None:
        self.path, self.uid = path, uid
        self.before = tables_of(path, uid)
        operator = statetool.load(path)[uid]
        rows = operator.to_arrow(decimals="plain")
        own = {repr(key) for key in rows["key"].to_pylist()}
        others: dict[str, Any] = {}
        for table in operator.tables:
            for key in operator.to_arrow(table, decimals="plain")["key"].to_pylist():
                if repr(key) not in own:
                    others.setdefault(repr(key), key)
        if others:
            keys = pa.array(list(others.values()), rows.schema.field("key").type)
            nulls = {f.name: pa.nulls(len(keys), f.type) for f in rows.schema if f.name != "key"}
            more = pa.table({"key": keys, **nulls}).select(rows.schema.names).cast(rows.schema)
            rows = pa.concat_tables([rows, more])
        self.rows = rows

    def chosen(self, where: str) -> set[str]:
        """Return the keys for which a condition is true, by one query over all rows."""
        connection = duckdb.connect()
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute("SET Calendar = 'gregorian'")
        numbered = self.rows.append_column("number", pa.array(range(self.rows.num_rows)))
        connection.register("complete", numbered)
        found = connection.execute(f"SELECT number FROM complete WHERE ({where}\n)").fetchall()
        keys = self.rows["key"].to_pylist()
        return {repr(keys[n]) for (n,) in found}


def tables_of(path: str, uid: str) -> dict[str, Rows]:
    """Return the rows of all long-form tables of an operator, in order."""
    operator = statetool.load(path)[uid]
    found: dict[str, Rows] = {}
    for table in operator.tables:
        read = operator.to_arrow(table, ttl="raw", decimals="plain", key_group=True)
        rows = read.to_pylist()
        for name in (f.name for f in read.schema if pa.types.is_map(f.type)):
            for row in rows:
                row[name] = row[name] and sorted(
                    row[name], key=repr
                )  # the heap keeps no order, a change log that of changes
        found[table] = sorted((repr(row["key"]), repr(row)) for row in rows)
    return found


def subjects_of(path: str) -> Iterator[Subject]:
    """Yield the operators of a snapshot whose rows can be read."""
    for uid, operator in statetool.load(path).inventory.operators.items():
        if _is_plain(operator):
            try:
                yield Subject(path, uid)
            except StatetoolError:
                continue  # a state that no table can show


def _is_plain(operator: OperatorInventory) -> bool:
    return bool(operator.keyed_states) and not operator.keyed.own_raw_subtasks


def check(paths: Sequence[str], conditions: int, *, seed: int = 0, spark: Any = None) -> Figures:
    """Draw conditions over the operators of snapshots and compare."""
    figures = Figures()
    subjects = [subject for path in paths for subject in subjects_of(path)]
    with tempfile.TemporaryDirectory() as work:
        for number in range(conditions):
            subject = subjects[number % len(subjects)]
            chance = Chance((seed, number), subject.rows)
            _try_condition(subject, chance, f"{work}/{number}", figures, spark, refused=number % _ONE_IN == _ONE_IN - 1)
            shutil.rmtree(f"{work}/{number}", ignore_errors=True)
        for number in range(conditions // 10):
            subject = subjects[number % len(subjects)]
            _try_purge(subject, random.Random(f"{seed} {number}"), f"{work}/p{number}", figures)
            shutil.rmtree(f"{work}/p{number}", ignore_errors=True)
    return figures


def _try_condition(
    subject: Subject, chance: Chance, target: str, figures: Figures, spark: Any, *, refused: bool
) -> None:
    where = chance.refused() if refused else chance.condition()
    verb = chance.random.choice(["erase", "keep"])
    call = f"{verb}({subject.path!r}, where={where!r}, operators=[{subject.uid!r}])"
    expected: set[str] | None = None
    if not refused:
        try:
            expected = subject.chosen(where)
        except duckdb.Error:
            expected = None  # a constant does not have the type, or a value has no place in another type
    allowed = {"allow_missing": True, **({"allow_empty": True} if verb == "keep" else {})}
    try:
        getattr(statetool, verb)(subject.path, target, where=where, operators=[subject.uid], spark=spark, **allowed)
    except StatetoolError as error:
        figures.trials["refused"] += 1
        if expected is not None or "bug" in str(error):
            figures.differences.append(f"{call}: {error}")
        if Path(target).exists():
            figures.differences.append(f"{call}: left something behind")
        return
    if expected is None:
        figures.differences.append(f"{call}: not refused")
        return
    figures.trials[verb] += 1
    figures.trials["of some keys"] += 0 < len(expected) < subject.rows.num_rows
    after = tables_of(target, subject.uid)
    for table, rows in subject.before.items():
        wanted = [row for row in rows if (row[0] in expected) is (verb == "keep")]
        figures.removed_rows += len(rows) - len(wanted)
        if after.get(table, []) != wanted:
            figures.differences.append(f"{call}: {table}: {len(after.get(table, []))} rows instead of {len(wanted)}")


def _try_purge(subject: Subject, chance: random.Random, target: str, figures: Figures) -> None:
    timers = statetool.load(subject.path)[subject.uid].to_arrow("timers", ttl="raw", key_group=True).to_pylist()
    if not timers:
        return
    limit = chance.choice(timers)["timestamp"] + chance.choice([0, 1])
    domain = chance.choice(["event", "processing"])
    limits: Any = {f"{domain}_timers_before_ms": limit}
    plan = statetool.purge(subject.path, target, operators=[subject.uid], **limits)
    figures.trials["purge"] += 1
    due = [t for t in timers if t["domain"] == domain and t["timestamp"] < limit]
    gone = [t for t in due if t["service"] != "window-timers"]
    wanted = sorted((repr(t["key"]), repr(t)) for t in timers if t not in gone)
    if tables_of(target, subject.uid).get("timers", []) != wanted or plan.left_timers != len(due) - len(gone):
        figures.differences.append(f"purge({subject.path!r}, {limits}, operators=[{subject.uid!r}])")
    figures.removed_rows += len(gone)


def main(words: Sequence[str]) -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("snapshots", nargs="+")
    parser.add_argument("--conditions", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--spark", action="store_true")
    given = parser.parse_args(words)
    session = None
    if given.spark:
        from statetool.spark.session import local_session

        session = local_session()
    figures = check(given.snapshots, given.conditions, seed=given.seed, spark=session)
    print(*figures.differences, sep="\n")
    numbers = ", ".join(f"{name} {n}" for name, n in sorted(figures.trials.items()))
    print(f"{numbers}; {figures.removed_rows} rows removed; {len(figures.differences)} differences")
    return bool(figures.differences)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
