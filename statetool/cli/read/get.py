"""The command that looks up one key."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Final

import click

from statetool.cli.completion import complete_operator, complete_path
from statetool.cli.group import Command
from statetool.cli.options import OUTPUT, SNAPSHOT, CommonOptions, common_options, open_snapshot
from statetool.cli.read.tables import show_options
from statetool.errors import MissingKeyError
from statetool.tables.keys.text import parse_whole_key, show_key
from statetool.types.operators import operator_fields

_STATE_COLUMNS: Final = ("state", "kind", "namespace", "value", "companions", "undecoded")
_TIMER_COLUMNS: Final = ("domain", "service", "namespace", "timestamp", "time")


@click.command(cls=Command)
@click.argument("path", shell_complete=complete_path)
@click.argument("operator", shell_complete=complete_operator)
@click.argument("key")
@click.argument("state", required=False)
@show_options
@common_options(*SNAPSHOT, *OUTPUT)
def get(options: CommonOptions, path: str, operator: str, key: str, state: str | None, **given: Any) -> None:
    """Look up the state and timers of one key.

    KEY is JSON if it begins with a quote, a bracket or a brace, or else a text or number. A tuple, row or POJO is an array of its fields, or an
    object. STATE is one state, or timers. Put -- before a negative number. Only the key group of the key is read. Exits with 1 if the operator
    has no state of the key.

    Examples:
      statetool get savepoint-1a2b orders customer-7
      statetool get savepoint-1a2b orders customer-7 spent --json
      statetool get savepoint-1a2b carts '{"user": 7, "region": "eu"}'
    """
    wanted = parse_whole_key("KEY", key)
    savepoint = open_snapshot(path, options, operators=[operator])
    opened = savepoint[operator]
    content = opened.get(wanted, None if state is None else [state], **given)
    output = options.output
    head = {
        "path": savepoint.path,
        "checkpoint_id": savepoint.checkpoint_id,
        **operator_fields(opened.inventory.label),
    }
    if output.is_json:
        output.record({**head, **content.record()})
    elif content.found:
        states, timers = [asdict(s) for s in content.states], [asdict(t) for t in content.timers]
        if states:
            output.rows(states, columns=_filled(_STATE_COLUMNS, states), has_units=False)
        if states and timers:
            output.text("")
        if timers:
            output.rows(timers, columns=_filled(_TIMER_COLUMNS, timers), has_units=False)
    if not content.found:
        what = "state" if state is None else repr(state)
        raise MissingKeyError(
            f"operator {opened.inventory.label.display!r} has no {what} of the key {show_key(wanted)}",
            hint="" if content.key_group is None else f"it would be in key group {content.key_group}",
        )


def _filled(names: tuple[str, ...], rows: list[dict[str, Any]]) -> list[str]:
    """Return the columns that have a value in a row."""
    for row in rows:
        for name in ("companions", "undecoded"):
            if name in row and not row[name]:
                row[name] = None
    return [n for n in names if n in ("state", "kind", "value") or any(row[n] is not None for row in rows)]
