"""Signatures and docstrings of the functions that write a changed copy of a snapshot, from the declared options.

``python -m tools.verbs`` writes them into the modules of ``statetool/api/write``. A parameter that several functions share is described once:
in :class:`statetool.api.write.options.WriteOptions`, or in :data:`SHARED`.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Final

from statetool.api.write.options import WriteOptions
from tools.examples import ROOT

MODULES: Final = ROOT / "statetool" / "api" / "write"
#: Options that a function does not have.
WITHOUT: Final[Mapping[str, frozenset[str]]] = {
    "set_values": frozenset({"spark", "progress"}),
    "purge": frozenset({"progress"}),
}
#: Functions that have few of the options, and declare them by hand.
BY_HAND: Final = frozenset({"copy"})
#: Descriptions of other parameters that several functions share.
SHARED: Final[Mapping[str, str]] = {
    "src": "The snapshot: its path, or one that :func:`statetool.load` opened, for example with declared types.",
    "dst": "A new directory for the savepoint: a local path or any URI that fsspec can write to.",
    "hashes": '``{Java class: "Objects.hash(a, b)"}`` if keys that move to other key groups do not prove their ``hashCode()`` (words:'
    " :mod:`statetool.types.conventions`).",
    "accept": "Names of steps, from the plan's ``rows``.",
    "renames": 'Old field names by new ones: ``{"orders.totals.value.city": "town"}``.',
    "fills": 'Values of added fields, as in JSON: ``{"orders.totals.value.count": 0}``.',
    "last_access_ms": "Last access of values that get a time to live, in epoch milliseconds.",
    "on_plan": "Called with the plan before anything is written.",
    "on_staged": "Called before the savepoint is published, not in a dry run. Meanwhile ``dst`` opens as the new savepoint in this thread, and in"
    " no other. If the function raises an error, nothing is published.",
}
_OPTIONS: Final = {f.name: f for f in fields(WriteOptions)}
_DOCS: Final = {**SHARED, **{name: f.metadata["doc"] for name, f in _OPTIONS.items()}}
_SECTION: Final = re.compile(r"(?<=    Parameters\n    ----------\n)(.*?)(?=\n\n|\n    \"\"\")", re.DOTALL)
_ENTRY: Final = re.compile(r"^    (\w.*)\n((?:        .*(?:\n|\Z))+)", re.MULTILINE)


def write_again(source: str) -> str:
    """Return the source of a module with the declared options in the signatures and docstrings of its functions."""
    lines = source.split("\n")
    functions = [node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)]
    for function in reversed([f for f in functions if f.name not in BY_HAND and _has_options(f)]):
        start, end = function.lineno - 1, function.body[0].end_lineno
        text = _with_signature(function.name, "\n".join(lines[start:end]))
        arguments = [a.arg for a in (*function.args.args, *function.args.kwonlyargs)]
        lines[start:end] = _with_docs(function.name, text, arguments).split("\n")
    return "\n".join(lines)


def _has_options(function: ast.FunctionDef) -> bool:
    return "take_over" in {a.arg for a in function.args.kwonlyargs}


def _with_signature(function: str, text: str) -> str:
    """Put the options in the place of the first one in the signature."""
    head, close, rest = text.partition("\n) -> ")
    kept = [line for line in head.split("\n") if line.strip().partition(":")[0] not in _OPTIONS]
    place = next(i for i, line in enumerate(head.split("\n")) if line.strip().partition(":")[0] in _OPTIONS)
    kept[place:place] = [f"    {_declaration(name)}," for name in _names(function)]
    return "\n".join(kept) + close + rest


def _names(function: str) -> list[str]:
    return [name for name in _OPTIONS if name not in WITHOUT.get(function, ())]


def _declaration(name: str) -> str:
    return f"{name}: {_OPTIONS[name].type} = {_OPTIONS[name].default!r}"


def _with_docs(function: str, text: str, arguments: list[str]) -> str:
    """Write the section of parameters: entries of its own in the order of the signature, and those that are shared."""
    arguments = [*(a for a in arguments if a not in _OPTIONS), *_names(function)]
    section = _SECTION.search(text)
    assert section, function
    own: dict[str, str] = {}
    for names, body in _ENTRY.findall(section[0]):
        for name in names.split(", "):
            own[name] = f"    {names}\n{body.rstrip()}"
    entries = dict.fromkeys(entry for name in arguments if (entry := _entry(name, own)))
    rest = (entry for name, entry in own.items() if name not in arguments and name not in _DOCS)
    return text[: section.start()] + "\n".join(dict.fromkeys((*entries, *rest))) + text[section.end() :]


def _entry(name: str, own: Mapping[str, str]) -> str:
    if name not in _DOCS:
        return own.get(name, "")
    words = textwrap.wrap(_DOCS[name], 140 - 8, break_long_words=False, break_on_hyphens=False)
    return f"    {name}\n" + "\n".join(f"        {line}" for line in words)


def stale() -> Iterator[tuple[Path, str]]:
    """Yield the modules whose sources are not those of the declarations, with what they should be."""
    for file in sorted(MODULES.glob("*.py")):
        source = file.read_text("utf-8")
        if (new := write_again(source)) != source:
            yield file, new


if __name__ == "__main__":
    for file, new in stale():
        file.write_text(new, "utf-8")
        print(file, "changed")
