"""Compilation of kernels: when it happens, and equal results without it."""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

import numpy as np
import pytest

import statetool
from statetool.analysis.comparison.changes import changes, plan_changes
from statetool.kernels import ahead
from statetool.kernels.ahead import SIGNATURES, described, ship
from statetool.kernels.core import jit, kept
from statetool.kernels.core.jit import InterpretBudget, Kernel
from statetool.kernels.entries.walk import match_range
from statetool.kernels.rocksdb import checksums
from statetool.snapshot.inventory import Inventory
from statetool.tables.request import ScanRequest
from statetool.tables.scan import scan_table
from tests.support.checks.corpus_check import Case
from tests.support.checks.damage_check import check_damage
from tests.support.corpora.kryo_classes import CLASSES
from tests.support.flink.corpus_cases import metadata_of
from tests.support.kernel_signatures import CALLED
from tests.support.snapshots.incremental import Job
from tests.support.zoo import ZOO

#: Size above which a comparison would take too long.
MOST = 70_000


def arguments(n: int = 2) -> tuple[Any, ...]:
    """Return arguments of ``match_range`` with ``n`` bytes 7, which match."""
    starts = np.arange(n)
    out = np.zeros(n, np.uint8)
    return np.full(n, 7, np.uint8), starts, starts + 1, np.array([7], np.uint8), out


class Unready:
    """Substitute for compiled code."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, *arguments: Any) -> None:
        self.calls += 1


by_size = pytest.mark.xfail(
    np.lib.NumpyVersion(np.__version__) < "2.0.0",
    reason="with NumPy 1, whose sums of integers may become floating, everything is compiled",
    strict=True,
)


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> Kernel:
    """Return a kernel that was neither called nor compiled yet."""
    monkeypatch.delenv("STATETOOL_JIT", raising=False)
    monkeypatch.setattr(kept, "names", frozenset)
    new = Kernel(match_range.function)
    new.__dict__["compiled"] = Unready()
    return new


@by_size
def test_a_small_call_runs_uncompiled(kernel: Kernel) -> None:
    passed = arguments()
    kernel(*passed)
    assert passed[-1].tolist() == [1, 1]
    assert kernel.compiled.calls == 0  # type: ignore[attr-defined]


def test_a_large_call_compiles(kernel: Kernel) -> None:
    kernel(*arguments(int(jit.BEFORE_COMPILING.elements) + 1))
    kernel(*arguments())  # small, but compiled code exists by then
    assert kernel.compiled.calls == 2  # type: ignore[attr-defined]


@by_size
def test_small_calls_compile_when_they_have_taken_as_long_as_that(
    kernel: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jit, "BEFORE_COMPILING", InterpretBudget(100, 0))
    # Some machines count CPU time in hundredths of a second.
    monkeypatch.setattr(jit, "time", SimpleNamespace(thread_time=itertools.count().__next__))
    kernel(*arguments())
    assert kernel.compiled.calls == 0  # type: ignore[attr-defined]
    kernel(*arguments())
    assert kernel.compiled.calls == 1  # type: ignore[attr-defined]


def test_code_that_is_kept_is_used_sooner(kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "names", lambda: frozenset({"entries.walk.match_range"}))
    kernel(*arguments(int(jit.BEFORE_LOADING.elements) + 1))
    assert kernel.compiled.calls == 1  # type: ignore[attr-defined]


@pytest.mark.parametrize("there", [pytest.param(False, marks=by_size), True])
def test_kept_code_is_loaded_at_once_where_numba_is_there(
    kernel: Kernel, monkeypatch: pytest.MonkeyPatch, there: bool
) -> None:
    monkeypatch.setattr(kept, "names", lambda: frozenset({"entries.walk.match_range"}))
    monkeypatch.setattr(
        sys, "modules", {n: m for n, m in sys.modules.items() if n != "numba"} | ({"numba": kept} if there else {})
    )
    kernel(*arguments(int(jit.WITH_NUMBA.elements) + 1))
    assert kernel.compiled.calls == int(there)  # type: ignore[attr-defined]


@pytest.mark.parametrize(("asked", "calls"), [("0", 0), ("1", 1)])
def test_who_uses_it_can_say(kernel: Kernel, monkeypatch: pytest.MonkeyPatch, asked: str, calls: int) -> None:
    monkeypatch.setenv("STATETOOL_JIT", asked)
    kernel(*arguments(1 << 20 if asked == "0" else 1))
    assert kernel.compiled.calls == calls  # type: ignore[attr-defined]


def test_where_sums_become_floating_nothing_runs_uncompiled(kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(np, "__version__", "1.26.4")
    kernel(*arguments())
    assert kernel.compiled.calls == 1  # type: ignore[attr-defined]


def test_what_runs_uncompiled_calls_no_kernel_and_warns_of_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sums that overflow wrap around, as in compiled code."""
    monkeypatch.setenv("STATETOOL_JIT", "0")
    new = Kernel(checksums._first_bad.function)
    assert not any(isinstance(value, Kernel) for value in new.uncompiled.__globals__.values())
    monkeypatch.setattr(checksums, "_first_bad", new)
    data = np.frombuffer(b"abc\0" + (0x78AF5F94892F3950 & 0xFFFFFFFF).to_bytes(4, "little"), np.uint8)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        assert checksums.first_bad_block(data, np.array([0]), np.array([3]), checksums.XXH3) == -1


def cold(folder: Path, *command: str, **more: str) -> str:
    """Run Python with no cached code except in ``folder``."""
    left_out = ("STATETOOL_JIT", "STATETOOL_KERNELS", "XDG_CACHE_HOME")
    inherited = {k: v for k, v in os.environ.items() if k not in left_out}
    environment = inherited | {"NUMBA_CACHE_DIR": str(folder)} | more
    return subprocess.run(
        [sys.executable, *command], env=environment, capture_output=True, text=True, check=True
    ).stdout


@by_size
def test_a_small_table_is_read_without_numba(tmp_path: Path) -> None:
    code = (
        "import sys, statetool\n"
        f"sp = statetool.load({ZOO!r})\n"
        "print(sp['collections-by-string'].to_arrow().num_rows, 'numba' in sys.modules)"
    )
    assert cold(tmp_path, "-W", "error::RuntimeWarning", "-c", code) == "13 False\n"


CALL = (
    "import numpy as np, sys, time\n"
    "from statetool.kernels.entries.walk import match_range\n"
    "out, a = np.zeros(1, np.uint8), np.arange(2)\n"
    "match_range(np.array([7], np.uint8), a[:1], a[1:], np.array([7], np.uint8), out)\n"
    "print(out[0], sum(match_range.compiled._cache_misses.values()))"
)


def test_code_is_found_again_wherever_the_package_lies(tmp_path: Path) -> None:
    """As Spark unpacks it: a zip, in a different place each time."""
    package, code, source = Path(statetool.__file__).parent, tmp_path / "kept", tmp_path / "three"
    for name in ("kernels", "io"):
        shutil.copytree(package / name, source / "statetool" / name)
    shutil.copy(package / "errors.py", source / "statetool")
    for name in ("one", "two"):
        shutil.make_archive(str(tmp_path / name), "zip", source)
    (tmp_path / "four").mkdir()
    places = [tmp_path / "one.zip", tmp_path / "two.zip", source]
    alone = "import sys, types; face = types.ModuleType('statetool'); face.__path__ = [sys.argv[1]]; sys.modules['statetool'] = face\n"
    missed = [cold(code, "-c", alone + CALL, f"{place}/statetool", STATETOOL_JIT="1").strip() for place in places]
    assert missed == ["1 1", "1 0", "1 0"]
    # Shipped: from a folder that the environment names, or one next to the kernels, also in a zip.
    shutil.copytree(code / "statetool", tmp_path / "shipped")
    named = cold(tmp_path / "four", "-c", CALL, STATETOOL_JIT="1", STATETOOL_KERNELS=str(tmp_path / "shipped"))
    assert named == "1 0\n"
    shutil.copytree(code / "statetool", source / "statetool" / "kernels" / "compiled")
    shutil.make_archive(str(tmp_path / "five"), "zip", source)
    assert cold(tmp_path / "four", "-c", alone + CALL, f"{tmp_path}/five.zip/statetool", STATETOOL_JIT="1") == "1 0\n"


def test_damaged_code_is_compiled_again(tmp_path: Path) -> None:
    assert cold(tmp_path, "-c", CALL, STATETOOL_JIT="1") == "1 1\n"
    (file,) = (f for f in tmp_path.rglob("entries.walk.match_range-*"))
    good = file.read_bytes()
    file.write_bytes(good[:100] + bytes([good[100] ^ 1]) + good[101:])
    assert cold(tmp_path, "-c", CALL, STATETOOL_JIT="1") == "1 1\n"
    assert len(file.read_bytes()) == len(good)


def test_a_change_in_any_kernel_is_other_code(tmp_path: Path) -> None:
    """A kernel has others compiled into it, from files that numba does not check."""
    package = tmp_path / "statetool"
    shutil.copytree(Path(statetool.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__", "demo"))
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); from statetool.kernels.core import kept; print(kept.__file__, kept.stamp())"
    first = cold(tmp_path, "-c", code)
    assert first.startswith(str(package))
    assert cold(tmp_path, "-c", code) == first
    with (package / "kernels" / "core" / "codes.py").open("a") as f:
        f.write("# changed\n")
    assert cold(tmp_path, "-c", code) != first


def test_where_nothing_can_be_written_nothing_is_kept(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert cold(tmp_path / "file", "-c", CALL, STATETOOL_JIT="1") == "1 1\n"


def test_code_is_shipped_for_everyone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An image is built by root and run by another user; cached code is readable by its owner only."""
    own, new = tmp_path / "own", tmp_path / "new"
    own.mkdir()
    (own / "a.kernel").touch(mode=0o600)
    new.touch()
    monkeypatch.setattr(kept, "target", lambda: own)
    shipped = Path(ship(str(tmp_path / "shipped")) or "") / "a.kernel"
    assert shipped.stat().st_mode == new.stat().st_mode


@pytest.mark.parametrize("text", ["u1r", "i8", "i8:A", "i8:2", "u8:2:Ar", "Rows(i8 i8 i8 i8 i8 i8)", "int", "bool"])
def test_what_is_compiled_ahead_is_what_is_called(text: str) -> None:
    assert described(ahead._example(text)) == text


@pytest.fixture
def both_ways(monkeypatch: pytest.MonkeyPatch) -> Iterator[set[str]]:
    """Run every kernel call compiled and uncompiled, and compare the results; yield the signatures called."""
    called: set[str] = set()

    def call(kernel: Kernel, *passed: Any) -> Any:
        called.add(" ".join((kernel.name, *map(described, passed))))
        if max(map(jit._size, passed), default=0) > MOST:
            return kernel.compiled(*passed)
        copies: dict[int, Any] = {}
        copies_passed = tuple(copied(a, copies) for a in passed)
        uncompiled, compiled = kernel._run_uncompiled(copies_passed), kernel.compiled(*passed)
        assert repr(uncompiled) == repr(compiled), kernel.name
        assert all(map(equal, copies_passed, passed)), kernel.name
        return compiled

    monkeypatch.setattr(Kernel, "__call__", call)
    yield called
    CALLED.update(called)


def copied(argument: Any, copies: dict[int, Any]) -> Any:
    if isinstance(argument, np.ndarray):
        copy = copies.setdefault(id(argument), argument.copy())
        copy.flags.writeable = argument.flags.writeable
        return copy
    if isinstance(argument, tuple):
        return type(argument)(*(copied(a, copies) for a in argument))
    return argument


def equal(one: Any, other: Any) -> bool:
    return all(map(equal, one, other)) if isinstance(one, tuple) else bool(np.array_equal(one, other))


def read_all(path: str) -> None:
    for operator in statetool.load(path).operators.values():
        for table in operator.tables:
            for _ in operator.batches(table, on_error="keep_raw"):
                pass


def test_uncompiled_kernels_do_the_same(both_ways: set[str]) -> None:
    read_all(ZOO)
    assert len(both_ways) > 10
    assert both_ways <= set(SIGNATURES)


def test_uncompiled_kernels_do_the_same_in_comparisons(tmp_path: Path, both_ways: set[str]) -> None:
    with Job(tmp_path / "root") as job:
        for number in range(2):
            for key in range(20 * number, 100):
                job.put("a", key, b"%d" % number)
            job.checkpoint()
    paths = [str(tmp_path / "root" / f"chk-{number}") for number in (1, 2)]
    before, after = (Inventory(path, uids=("op",)).operator("op") for path in paths)
    request = ScanRequest.of("a")
    scans = [(operator, scan_table(operator, request)) for operator in (before, after)]
    units = plan_changes(scans[0], scans[1], request, upserts=False)
    assert sum(batch.num_rows for unit in units for batch in changes(unit)) == 80
    old, new = (statetool.load(path, uids=["op"]) for path in paths)
    assert sum(row.changed for row in old.diff(new).summary()) == 80
    assert {name.partition(" ")[0] for name in both_ways} >= {
        "rocksdb.sorted_keys.mark_blocks",
        "entries.comparison.pair_hashes",
    }
    assert both_ways <= set(SIGNATURES)


def test_uncompiled_kernels_do_the_same_in_native_forms(corpus: Path, tmp_path: Path, both_ways: set[str]) -> None:
    backends: tuple[Literal["rocksdb", "forst", "heap"], ...] = ("rocksdb", "forst", "heap")
    for backend in backends:
        for name in ("v2_3_0-rocksdb-canonical", "v2_3_0-rocksdb-incremental"):
            source = statetool.load(str(metadata_of(corpus / name)), declarations=CLASSES)
            statetool.convert(source, str(tmp_path / backend / name), format="native", backend=backend)
    assert {name.partition(" ")[0] for name in both_ways} >= {
        "entries.heap_output.write_heap",
        "entries.timers.unflip_timers",
        "entries.composite_keys.join_keys",
        "rocksdb.blocks.encode_index",
        "rocksdb.checksums._seal",
        "rocksdb.table_blocks.encode_blocks",
    }
    assert both_ways <= set(SIGNATURES)


@pytest.mark.full
# ForSt has the tables of RocksDB.
@pytest.mark.parametrize("name", ["v2_3_0-rocksdb-native", "v2_3_0-hashmap-checkpoint"])
def test_uncompiled_kernels_do_the_same_with_damaged_bytes(corpus: Path, both_ways: set[str], name: str) -> None:
    check_damage([Case(corpus / name)], truncations=10, changes=50, seed=5)
    assert both_ways <= set(SIGNATURES)


@pytest.mark.full
def test_uncompiled_kernels_do_the_same_with_rows_of_sql_and_changes(
    corpus: Path, sql_corpus: Path, both_ways: set[str]
) -> None:
    for case in sorted(sql_corpus.glob("sql_*/**/_metadata")):
        read_all(str(case))
    read_all(str(corpus / "v2_3_0-changelog-hashmap" / "snapshot" / "chk-3"))
    assert both_ways <= set(SIGNATURES)
