"""Imports go one way; each layer is imported in an interpreter of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import statetool

ROOT = Path(statetool.__file__).parent
LAYERS = ("io", "kernels", "types", "serializers", "formats", "plan", "write", "arrow", "spark", "ops", "cli")
HEAVY = {"pyspark": "spark", "pyarrow": "arrow"}


def modules(layer: str) -> list[str]:
    """Return the modules of a layer."""
    files = sorted((ROOT / layer).rglob("*.py"))
    names = [".".join(("statetool", *f.relative_to(ROOT).with_suffix("").parts)) for f in files]
    return [n.removesuffix(".__init__") for n in names]


@pytest.mark.parametrize("layer", [layer for layer in LAYERS if layer not in ("spark", "cli")])
def test_a_layer_imports_no_higher_one(layer: str) -> None:
    # The package's own __init__ is the public face above all layers, so it is stood in for here.
    code = (
        "import sys, types, importlib\n"
        f"face = types.ModuleType('statetool'); face.__path__ = [{str(ROOT)!r}]; sys.modules['statetool'] = face\n"
        f"for name in {modules(layer)!r}: importlib.import_module(name)\n"
        "print(' '.join(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    loaded = done.stdout.split()
    higher = LAYERS[LAYERS.index(layer) + 1 :]
    assert not [m for m in loaded if m.startswith(tuple(f"statetool.{h}" for h in higher))]
    for package, lowest in HEAVY.items():
        if LAYERS.index(layer) < LAYERS.index(lowest) or (layer, package) == ("ops", "pyspark"):
            assert package not in loaded


def test_the_metadata_path_needs_no_heavy_package() -> None:
    code = (
        "import sys, statetool.cli.main, statetool\n"
        "from statetool.demo import SAVEPOINT\n"
        "statetool.load(SAVEPOINT).metadata_rows('states')\n"
        "print(' '.join(m for m in ('pyspark', 'pyarrow', 'numba', 'numpy', 'pandas') if m in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_spark_is_imported_in_the_spark_layer_only() -> None:
    outside = [f for f in ROOT.rglob("*.py") if "spark" not in f.relative_to(ROOT).parts]
    guilty = [
        f.name
        for f in outside
        for line in f.read_text().splitlines()
        if line.startswith(("import pyspark", "from pyspark"))
    ]
    assert not guilty
