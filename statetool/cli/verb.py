"""Arguments and options of commands that write a changed copy of a snapshot, from the declared parameters, and the call of the function."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable
from dataclasses import MISSING, Field, fields
from functools import wraps
from typing import Any, Final

import click

import statetool
from statetool.api.write.verbs.base import Verb
from statetool.cli.completion import complete_operator, complete_path, complete_state
from statetool.cli.options import CommonOptions, file_option, json_values, open_snapshots, pairs
from statetool.cli.output import echo_err

#: The type of a parameter that is an existing snapshot.
_SNAPSHOT: Final = "str | Savepoint"
_COMPLETIONS: Final = {"operator": complete_operator, "state": complete_state, "path": complete_path}
#: The kind of an option's text by the beginning of the parameter's type. All others are plain texts.
_KINDS: Final = {
    "bool": "flag", "int": "number", "Literal[": "choice", "Mapping[str, str]": "pairs", "Mapping[str, Any]": "json", "Iterable[": "texts",
}  # fmt: skip


def verb_options(
    verb: type[Verb], *, only: Collection[str] = (), **parsers: Callable[[Any], Any]
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add the arguments and options of a verb to a command, which gets their values as one object ``given``, of the verb's class.

    Parameters
    ----------
    only
        The parameters of the command, if another command has others. By default all.
    parsers
        Functions that make values from the texts of options, by the name of the parameter.
    """
    shown = [f for f in fields(verb) if f.metadata["help"] or "argument" in f.metadata]
    declared = [f for f in shown if not only or f.name in only]
    without = {f.name: None for f in fields(verb) if f not in declared and _is_required(f)}

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def run(**parameters: Any) -> None:
            values = {f.name: _value(f, parameters.pop(f.name), parsers.get(f.name)) for f in declared}
            command(given=verb(**without, **values), **parameters)

        decorated: Callable[..., None] = run
        for declaration in reversed(declared):
            decorated = _parameter(declaration)(decorated)
        return decorated

    return decorate


def run_verb(given: Verb, options: CommonOptions, *, reading: Iterable[str] = (), **made: Any) -> Any:
    """Open the snapshots of a verb, call its function, which checks the target, plans, writes and proves, and return the result.

    Parameters
    ----------
    reading
        The operators that the command reads, for an estimate of its progress. By default all.
    made
        Arguments that the command has made, such as an open snapshot, in place of those in ``given``.
    """
    own = {f.name: getattr(given, f.name) for f in fields(given) if f.metadata["doc"]}
    names = [f.name for f in fields(given) if f.type == _SNAPSHOT]
    opened = {} if made.keys() & set(names) else dict(zip(names, open_given(given, options, reading), strict=True))
    common = options.write_arguments | ({} if "spark" in made else {"spark": options.spark})
    own |= opened | {name: value for name, value in common.items() if name not in given.without} | made
    return getattr(statetool, given.function())(**own)


def open_given(given: Verb, options: CommonOptions, reading: Iterable[str] = ()) -> list[statetool.Savepoint]:
    """Open the snapshots of a verb; parameters as for :func:`run_verb`."""
    return open_snapshots(
        [getattr(given, f.name) for f in fields(given) if f.type == _SNAPSHOT], options, operators=tuple(reading)
    )


def report_target(target: str, options: CommonOptions, size: int | None = None, *, is_changed: bool = True) -> None:
    """Print the path of the new snapshot, or that none was written, and whether its state is that of the existing one."""
    if not is_changed:
        echo_err(f"nothing {'would change' if options.dry_run else 'changed'}: the new snapshot has the same state")
    moved = "" if size is None else f" ({size:,} bytes of keyed state)"
    echo_err(f"nothing was written{moved}" if options.dry_run else f"written to {target}{moved}")


def _is_required(declared: Field[Any]) -> bool:
    return declared.default is MISSING


def _kind(declared: Field[Any]) -> str:
    found = (kind for prefix, kind in _KINDS.items() if str(declared.type).startswith(prefix))
    return str(declared.metadata.get("kind") or next(found, "text"))


def _flag(declared: Field[Any]) -> tuple[str, str]:
    """Return the option and its metavar."""
    flag, _, metavar = declared.metadata.get("flag", f"--{declared.name.replace('_', '-')}").partition(" ")
    return flag, metavar


def _parameter(declared: Field[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return the decorator that adds the argument or option of a declared parameter."""
    about, kind = declared.metadata, _kind(declared)
    flag, metavar = _flag(declared)
    is_multiple = kind in ("pairs", "json", "texts")
    is_required = about.get("required", _is_required(declared))
    if "argument" in about:
        more: dict[str, Any] = (
            {"nargs": -1, "required": is_required} if is_multiple else {"shell_complete": complete_path}
        )
        return click.argument(declared.name, metavar=about["argument"], **more)
    if kind == "file":
        return file_option(flag, declared.name, help=about["help"])
    has_default = kind in ("choice", "number") and not _is_required(declared) and declared.default is not None
    more = {"default": declared.default, "show_default": True} if has_default else {}
    if kind == "choice":
        more["type"] = click.Choice(re.findall(r"'(\w+)'", str(declared.type)))
    elif kind == "number":
        more["type"] = int
    return click.option(
        flag,
        declared.name,
        is_flag=True if kind == "flag" else None,  # with False, click takes the option without a value too
        multiple=is_multiple,
        metavar=metavar or None,
        required=is_required,
        shell_complete=_COMPLETIONS.get(about.get("names", "")),
        help=about["help"],
        **more,
    )


def _value(declared: Field[Any], given: Any, parse: Callable[[Any], Any] | None) -> Any:
    """Return the value of an option from what click made of its text."""
    if parse is not None:
        return None if given is None else parse(given)
    match _kind(declared):
        case "pairs":
            form = declared.metadata.get("argument", " ".join(_flag(declared))).removesuffix("...")
            return pairs(given, form, declared.metadata.get("example", ""))
        case "json":
            return json_values(given)
    return given
