"""Commands that change single values of a key, or remove expired values."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import click

import statetool
from statetool.cli.group import Command
from statetool.cli.options import WRITE, CommonOptions, common_options, open_snapshot, operator_option, pairs
from statetool.cli.output import echo_err
from statetool.cli.write.rewrite import report_target, source_and_target
from statetool.errors import OptionError, several
from statetool.operations.advice.configuration import parse_duration
from statetool.saving.verbs.value_paths import parse_value, split_assignment
from statetool.tables.keys.text import parse_one_key

_NUMBER: Final = re.compile(r"-?[0-9]+")
_WINDOW: Final = re.compile(rf"{_NUMBER.pattern},{_NUMBER.pattern}")


@click.command("set", cls=Command)
@source_and_target
@operator_option("Operator to change, by uid, name or operator id.", required=True)
@click.option("--key", required=True, metavar="KEY", help="The key, as JSON or a bare word.")
@click.option("--set", "values", multiple=True, metavar="PATH=VALUE", help="New value of a state or of a part of it.")
@click.option("--remove", multiple=True, metavar="PATH", help="State, list element or map entry to remove.")
@click.option(
    "--add-timer", "add_timers", multiple=True, metavar="DOMAIN=MS", help="Timer to add: event=1700000000000."
)
@click.option(
    "--remove-timer", "remove_timers", multiple=True, metavar="DOMAIN=MS", help="Timer to remove: event/SERVICE=MS."
)
@click.option("--namespace", metavar="VALUE", help="Window as START,END (epoch ms), or another namespace as JSON.")
@click.option("--new-key", is_flag=True, help="Add state of a key, or of a window, that has none.")
@common_options("name_uid", *WRITE)
def set_values(
    options: CommonOptions,
    source: str,
    target: str,
    uid: str,
    key: str,
    values: tuple[str, ...],
    remove: tuple[str, ...],
    add_timers: tuple[str, ...],
    remove_timers: tuple[str, ...],
    namespace: str | None,
    new_key: bool,
) -> None:
    """Set values and timers of one key.

    A path is a state, followed by fields (.balance), list indexes ([0], or [+] to append) and map keys (["EUR"]). A value is JSON; a bare word is
    a string. Everything else keeps its bytes. Needs no Spark.

    Examples:
      statetool set sp new --uid orders --key a --set account.balance=1
      statetool set sp new --uid orders --key a --set 'rates["EUR"]=2'
      statetool set sp new --uid orders --key a --add-timer event=17
      statetool set sp new --uid sums --key a --namespace 0,60000 --set total=5
    """
    given_key = parse_one_key("--key", key)
    assignments: dict[str, object] = {}
    for text in values:
        path, value = split_assignment(text)
        if path in assignments:
            raise OptionError(f"--set {path} is given twice")
        assignments[path] = parse_value(value)
    savepoint = open_snapshot(source, options, operators=[uid])
    plan = statetool.set_values(
        savepoint,
        target,
        uid,
        given_key,
        assignments,
        remove=remove,
        add_timers=_timers(add_timers, "--add-timer"),
        remove_timers=_timers(remove_timers, "--remove-timer"),
        new_key=new_key,
        namespace=None if namespace is None else _namespace(namespace),
        **options.write_arguments,
    )
    options.output.rows(plan.changes)
    report_target(target, options)


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


@click.command(cls=Command)
@source_and_target
@click.option(
    "--ttl", "ttls", multiple=True, metavar="STATE=TIME", help="Time to live of a state's values: 7d, 30 min."
)
@click.option("--now", "now_ms", type=int, metavar="MS", help="Time of the comparison, in epoch ms.  [default: now]")
@click.option(
    "--event-timers-before",
    "event_timers_before_ms",
    type=int,
    metavar="MS",
    help="Remove event-time timers before this time (epoch ms).",
)
@click.option(
    "--processing-timers-before",
    "processing_timers_before_ms",
    type=int,
    metavar="MS",
    help="Remove processing-time timers before this time (epoch ms).",
)
@click.option("--empty", is_flag=True, help="Remove lists without elements, and maps without entries.")
@operator_option("Operator to purge, by uid, name or operator id.  [default: all]", "operators", multiple=True)
@common_options("name_uid", *WRITE, "on_spark")
def purge(
    options: CommonOptions,
    source: str,
    target: str,
    ttls: tuple[str, ...],
    now_ms: int | None,
    event_timers_before_ms: int | None,
    processing_timers_before_ms: int | None,
    empty: bool,
    operators: tuple[str, ...],
) -> None:
    """Remove expired values and overdue timers.

    A snapshot does not store times to live, so pass those of the job. Removed timers never fire, so those of windows stay. Everything else
    keeps its bytes.

    Examples:
      statetool purge savepoint-1a2b smaller --ttl sessions=7d --dry-run
      statetool purge savepoint-1a2b smaller --event-timers-before 1700000000000
    """
    by_state = pairs(ttls, "--ttl STATE=TIME", "for example --ttl sessions=7d")
    ttl_ms = {state: round(parse_duration(text)) for state, text in by_state.items()}
    savepoint = open_snapshot(source, options, operators=operators)
    plan = statetool.purge(
        savepoint,
        target,
        ttl_ms,
        now_ms=now_ms,
        event_timers_before_ms=event_timers_before_ms,
        processing_timers_before_ms=processing_timers_before_ms,
        empty=empty,
        operators=operators,
        spark=options.spark,
        **options.write_arguments,
    )
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
            "(to remove windows with their timers, remove their keys: statetool erase)"
        )
    report_target(target, options)
