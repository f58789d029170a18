"""Compiled code shared by processes: each kernel is compiled by one of them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from statetool.entries.database import KERNELS
from statetool.kernels import kept
from statetool.kernels.ahead import SIGNATURES
from statetool.kernels.kept import KeptCode, claimed
from statetool.tables.read import _KERNELS
from tests.support.quick import quick

numba = pytest.importorskip("numba")

NAMES = ("decode_text.text_sizes", "decode_fixed.load_fixed", "elements.joined_counts", "elements.joined_positions")
COMPILE = f"""
from statetool.kernels import kept
from statetool.kernels.ahead import compile_together
saved = []
save = kept.KeptCode.save_overload
def counted(self, types, result):
    saved.append(self._name)
    save(self, types, result)
kept.KeptCode.save_overload = counted
compile_together({NAMES!r})
print(len(saved))
"""


@pytest.mark.parametrize("setting", quick(["", "1"], ""))
def test_processes_that_start_together_compile_each_kernel_once(tmp_path: Path, setting: str) -> None:
    variables = {k: v for k, v in os.environ.items() if k != "STATETOOL_KERNELS"} | {"STATETOOL_JIT": setting}
    started = [
        subprocess.Popen(
            [sys.executable, "-c", COMPILE],
            env=variables | {"NUMBA_CACHE_DIR": str(tmp_path)}, stdout=subprocess.PIPE, text=True,
        )
        for _ in range(3)
    ]  # fmt: skip
    counts = [int(process.communicate(timeout=120)[0]) for process in started]
    files = [f.name for f in tmp_path.rglob("*") if f.is_file()]
    assert {name.rpartition("-")[0] for name in files} >= set(NAMES)
    assert all(name.endswith(".kernel") for name in files)
    assert sum(counts) == len(files)


@pytest.fixture
def code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> KeptCode:
    monkeypatch.setattr(kept, "target", lambda: tmp_path)
    monkeypatch.setattr(kept, "folders", lambda: (tmp_path,))
    monkeypatch.setattr(kept, "_MOST_WAITING", 0.1)
    return KeptCode("example.kernel")


def test_code_that_another_process_compiles_is_waited_for_but_not_forever(tmp_path: Path, code: KeptCode) -> None:
    types: Any = (numba.int64,)
    context = numba.core.registry.cpu_target.target_context
    assert code.is_left(types, context)
    other = claimed(tmp_path / code._file((types, context.codegen().magic_tuple())))
    assert other is not None
    assert not code.is_left(types, context)
    with pytest.raises(BlockingIOError):
        claimed(tmp_path / code._file((types, context.codegen().magic_tuple())))
    assert code.load_overload(types, context) is None
    os.close(other)  # like the end of its process
    assert code.is_left(types, context)


def test_kernels_that_are_compiled_together_are_in_the_list() -> None:
    known = {line.split()[0] for line in SIGNATURES if line.split()[1] == "u1r"}
    assert known >= {"walk.walk", "heap.walk_heap", *KERNELS, *_KERNELS}
