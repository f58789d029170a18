"""Descriptions of parameters that several public functions have, copied into the docstring of each. :mod:`tools.verbs` writes them."""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import Field, fields
from inspect import cleandoc
from typing import Any, Final

from statetool.api.write.verbs.values import Transform
from statetool.tables import request
from statetool.types import options
from tools.examples import ROOT

API: Final = ROOT / "statetool" / "api"
_READS: Final = ("ScanOptions", "Operator.state", "OperatorTables.to_arrow")
#: The functions and classes that describe parameters of a function, by its name.
DESCRIBED_BY: Final[Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys(
        (
            "Operator.keyed_state", "Operator.state", "Operator.table", "Operator.timers", "Operator.waiting", "Operator.matches", "Operator.windows",
            "Operator.in_flight", "OperatorTables.export", "OperatorTables.head", "OperatorTables.count", "OperatorTables.scan",
            "OperatorTables.batches", "OperatorTables.reader", "OperatorTables.keyed_state_batches", "OperatorTables.to_arrow",
            "OperatorTables.to_pandas", "OperatorTables.to_polars", "OperatorTables.to_duckdb", "Database.table", "query", "OperatorTables.get",
        ),
        _READS,
    ),
    "catalog": ("load",),
    "metrics": ("load",),
    "verify": ("load",),
    "delete_checkpoint": ("delete_orphans",),
    "Savepoint.report": ("Savepoint.stats", "verify"),
    "Operator.stats": ("Savepoint.stats",),
    "Operator.estimate_stats": ("Savepoint.estimate_stats",),
    "SavepointWriter.transform": ("Transform",),
    "Operator.transform": ("Transform", "SavepointWriter.transform"),
    "Operator.erase": ("SavepointWriter.erase",),
    "SavepointWriter.keep": ("SavepointWriter.erase", "keep"),
    "Operator.keep": ("SavepointWriter.erase", "keep"),
}  # fmt: skip
#: Parameters of these functions that have another meaning than in the functions that describe them.
OWN: Final[Mapping[str, frozenset[str]]] = {
    "Operator.timers": frozenset({"states"}),
    "OperatorTables.get": frozenset({"states"}),
    "OperatorTables.head": frozenset({"table"}),
    "catalog": frozenset({"spark"}),
    "Database.table": frozenset({"name"}),
    "metrics": frozenset({"path"}),
    "verify": frozenset({"spark"}),
    "Savepoint.report": frozenset({"allow_unread"}),
}
#: The width of a description in the docstring of a method.
_WIDTH: Final = 140 - 12
_ENTRY: Final = re.compile(r"^(\S.*)\n((?: +.*(?:\n|\Z))+)", re.MULTILINE)
_LATER: Final = ("Returns", "Yields", "Raises", "Warns")


def add_shared(source: str, described: Mapping[str, Mapping[str, str]]) -> str:
    """Return the source of a module in which each docstring lists the parameters that another function describes."""
    lines = source.split("\n")
    for name, function in sorted(_functions(source), key=lambda found: -found[1].lineno):
        if name in DESCRIBED_BY:
            doc = function.body[0]
            start, end = doc.lineno - 1, doc.end_lineno
            text = _listed(name, function, "\n".join(lines[start:end]), described)
            lines[start:end] = text.split("\n")
    return "\n".join(lines)


def described_parameters() -> dict[str, dict[str, str]]:
    """Return the entries of parameters by function or class, and parameter."""
    found = {
        "ScanOptions": attribute_entries(request.ScanOptions),
        "Transform": {f.name: entry(f, _WIDTH) for f in fields(Transform) if f.metadata["doc"]},
    }
    for file in sorted(API.rglob("*.py")):
        for name, function in _functions(file.read_text("utf-8")):
            found[name] = _entries(ast.get_docstring(function) or "")
    return found


def entry(declared: Field[Any], width: int, own: str | None = None) -> str:
    """Return the entry of a declared parameter, or its ``own`` one, in lines of at most ``width`` characters."""
    lines = textwrap.wrap(own or declared.metadata["doc"], width, break_long_words=False, break_on_hyphens=False)
    return "\n    ".join((declared.name, *lines))


def attribute_entries(options: type[Any]) -> dict[str, str]:
    """Return the entries of keyword arguments, which the docstring of a ``TypedDict`` describes as attributes."""
    return _entries(cleandoc(options.__doc__ or ""), "Attributes")


def _functions(source: str) -> Iterator[tuple[str, ast.FunctionDef]]:
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef):
            yield node.name, node
        elif isinstance(node, ast.ClassDef):
            yield from ((f"{node.name}.{f.name}", f) for f in node.body if isinstance(f, ast.FunctionDef))


def _entries(doc: str, title: str = "Parameters") -> dict[str, str]:
    """Return the entries in a section of a docstring, by parameter. Several parameters may share one."""
    section = doc.partition(f"{title}\n----------\n")[2].partition("\n\n")[0]
    return {name: f"{m[1]}\n{m[2].rstrip()}" for m in _ENTRY.finditer(section) for name in m[1].split(", ")}


def _listed(name: str, function: ast.FunctionDef, text: str, described: Mapping[str, Mapping[str, str]]) -> str:
    own, kept = _entries(ast.get_docstring(function) or ""), OWN.get(name, frozenset())
    shared = {n: entry for source in reversed(DESCRIBED_BY[name]) for n, entry in described[source].items()}
    names = _parameters(function, [*shared])
    entries = [own.get(n) if n in kept or n not in shared else shared[n] for n in names]
    assert all(entries), (name, [n for n, entry in zip(names, entries, strict=True) if not entry])
    return _with_section(text, " " * function.body[0].col_offset, "\n".join(dict.fromkeys(filter(None, entries))))


def _parameters(function: ast.FunctionDef, order: Sequence[str]) -> list[str]:
    """Return the names of all parameters: those in the signature, then the keys of ``**options`` in the order of the descriptions."""
    plain = [a.arg for a in (*function.args.args, *function.args.kwonlyargs) if a.arg != "self"]
    if function.args.kwarg is None:
        return plain
    kind = ast.unparse(function.args.kwarg.annotation or ast.Constant("")).removeprefix("Unpack[").rstrip("]")
    keys: dict[str, Any] = getattr(request if hasattr(request, kind) else options, kind).__annotations__
    return [*plain, *sorted(keys, key=order.index)]


def _with_section(text: str, indent: str, section: str) -> str:
    """Replace the section of parameters in the lines of a docstring, or add it before the sections that follow it."""
    title = f"{indent}Parameters\n{indent}----------\n"
    lines = textwrap.indent(section, indent)
    if title in text:
        head, _, rest = text.partition(title)
        end = min(i for mark in ("\n\n", f'\n{indent}"""') if (i := rest.find(mark)) >= 0)
        return f"{head}{title}{lines}{rest[end:]}"
    later = re.search(rf"\n\n{indent}(?:{'|'.join(_LATER)})\n{indent}---", text)
    end = later.start() if later else text.rindex('"""')
    rest = text[end:] if later else f'\n{indent}"""'
    return f"{text[:end].rstrip()}\n\n{title}{lines}{rest}"
