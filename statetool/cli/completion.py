"""Shell completion of commands, and of operators, tables and states of the given snapshot."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
from click.shell_completion import CompletionItem, get_completion_class

from statetool.cli.group import Command
from statetool.cli.output import echo_err, print_line
from statetool.errors import OptionError, StatetoolError

if TYPE_CHECKING:
    from statetool import Savepoint

_VARIABLE: Final = "_STATETOOL_COMPLETE"
_SHELLS: Final = ("bash", "zsh", "fish")
#: Names of the arguments that hold the path of a snapshot.
_PATH_ARGUMENTS: Final = ("path", "source", "before", "a")
#: Code that zsh must run before completions can be declared.
_ZSH_FIRST: Final = "(( $+functions[compdef] )) || { autoload -Uz compinit && compinit; }\n"


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
        chosen = context.params.get("names") or context.params.get("operators") or savepoint
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


@click.command(cls=Command)
@click.argument("shell", type=click.Choice(_SHELLS), required=False, metavar="[SHELL]")
@click.option("--show", is_flag=True, help="Print the script without installing it.")
def completion(shell: str | None, show: bool) -> None:
    """Install completion for bash, zsh or fish.

    SHELL is bash, zsh or fish, by default the shell that is running.

    Examples:
      statetool completion
      statetool completion bash --show
    """
    name = shell or os.path.basename(os.environ.get("SHELL", ""))
    if name not in _SHELLS:
        raise OptionError(f"the shell {name!r} is not supported", hint=f"pass one of {', '.join(_SHELLS)}")
    text = _script(name)
    if show:
        for line in text.split("\n"):
            print_line(line)
        return
    for file in _install(name, text):
        echo_err(f"written: {file}")
    echo_err("completion is active in new shells")


def _script(shell: str) -> str:
    completer: Any = get_completion_class(shell)
    source: str = completer(click.get_current_context().find_root().command, {}, "statetool", _VARIABLE).source()
    return (_ZSH_FIRST if shell == "zsh" else "") + source


def _install(shell: str, text: str) -> list[Path]:
    """Write the script to a folder that the shell reads, or source it in the shell's start-up file, and return the changed files."""
    home = Path.home()
    if shell == "fish":
        folder = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config") / "fish" / "completions"
    else:
        folder = Path(os.environ.get("XDG_DATA_HOME") or home / ".local" / "share") / "statetool"
    script = folder / ("statetool.fish" if shell == "fish" else f"completion.{shell}")
    folder.mkdir(parents=True, exist_ok=True)
    script.write_text(text)
    if shell == "fish":
        return [script]
    start = home / f".{shell}rc"
    line = f'[ -r "{script}" ] && . "{script}"  # completion of statetool\n'
    lines = start.read_text() if start.exists() else ""
    if line in lines:
        return [script]
    start.write_text(lines + ("" if not lines or lines.endswith("\n") else "\n") + line)
    return [script, start]
