"""Completion of paths, and of operators, tables and states of the given snapshot."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

import click
from click.shell_completion import CompletionItem

from statetool.errors import StatetoolError

if TYPE_CHECKING:
    from statetool import Savepoint

#: Names of the arguments that hold the path of a snapshot.
_PATH_ARGUMENTS: Final = ("path", "src", "source", "before", "a")


def complete_path(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Let the shell complete a local path; URIs are not completed."""
    return [] if "://" in incomplete else [CompletionItem(incomplete, type="file")]


def complete_operator(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete uids, and operator ids if the uid is not known."""
    return _items(context, incomplete, lambda savepoint: savepoint)


def complete_table(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete tables of the operator in the previous argument."""
    return _items(context, incomplete, lambda savepoint: savepoint[context.params["operator"]].tables)


def complete_state(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete names of states, of the chosen operators or of all operators."""

    def states(savepoint: Savepoint) -> Iterable[str]:
        chosen = context.params.get("operators") or savepoint
        return sorted({s for name in chosen for s in savepoint[name].states})

    return _items(context, incomplete, states)


def _items(
    context: click.Context, incomplete: str, names: Callable[[Savepoint], Iterable[str]]
) -> list[CompletionItem]:
    import statetool

    # While the user types the value of an option, the arguments before it have no names yet.
    path = next((p for p in (*map(context.params.get, _PATH_ARGUMENTS), *context.args[:1]) if p), None)
    if path is None:
        return []
    try:
        return [CompletionItem(n) for n in names(statetool.load(path)) if n.startswith(incomplete) and n.isprintable()]
    except (StatetoolError, KeyError):  # a prompt must not show errors
        return []
