"""Random commands that remove keys, each with the rows that it must leave."""

from __future__ import annotations

import inspect
import json
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, TypeAlias

from click.testing import CliRunner

import statetool
from statetool.cli.main import cli
from statetool.errors import StatetoolError
from statetool.types import LogicalType, Scalar, TimestampType
from tests.support.corpora.kryo_classes import CLASSES
from tests.support.removal.compare import Expected
from tests.support.removal.conditions import REFUSED, ConditionDraw, quote
from tests.support.removal.key_lists import draw_keys, from_json, given_form, to_line, to_text
from tests.support.removal.rows import OperatorRows, Row, read_rows

Contents: TypeAlias = Mapping[str, OperatorRows]
#: Whether a command must succeed, may refuse, or must refuse.
Refusal: TypeAlias = Literal["never", "allowed", "always"]


class Snapshot:
    """A snapshot of a corpus and its contents."""

    def __init__(self, path: Path, root: Path) -> None:
        self.path = path
        self.name = str(path.relative_to(root)) if path != root else path.name
        self.savepoint = statetool.load(str(path), declarations=CLASSES)

    @cached_property
    def rows(self) -> Contents:
        """The contents by operator id."""
        return read_rows(self.savepoint)


@dataclass
class Trial:
    """One command.

    Attributes
    ----------
    command
        The call, for messages.
    run
        Writes the new snapshot to a path and returns the plan or result.
    expect
        Returns what must be left, given what is left: some requests may be answered in two ways.
    check
        Yields what is wrong with the result of ``run``.
    """

    verb: str
    snapshot: Snapshot
    command: str
    run: Callable[[str], Any]
    expect: Callable[[Contents], Expected]
    refusal: Refusal
    kind: str = ""
    check: Callable[[Any, Contents], Iterable[str]] = field(default=lambda done, after: ())


def run_cli(*arguments: str) -> str:
    """Run a command line and return its messages; its errors are raised."""
    done = CliRunner().invoke(cli, arguments)
    if done.exit_code:
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        raise StatetoolError(done.stderr.strip().removeprefix("error: "))
    return done.stderr


def columns_of(operator: OperatorRows) -> dict[str, LogicalType]:
    """Return the columns of an operator's ``keyed_state`` with the type of each, as far as they have the names of the states."""
    assert operator.key is not None
    names = statetool_columns(operator)
    states = {n: t for n, t in operator.columns.items() if n in names and n.lower() != "key"}
    columns = {"key": operator.key.logical, **states}
    nanos = {f"{n}_nanos": Scalar("int32") for n, t in columns.items() if _has_nanos(t) and f"{n}_nanos" in names}
    return columns | {n: t for n, t in nanos.items() if n not in columns}


def _has_nanos(type: LogicalType) -> bool:
    return isinstance(type, TimestampType) and type.unit == "ns"


def statetool_columns(operator: OperatorRows) -> set[str]:
    """Return the names of the columns of ``keyed_state``."""
    from statetool.tables.request import ScanRequest
    from statetool.tables.scan import scan_table

    try:
        return set(scan_table(operator.inventory, ScanRequest.of(decimals="plain")).schema.names)
    except StatetoolError:
        return set()


def values_of(operator: OperatorRows) -> dict[bytes, dict[str, Any]]:
    """Return the values of each key, with the key."""
    assert operator.key is not None
    found: dict[bytes, dict[str, Any]] = {}
    types = {"key": operator.key.logical, **operator.columns}
    for key, values in operator.values_of_keys.items():
        of_key = {"key": operator.plain_key(key), **values}
        nanos = {f"{n}_nanos": v % 1000 for n, v in of_key.items() if v is not None and _has_nanos(types[n])}
        found[key] = nanos | of_key
    return found


def without(rows: Counter[Row], keys: Iterable[bytes]) -> Counter[Row]:
    """Return the rows of all other keys."""
    gone = set(keys)
    return Counter({row: n for row, n in rows.items() if row.key not in gone})


def only(rows: Counter[Row], keys: Iterable[bytes]) -> Counter[Row]:
    """Return the rows of some keys."""
    kept = set(keys)
    return Counter({row: n for row, n in rows.items() if row.key in kept})


def check_plan(before: Contents, done: Any, after: Contents) -> Iterator[str]:
    """Yield what a plan of ``erase`` or ``keep`` says that is not so."""
    plan = getattr(done, "plan", None)
    if plan is None:
        return
    said = Counter({(r.operator_id, r.state): r.entries for r in plan.erased if r.entries})
    gone: Counter[tuple[str, str]] = Counter()
    for operator, old in before.items():
        if not old.unread:
            gone.update((operator, row.state) for row in (old.rows - after[operator].rows).elements())
    if said != gone:
        yield f"the plan says that it removes {dict(said - gone)!r:.200} and not {dict(gone - said)!r:.200}"
    for row in plan.operators:
        old = before[row.operator_id]
        keys = {r.key for r in old.rows} - {r.key for r in after[row.operator_id].rows}
        if not old.unread and row.keys != len(keys):
            yield f"the plan says that {row.keys} keys of {row.operator} go, and {len(keys)} do"


def allow_missing(verb: Any) -> dict[str, Any]:
    """Return the option with which a command accepts keys that do not exist, if it has one."""
    return {"allow_missing": True} if "allow_missing" in inspect.signature(verb).parameters else {}


class KeyTrials:
    """Draws commands that erase or keep keys.

    Parameters
    ----------
    spark
        A session in which commands run, ``None`` for this process.
    """

    def __init__(self, r: random.Random, spark: Any = None) -> None:
        self.r = r
        self.spark = spark

    def condition(self, snapshot: Snapshot, operator_id: str) -> Trial:
        """Draw a condition on one operator."""
        operator = snapshot.rows[operator_id]
        keep = self.r.random() < 0.4
        values = values_of(operator)
        drawn = ConditionDraw(self.r, columns_of(operator), list(values.values())).draw()
        fulfilled = [key for key, of_key in values.items() if drawn.fulfilled(of_key)]
        refusal: Refusal = "never" if fulfilled else "always" if keep else "allowed"
        return self._write(snapshot, operator_id, "where", drawn.sql, fulfilled, refusal, keep=keep)

    def refused_condition(self, snapshot: Snapshot, operator_id: str, pattern: str) -> Trial:
        """Draw a condition that commands must refuse."""
        operator = snapshot.rows[operator_id]
        column = self.r.choice(["key", *(n for n in columns_of(operator) if n != "key")])
        sql = pattern.format(column=quote(column)) if "{column}" in pattern else pattern
        trial = self._write(snapshot, operator_id, "where", sql, [], "always", keep=self.r.random() < 0.3)
        trial.kind = f"refused: {pattern}"
        return trial

    def _write(
        self,
        snapshot: Snapshot,
        operator_id: str,
        what: str,
        value: Any,
        chosen: Sequence[bytes],
        refusal: Refusal,
        *,
        keep: bool,
    ) -> Trial:
        verb = statetool.keep if keep else statetool.erase
        operator = snapshot.rows[operator_id]
        left = (only if keep else without)(operator.rows, chosen)
        return Trial(
            verb="keep" if keep else "erase",
            snapshot=snapshot,
            kind=what,
            command=f"statetool.{verb.__name__}({snapshot.name!r}, DST, {what}={value!r}, operators=[{operator_id!r}])",
            run=lambda target: verb(
                snapshot.savepoint, target, **{what: value}, operators=[operator_id], spark=self.spark
            ),
            expect=lambda after: Expected(rows={operator_id: left}),
            refusal=refusal,
            check=lambda done, after: check_plan(snapshot.rows, done, after),
        )

    def keys(self, snapshot: Snapshot, operator_id: str) -> Trial:
        """Draw a list of keys, for one operator or for all, as plain values or as text."""
        r, own = self.r, snapshot.rows[operator_id]
        others = [_given(o, k) for o in snapshot.rows.values() if not o.undecoded for k in o.keys[:5]]
        given = draw_keys(r, [_given(own, k) for k in own.keys], others)
        named = r.random() < 0.6
        keep = r.random() < 0.3
        form = r.choice(("plain", "plain", "json", "file")) if self.spark is None else "plain"
        searched = (
            {operator_id: own} if named else {i: o for i, o in snapshot.rows.items() if o.keys and o.key is not None}
        )
        fits = self._line_fits if form == "file" else self._plain_fits
        lines = [to_line(r, key) for key in given] if form == "file" else []
        asked: Sequence[Any] = lines or given
        chosen = {i: {k: fits(asked, o, k) for k in o.keys} for i, o in searched.items()}
        exact = {i: {k for k, f in of.items() if f == "yes"} for i, of in chosen.items()}
        maybe = {i: {k for k, f in of.items() if f == "may"} for i, of in chosen.items()}
        all_found = all(any(fits([g], own, k) == "yes" for k in own.keys) for g in asked)
        none_found = not any(exact.values()) and not any(maybe.values())
        refusal: Refusal = (
            "never" if named and all_found and form != "file" else "always" if keep and none_found else "allowed"
        )
        verb = "keep" if keep else "erase"

        def expect(after: Contents) -> Expected:
            rows = {}
            for i, o in searched.items():
                left = {row.key for row in after[i].rows}
                if not keep:
                    rows[i] = without(o.rows, exact[i] | (maybe[i] - left))
                elif exact[i] or (left != set(o.keys) and named):
                    rows[i] = only(o.rows, exact[i] | (maybe[i] & left))
                elif left != set(o.keys):
                    rows[i] = only(o.rows, maybe[i] & left)
            return Expected(rows=rows)

        if form == "plain":
            call = statetool.keep if keep else statetool.erase
            names = [operator_id] if named else []
            extra = allow_missing(call) if r.random() < 0.5 else {}
            return Trial(
                verb=verb,
                snapshot=snapshot,
                kind="keys",
                command=f"statetool.{verb}({snapshot.name!r}, DST, {given!r}, operators={names!r}, **{extra})",
                run=lambda target: call(snapshot.savepoint, target, given, operators=names, spark=self.spark, **extra),
                expect=expect,
                refusal=refusal,
                check=lambda done, after: check_plan(snapshot.rows, done, after),
            )
        options = ["--uid", operator_id] if named else []
        if allow_missing(statetool.erase) and r.random() < 0.5:
            options += ["--allow-missing"]
        text = to_text(given)

        def run(target: str) -> str:
            if form == "json":
                return run_cli(verb, str(snapshot.path), target, "--keys", text, *options)
            file = Path(target).with_suffix(".keys")
            file.write_text("".join(f"{line}\n" for line in lines), "utf-8")
            return run_cli(verb, str(snapshot.path), target, "--keys-from", str(file), *options)

        shown = f"--keys {text!r}" if form == "json" else f"--keys-from (lines {lines!r})"
        return Trial(
            verb=verb,
            snapshot=snapshot,
            kind=f"keys as {form}",
            command=f"statetool {verb} {snapshot.name} DST {shown} {' '.join(options)}",
            run=run,
            expect=expect,
            refusal=refusal,
        )

    @staticmethod
    def _plain_fits(given: Sequence[Any], operator: OperatorRows, key: bytes) -> str:
        return _best(operator.fit(g, key) for g in given)

    @staticmethod
    def _line_fits(lines: Sequence[str], operator: OperatorRows, key: bytes) -> str:
        """A line is the text of a string, or JSON."""
        found = []
        for line in lines:
            # A line that begins like JSON is JSON: its quotes do not belong to the text.
            as_text = operator.fit(line, key)
            found.append("may" if as_text == "yes" and line.startswith(('"', "[", "{")) else as_text)
            try:
                value = from_json(json.loads(line))
            except ValueError:
                continue
            found.append(operator.fit(value, key))
        return _best(found)


def _given(operator: OperatorRows, key: bytes) -> Any:
    assert operator.key is not None
    return given_form(operator.plain_key(key), operator.key.logical)


def _best(fits: Iterable[str]) -> str:
    found = set(fits)
    return "yes" if "yes" in found else "may" if "may" in found else "no"


def refused_patterns() -> Iterator[str]:
    """Yield the patterns of conditions that commands must refuse, again and again."""
    while True:
        yield from REFUSED
