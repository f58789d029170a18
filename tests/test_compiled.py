from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import statetool

CODE = (
    "import numpy as np\n"
    "from statetool.kernels.walk import match_range\n"
    "found, a = np.zeros(1, np.uint8), np.arange(2)\n"
    "match_range(np.array([7], np.uint8), a[:1], a[1:], np.array([7], np.uint8), found)"
)


def test_a_change_in_any_kernel_compiles_all_of_them_anew(tmp_path: Path) -> None:
    """A kernel has others compiled into it, in files that numba does not look at."""
    package = tmp_path / "statetool"
    shutil.copytree(Path(statetool.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__", "demo"))
    environment = {k: v for k, v in os.environ.items() if k != "NUMBA_CACHE_DIR"} | {"PYTHONPATH": str(tmp_path)}

    def places() -> set[str]:
        subprocess.run([sys.executable, "-c", CODE], env=environment, cwd=tmp_path, check=True)
        return {p.name for p in (package / "kernels" / "__pycache__").glob("statetool-*") if any(p.rglob("*.nbi"))}

    first = places()
    assert len(first) == 1
    assert places() == first
    with (package / "kernels" / "codes.py").open("a") as f:
        f.write("# changed\n")
    assert len(places()) == 2
