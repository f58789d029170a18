"""Signatures and docstrings of the functions that write a changed copy of a snapshot, from the declared parameters.

``python -m tools.verbs`` writes them into the modules of ``statetool/api/write``. Parameters are described once: in the class of the verb
(:mod:`statetool.api.write.verbs`), or in :class:`statetool.api.write.options.WriteOptions`.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterator
from dataclasses import MISSING, Field, fields
from pathlib import Path
from typing import Any, Final

from statetool.api import start_options
from statetool.api.write.options import WriteOptions
from statetool.api.write.verbs.base import Verb
from statetool.api.write.verbs.table import VERBS
from tools.shared_parameters import API, add_shared, attribute_entries, described_parameters, entry

MODULES: Final = API / "write"
#: The width of a description in the docstring of a function.
_WIDTH: Final = 140 - 8
_SIGNATURE: Final = re.compile(r"(?<=\()\n(.*?)(?=\n\) -> )", re.DOTALL)
_SECTION: Final = re.compile(r"(?<=    Parameters\n    ----------\n)(.*?)(?=\n\n|\n    \"\"\")", re.DOTALL)


def write_again(source: str) -> str:
    """Return the source of a module with the declared parameters in the signatures and docstrings of its functions."""
    lines = source.split("\n")
    functions = [node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef) and node.name in VERBS]
    for function in reversed(functions):
        start, end = function.lineno - 1, function.body[0].end_lineno
        lines[start:end] = _declared("\n".join(lines[start:end]), VERBS[function.name]).split("\n")
    return "\n".join(lines)


def _declared(text: str, verb: type[Verb]) -> str:
    """Write the parameters of a verb into the signature and docstring of its function. Further options, ``**more``, stay at the end."""
    own = [f for f in fields(verb) if f.metadata["doc"]]
    first = [f for f in own if f.metadata.get("positional")]
    others = [*(f for f in own if f not in first), *(f for f in fields(WriteOptions) if f.name not in verb.without)]
    text, more = _with_signature(text, [*map(_declaration, first), "*", *map(_declaration, others)])
    entries = [textwrap.indent(entry(f, _WIDTH, verb.described.get(f.name)), "    ") for f in (*first, *others)]
    section = _SECTION.search(text)
    assert section, verb
    return text[: section.start()] + "\n".join((*entries, *more)) + text[section.end() :]


def _with_signature(text: str, declarations: list[str]) -> tuple[str, list[str]]:
    """Replace the parameters of a function, and return the entries of its further options too."""
    signature = _SIGNATURE.search(text)
    assert signature, text
    more = re.findall(r"^    (\*\*\w+: Unpack\[(\w+)\]),$", signature[1], re.MULTILINE)
    lines = [f"    {line}," for line in (*declarations, *(line for line, _ in more))]
    described = (attribute_entries(getattr(start_options, kind)).values() for _, kind in more)
    entries = [textwrap.indent(text, "    ") for found in described for text in dict.fromkeys(found)]
    return f"{text[: signature.start()]}\n{chr(10).join(lines)}{text[signature.end() :]}", entries


def _declaration(declared: Field[Any]) -> str:
    default = "" if declared.default is MISSING else f" = {_text(declared.default)}"
    kind = str(declared.type).replace("'", '"')  # as the formatter writes texts
    return f"{declared.name}: {kind}{default}"


def _text(default: object) -> str:
    return f'"{default}"' if isinstance(default, str) else repr(default)


def stale() -> Iterator[tuple[Path, str]]:
    """Yield the modules whose sources are not those of the declarations, with what they should be."""
    described = described_parameters()
    for file in sorted(API.rglob("*.py")):
        source = file.read_text("utf-8")
        new = add_shared(write_again(source) if file.parent == MODULES else source, described)
        if new != source:
            yield file, new


if __name__ == "__main__":
    for file, new in stale():
        file.write_text(new, "utf-8")
        print(file, "changed")
