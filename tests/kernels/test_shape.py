"""Size limits of kernels and their modules."""

from __future__ import annotations

import ast
from pathlib import Path

import statetool.kernels

ROOT = Path(statetool.kernels.__file__).parent
LINES_OF_A_MODULE = 450
LINES_OF_A_FUNCTION = 60
#: Kernels that would be slower if split, with the reason: ``heap.walk_heap``.
LONG_KERNELS: dict[str, str] = {}


def test_modules_are_small() -> None:
    assert not [f.name for f in ROOT.rglob("*.py") if len(f.read_text().splitlines()) > LINES_OF_A_MODULE]


def test_only_kernels_with_a_reason_are_long() -> None:
    long = {
        f"{f.stem}.{node.name}"
        for f in ROOT.rglob("*.py")
        for node in ast.walk(ast.parse(f.read_text()))
        if isinstance(node, ast.FunctionDef)
        and node.end_lineno is not None
        and node.end_lineno - node.lineno >= LINES_OF_A_FUNCTION
    }
    assert long == set(LONG_KERNELS)
    assert all(LONG_KERNELS.values())
