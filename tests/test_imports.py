"""What is loaded with what: each room alone needs no heavy package that is not its own. Which way imports go: :mod:`tests.test_shape`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

import statetool
from tests.test_shape import ROOMS

ROOT = Path(statetool.__file__).parent
#: Packages that take long to load, which wait until they are needed elsewhere, and the rooms whose modules load them at once.
HEAVY: Final[dict[str, set[str]]] = {
    "pyspark": set(),
    "pyarrow": {"columns", "tables", "verification", "statistics", "comparison", "saving", "migration", "jobs"},
    "numba": set(),
}


def modules(room: str) -> list[str]:
    """Return the modules of a room."""
    files = sorted((ROOT / room).rglob("*.py"))
    names = [".".join(("statetool", *f.relative_to(ROOT).with_suffix("").parts)) for f in files]
    return [n.removesuffix(".__init__") for n in names]


# The data sources in spark/ are for PySpark 4 alone.
@pytest.mark.parametrize(
    "room", [r for line in ROOMS for r in line if (ROOT / r).is_dir() and r not in (".", "spark", "cli", "jobs")]
)
def test_a_room_alone_loads_no_heavy_package_but_its_own(room: str) -> None:
    # The package's own __init__ is the public face above all rooms, so it is stood in for here.
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


def test_a_small_read_needs_no_pandas() -> None:
    # pa.array() imports it, which takes longer than the read.
    code = (
        "import sys, statetool; from statetool.demo import SAVEPOINT; "
        "print(statetool.load(SAVEPOINT)['by-short'].to_arrow().num_rows, 'pandas' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    rows, loaded = done.stdout.split()
    assert int(rows) > 0
    assert loaded == "False"


def test_a_rescale_needs_no_pandas(tmp_path: Path) -> None:
    code = (
        "import sys, statetool; from statetool.demo import SAVEPOINT; "
        "statetool.rescale(SAVEPOINT, sys.argv[1], {'timers': 300}); print('pandas' in sys.modules)"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "sp")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False"]
