"""Commands that change single values of a key, or remove expired values."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from typing import Final

import click

from statetool.api.write.verbs import values as verbs
from statetool.cli.group import Command
from statetool.cli.options import WRITE, CommonOptions, common_options, pairs
from statetool.cli.output import echo_err
from statetool.cli.verb import report_target, run_verb, verb_options
from statetool.errors import OptionError, several
from statetool.operations.advice.configuration import parse_duration
from statetool.saving.verbs.value_paths import parse_value, split_assignment
from statetool.tables.keys.text import parse_one_key
from statetool.types.operators import display_name

_NUMBER: Final = re.compile(r"-?[0-9]+")
_WINDOW: Final = re.compile(rf"{_NUMBER.pattern},{_NUMBER.pattern}")


def _assignments(texts: Sequence[str]) -> dict[str, object]:
    assignments: dict[str, object] = {}
    for text in texts:
        path, value = split_assignment(text)
        if path in assignments:
            raise OptionError(f"--set {path} is given twice")
        assignments[path] = parse_value(value)
    return assignments


def _namespace(text: str) -> object:
    """Return start and end of a window, or another namespace."""
    return [int(part) for part in text.split(",")] if _WINDOW.fullmatch(text) else parse_value(text)


def _timers(given: Sequence[str], option: str) -> list[tuple[str, int]]:
    timers = []
    for text in given:
        domain, _, stamp = text.partition("=")
        if not _NUMBER.fullmatch(stamp):
            raise OptionError(
                f"{option} {text!r} is not DOMAIN=MS", hint="for example event=1700000000000, in epoch milliseconds"
            )
        timers.append((domain, int(stamp)))
    return timers


def _ttl_ms(texts: Sequence[str]) -> dict[str, int]:
    by_state = pairs(texts, "--ttl STATE=TIME", "for example --ttl sessions=7d")
    return {state: round(parse_duration(text)) for state, text in by_state.items()}


@click.command("set", cls=Command)
@verb_options(
    verbs.SetValues,
    key=partial(parse_one_key, "--key"),
    values=_assignments,
    add_timers=partial(_timers, option="--add-timer"),
    remove_timers=partial(_timers, option="--remove-timer"),
    namespace=_namespace,
)
@common_options("name_uid", *WRITE)
def set_values(options: CommonOptions, given: verbs.SetValues) -> None:
    """Set values and timers of one key.

    A path is a state, followed by fields (.balance), list indexes ([0], or [+] to append) and map keys (["EUR"]). A value is JSON; a bare word is
    a string. Everything else keeps its bytes. Needs no Spark. For list, union and broadcast states, which have no key, see set-elements.

    Examples:
      statetool set sp new --uid orders --key a --set account.balance=1
      statetool set sp new --uid orders --key a --set 'rates["EUR"]=2'
      statetool set sp new --uid orders --key a --add-timer event=17
      statetool set sp new --uid sums --key a --namespace 0,60000 --set total=5
    """
    plan = run_verb(given, options, reading=[given.uid])
    options.output.rows(plan.changes)
    report_target(given.dst, options, is_changed=any(c.before != c.after for c in plan.changes))


def _subtask(text: str) -> int | str:
    return int(text) if text.isdecimal() else text


@click.command("set-elements", cls=Command)
@verb_options(
    verbs.SetElements,
    change=_assignments,
    add=lambda texts: [parse_value(text) for text in texts],
    subtask=_subtask,
)
@common_options("name_uid", *WRITE)
def set_elements(options: CommonOptions, given: verbs.SetElements) -> None:
    """Change, remove or add elements of an operator state.

    The state is a list, a union list or a broadcast state. A condition chooses elements by value, key (broadcast) and subtask (lists). Elements
    stay in their subtask, and all copies of a broadcast state change. Everything else keeps its bytes.

    Examples:
      statetool set-elements sp new --uid a --state open --where value=5 --remove
      statetool set-elements sp new --uid a --state m --add '{"key":1,"value":2}'
      statetool set-elements sp new --uid a --state offsets --remove-copies
    """
    plan = run_verb(given, options, reading=[given.uid])
    options.output.rows(plan.changes)
    report_target(given.dst, options, is_changed=bool(plan.changes))


@click.command(cls=Command)
@verb_options(verbs.Purge, ttl_ms=_ttl_ms, window_size_ms=lambda text: round(parse_duration(text)))
@common_options("name_uid", *WRITE, "on_spark")
def purge(options: CommonOptions, given: verbs.Purge) -> None:
    """Remove expired values, overdue timers and obsolete windows.

    A snapshot does not store times to live, so pass those of the job. Removed timers never fire, so those of windows stay unless the windows
    are removed. Everything else keeps its bytes.

    Examples:
      statetool purge savepoint-1a2b smaller --ttl sessions=7d --dry-run
      statetool purge savepoint-1a2b smaller --event-timers-before 1700000000000
      statetool purge savepoint-1a2b smaller --windows-without-timer --dry-run
    """
    plan = run_verb(given, options, reading=given.operators)
    options.output.rows(plan.states)
    entries, size = sum(r.removed_entries for r in plan.states), sum(r.removed_bytes for r in plan.states)
    before = sum(r.size_bytes for r in plan.states)
    echo_err(
        f"{several(entries, 'entry', 'entries')} with {several(size, 'byte')} removed; "
        f"{before:,} bytes before, {before - size:,} after"
    )
    if plan.left_timers:
        from statetool.snapshot.views import NEEDED_TIMERS

        echo_err(
            f"{several(plan.left_timers, 'timer')} of windows left: without its timer, a window {NEEDED_TIMERS} "
            "(to remove windows with their timers, pass --windows-before)"
        )
    for row in plan.windows:
        removed = f"left: {row.left}" if row.left else f"{several(row.removed_windows, 'window')} removed"
        echo_err(f"windows of {display_name(row.operator)}: {removed}")
    report_target(given.dst, options, is_changed=entries > 0 or size > 0)
