"""Heavy imports: no package loads a heavy dependency that it does not need. For the direction of imports see :mod:`tests.test_shape`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import statetool
from tests.support.zoo import ZOO

ROOT = Path(statetool.__file__).parent
#: Slow imports, which are deferred until needed, and the packages whose modules import them immediately.
HEAVY: Final[dict[str, set[str]]] = {
    "pyspark": set(),
    "pyarrow": {
        "api",
        "columns",
        "tables",
        "analysis",
        "saving",
        "migration",
        "jobs",
    },
    "numba": set(),
}


def modules(room: str) -> list[str]:
    """Return the modules of a package."""
    files = sorted((ROOT / room).rglob("*.py"))
    names = [".".join(("statetool", *f.relative_to(ROOT).with_suffix("").parts)) for f in files]
    return [n.removesuffix(".__init__") for n in names]


# The data sources in spark/ require PySpark 4.
@pytest.mark.parametrize(
    "room", sorted(f.parent.name for f in ROOT.glob("*/__init__.py") if f.parent.name not in ("spark", "cli", "jobs"))
)
def test_a_room_alone_loads_no_heavy_package_but_its_own(room: str) -> None:
    # The top-level __init__ is the public API above all packages, so it is replaced here.
    code = (
        "import sys, types, importlib\n"
        f"face = types.ModuleType('statetool'); face.__path__ = [{str(ROOT)!r}]; sys.modules['statetool'] = face\n"
        f"for name in {modules(room)!r}: importlib.import_module(name)\n"
        "print(' '.join(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert {p for p in HEAVY if p in done.stdout.split()} == {p for p, rooms in HEAVY.items() if room in rooms}


def test_the_metadata_path_needs_no_heavy_package() -> None:
    code = (
        "import sys, statetool.cli.main, statetool\n"
        "from statetool.demo import SAVEPOINT\n"
        "statetool.load(SAVEPOINT).metadata_rows('states')\n"
        "print(' '.join(m for m in ('pyspark', 'pyarrow', 'numba', 'numpy', 'pandas') if m in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_spark_is_imported_in_the_spark_room_only() -> None:
    outside = [f for f in ROOT.rglob("*.py") if "spark" not in f.relative_to(ROOT).parts]
    guilty = [
        f.name
        for f in outside
        for line in f.read_text().splitlines()
        if line.startswith(("import pyspark", "from pyspark"))
    ]
    assert not guilty


@pytest.mark.parametrize(
    "work",
    [
        "sp['by-short'].to_arrow()",
        # Imports of Spark tasks.
        "from statetool.spark.source.guard import reject_unsupported_rows; "
        "any(map(len, reject_unsupported_rows(iter(sp['collections-by-string'].to_arrow(states=['prices', 'visits', 'names']).to_batches()))))",
        "statetool.rescale(sys.argv[3], sys.argv[1], {'timers': 300})",
        "statetool.SavepointWriter.new().with_operator('new', statetool.bootstrap_keyed_state("
        "pq.ParquetFile(sys.argv[2]).read(), key='k', states={'n': statetool.value('BIGINT'), "
        "'s': statetool.value('STRING'), 'm': statetool.map_of('STRING', 'DOUBLE')})).write(sys.argv[1])",
    ],
)
def test_small_works_need_no_pandas(tmp_path: Path, work: str) -> None:
    # Arrow imports it for pa.array(), pa.scalar() and to_numpy(), which takes longer than such a small job.
    pq.write_table(
        pa.table({"k": ["a"], "n": [1], "s": ["b"], "m": pa.array([[("c", 0.5)]], pa.map_("string", "double"))}),
        tmp_path / "rows.parquet",
    )
    code = (
        "import sys, statetool, pyarrow.parquet as pq; sp = statetool.load(sys.argv[3])\n"
        f"{work}\nprint('pandas' in sys.modules)"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "sp"), str(tmp_path / "rows.parquet"), ZOO]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["False"], done.stderr


def test_the_command_sql_needs_no_pandas() -> None:
    # With a condition, the oldest supported pyarrow imports it again.
    code = (
        "import sys; from statetool.cli.main import main; from statetool.demo import SAVEPOINT\n"
        "sys.argv = ['statetool', 'sql', SAVEPOINT, 'FROM orders_points LIMIT 1', '-o', 'csv']\n"
        "try: main()\nfinally: print('pandas' in sys.modules, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.split()) == (0, ["False"]), done.stdout
    assert len(done.stdout.splitlines()) == 2
