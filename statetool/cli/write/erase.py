"""Commands that write a copy of a snapshot with some of its keys."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

import statetool
from statetool.api.write.verbs import erase as verbs
from statetool.cli.group import Command
from statetool.cli.options import WRITE, CommonOptions, common_options
from statetool.cli.output import JSON_VERSION, echo_err
from statetool.cli.verb import report_target, run_verb, verb_options
from statetool.errors import OptionError, several
from statetool.tables.keys.text import Key, KeyText, key_to_json, parse_key_lines
from statetool.tables.request import OPTIONS
from statetool.types.operators import display_name

if TYPE_CHECKING:
    from statetool.saving.verbs.erase import ErasePlan, GivenKey
    from statetool.saving.verbs.remaining_copies import RemainingCopy

#: Parses ``--keys``.
_KEYS: Final = OPTIONS["keys"].parse


@click.command(cls=Command)
@verb_options(verbs.Erase, keys=_KEYS)
@common_options("name_uid", *WRITE, "on_spark")
def erase(options: CommonOptions, given: verbs.Erase) -> None:
    """Remove all state of some keys.

    Removes states, timers and windows. Everything else keeps its bytes. The new snapshot is read again before it is published, to prove that no
    entry of the keys is left. In-flight data, operator state and other snapshots are listed, but not changed.

    Examples:
      statetool erase savepoint-1a2b erased --keys customer-7 --dry-run
      statetool erase savepoint-1a2b erased --keys-from keys.txt --report r.json
      statetool erase savepoint-1a2b erased --where "balance = 0" --uid accounts
    """
    _write(given, options)


@click.command(cls=Command)
@verb_options(verbs.Keep, keys=_KEYS)
@common_options("name_uid", *WRITE, "on_spark")
def keep(options: CommonOptions, given: verbs.Keep) -> None:
    """Remove all state except that of some keys.

    The opposite of erase. Operators with keys of another type keep all state.

    Examples:
      statetool keep savepoint-1a2b eu --where "key LIKE 'eu-%'" --uid orders
    """
    _write(given, options)


def _write(given: verbs.Erase, options: CommonOptions) -> None:
    report, where = given.report, given.where
    if (given.keys is not None) + (given.keys_from is not None) + (where is not None) != 1:
        raise OptionError("no keys, or keys given in several ways", hint="pass one of --keys, --keys-from and --where")
    keys = given.keys if given.keys_from is None else _keys_from(given.keys_from)
    if report is not None and Path(report).exists():
        raise OptionError(f"--report {report}: the file already exists", hint="choose another name")
    done = run_verb(given, options, reading=given.operators, keys=keys)
    record = {"json_version": JSON_VERSION, "statetool": statetool.__version__, **done.report()}
    if report is not None:
        Path(report).write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    plan = done.plan
    if where is not None:
        _show_condition(plan)
    if options.output.is_json:
        named = [given | {"key": _shown(k.key)} for given, k in zip(record["keys"] or (), plan.keys or (), strict=True)]
        options.output.record(record | {"keys": named or None})
    else:
        options.output.rows(plan.erased)
    if plan.keys is not None:
        _show_searched(plan, plan.keys)
    if plan.verb == "erase":
        _show_copies(plan.copies)
    echo_err(f"{several(plan.entries, 'entry', 'entries')} with {several(plan.size_bytes, 'byte')} removed")
    if done.proof is not None:
        echo_err(f"proved: no entry of the keys is left in {several(done.proof.operators, 'operator')}")
    report_target(given.dst, options, is_changed=plan.entries > 0)


def _show_condition(plan: ErasePlan) -> None:
    """Print to how many operators a condition was applied, and the names of the others."""
    skipped = [display_name(o.operator) for o in plan.operators if o.skipped]
    others = f", not to {len(skipped):,} whose columns it does not fit: {', '.join(skipped)}" if skipped else ""
    echo_err(f"condition applied to {several(len(plan.operators) - len(skipped), 'operator')}{others}")


def _show_searched(plan: ErasePlan, keys: Sequence[GivenKey]) -> None:
    """Print by operator how many keys were searched, found and not searched."""
    from statetool.saving.verbs.key_choice import list_keys

    for operator in plan.operators:
        unfit = [f"{len(u.keys):,} not searched: {u.reason}" for u in operator.unfit]
        searched = f"{several(operator.searched_keys or 0, 'key')} searched, {operator.found_keys or 0:,} found"
        words = [f"not searched: {operator.skipped}"] if operator.skipped else [searched, *unfit]
        echo_err(f"{display_name(operator.operator)} ({operator.key_type}): {'; '.join(words)}")
    found = len(keys) - len(plan.missing_keys)
    missing = f", missing: {list_keys([k.key for k in plan.missing_keys])}" if plan.missing_keys else ""
    echo_err(f"{found:,} of {several(len(keys), 'key')} found{missing}")


def _shown(key: Key) -> Any:
    """Return a key as JSON: a word as a string."""
    return key.text if isinstance(key, KeyText) else key_to_json(key)


def _show_copies(copies: Sequence[RemainingCopy]) -> None:
    """Print the places that may still contain the data, one line per kind of place."""
    names: dict[tuple[str, str], list[str]] = {}
    for copy in copies:
        name = " ".join(filter(None, (copy.operator and display_name(copy.operator), copy.name)))
        names.setdefault((copy.place, "" if copy.operator and copy.name else copy.detail), []).append(name)
    for (place, detail), found in names.items():
        listed = ", ".join(filter(None, found))
        echo_err(f"may still contain the data: {place}{listed and ': '}{listed}{detail and f' ({detail})'}")


def _keys_from(file: str) -> list[Key]:
    """Return the keys of ``--keys-from``."""
    try:
        lines = Path(file).read_bytes().decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise OptionError(f"--keys-from {file}: {error}") from error
    try:
        return list(parse_key_lines(lines))
    except OptionError as error:
        raise OptionError(f"--keys-from {file}, {error.message}", hint=error.hint) from error


@click.command(cls=Command)
@verb_options(verbs.Sample)
@common_options("name_uid", *WRITE, "on_spark")
def sample(options: CommonOptions, given: verbs.Sample) -> None:
    """Write a small savepoint for tests.

    Keeps some keys with all their states, timers and windows. Operator state stays complete, so the job restores the sample. Operators with
    keys of the same type share their keys.

    Examples:
      statetool sample savepoint-1a2b small --keys 1%
      statetool sample savepoint-1a2b small --key-groups 0-3
    """
    plan = run_verb(given, options, reading=given.operators)
    options.output.rows(plan.operators)
    report_target(given.dst, options, is_changed=any(o.new_bytes != o.old_bytes for o in plan.operators))
