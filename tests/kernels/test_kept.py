"""Compiled code shared by processes: each kernel is compiled by one of them."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

from statetool.entries.database import KERNELS
from statetool.kernels.ahead import SIGNATURES
from statetool.kernels.core import kept
from statetool.kernels.core.kept import claimed
from statetool.kernels.core.numba_private import KeptCode
from statetool.tables.splits import _KERNELS
from tests.support.quick import quick

numba = pytest.importorskip("numba")

NAMES = (
    "values.decode_text.text_sizes",
    "values.decode_fixed.load_fixed",
    "values.elements.joined_counts",
    "values.elements.joined_positions",
)
COMPILE = f"""
from statetool.kernels.core import kept
from statetool.kernels.ahead import compile_together
from statetool.kernels.core.numba_private import KeptCode
saved = []
save = KeptCode.save_overload
def counted(self, types, result):
    saved.append(self._name)
    save(self, types, result)
KeptCode.save_overload = counted
kept._MOST_WAITING = 3600.0  # however busy the machine is
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
    counts = [int(process.communicate()[0]) for process in started]
    files = [f.name for f in tmp_path.rglob("*") if f.is_file()]
    assert {name.rpartition("-")[0] for name in files} >= set(NAMES)
    assert all(name.endswith(".kernel") for name in files)
    assert sum(counts) == len(files)


@pytest.mark.parametrize(
    ("version", "setting", "plain"),
    [("0.69.0", "", True), ("1.0.0rc1", "", True), ("0.68.1", "", False), ("0.69.0", "numba", True)],
)
def test_a_newer_numba_is_used_by_its_public_parts(
    version: str, setting: str, plain: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STATETOOL_PLAIN", setting)
    monkeypatch.setattr("importlib.metadata.version", lambda _: version)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        # Without its cache: the answer of this process stays.
        assert kept.is_numba_plain.__wrapped__() == plain
    assert [str(w.message).partition(":")[0] for w in told] == (
        [f"numba {version} is newer than 0.68, the newest that statetool was tested with"]
        if plain and not setting
        else []
    )


def test_the_installed_numba_is_a_tested_one() -> None:
    assert not kept.is_numba_plain.__wrapped__()


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


def test_no_lock_remains_if_another_process_caches_the_code_meanwhile(
    tmp_path: Path, code: KeptCode, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = iter([None, "code"])
    monkeypatch.setattr(code, "_stored", lambda *_: next(found))
    assert not code.is_left((numba.int64,), numba.core.registry.cpu_target.target_context)
    assert not list(tmp_path.iterdir())


def test_kernels_that_are_compiled_together_are_in_the_list() -> None:
    known = {line.split()[0] for line in SIGNATURES if line.split()[1] == "u1r"}
    assert known >= {"entries.walk.walk", "entries.heap.walk_heap", *KERNELS, *_KERNELS}


def test_without_private_parts_nothing_is_cached_and_results_are_equal(tmp_path: Path) -> None:
    code = (
        "import hashlib, numpy as np\n"
        "from statetool.kernels.core import kept, numba_private\n"
        "from statetool.kernels.ahead import compile_together\n"
        "from statetool.kernels.core.words import copy_ranges\n"
        "at = np.random.default_rng(1).permutation(1000) * 9\n"
        "data, out = np.arange(9000).astype(np.uint8), np.zeros(9000, np.uint8)\n"
        f"compile_together({NAMES!r})\n"
        "copy_ranges(data, at, np.full(1000, 9), out, np.arange(1000) * 9)\n"
        "own = isinstance(copy_ranges.compiled._cache, numba_private.KeptCode)\n"
        "print(hashlib.sha256(out).hexdigest(), own, len(kept.folders()), kept.target() is None)\n"
    )
    found = {}
    for plain in ("", "numba"):
        variables = os.environ | {
            "STATETOOL_JIT": "1",
            "NUMBA_CACHE_DIR": str(tmp_path / f"c{plain}"),
            "STATETOOL_PLAIN": plain,
        }
        done = subprocess.run([sys.executable, "-c", code], env=variables, capture_output=True, text=True, check=True)
        found[plain] = done.stdout.split()
    assert found[""][0] == found["numba"][0]
    assert found[""][1] == "True"
    assert found["numba"][1:] == ["False", "0", "True"]
    assert not list((tmp_path / "cnumba").rglob("*.kernel"))
