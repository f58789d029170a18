"""The public names as type checkers see them: ``statetool/__init__.pyi``, from the table in ``statetool/__init__.py``."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

import statetool

STUB: Final = Path(statetool.__file__).with_suffix(".pyi")
_LONGEST_LINE: Final = 120


def stub() -> str:
    """Return the text of the stub."""
    imports = {module: list(names) for module, names in statetool._NAMES.items()}
    for name, module in statetool._SUBMODULES.items():
        package, _, own = module.rpartition(".")
        imports.setdefault(package, []).append(own if own == name else f"{own} as {name}")
    lines = ["# Written by: python -m tools.generated", "from typing import Final", ""]
    lines += [_listed(f"from {module} import ", "()", sorted(imports[module])) for module in sorted(imports)]
    lines += ["", _listed("__all__ = ", "[]", [f'"{name}"' for name in statetool.__all__], flat=False)]
    lines += [
        "__version__: Final[str]",
        "_NAMES: Final[dict[str, tuple[str, ...]]]",
        "_SUBMODULES: Final[dict[str, str]]",
        "",
    ]
    return "\n".join(lines)


def _listed(start: str, brackets: str, names: Iterable[str], *, flat: bool = True) -> str:
    names = list(names)
    line = start + ", ".join(names)
    if flat and len(line) <= _LONGEST_LINE:
        return line
    return "\n".join((f"{start}{brackets[0]}", *(f"    {name}," for name in names), brackets[1]))
