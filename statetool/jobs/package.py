"""Pack statetool for ``spark-submit --py-files``: ``python -m statetool.jobs.package statetool.zip``.

The zip also contains bytecode. Without it, the driver and each worker of each application compile the modules again, which takes three
times as much CPU time as the rest of loading statetool. Another Python version ignores the bytecode and compiles.
"""

from __future__ import annotations

import argparse
import py_compile
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import statetool

#: Suffixes of files that modules read: tables, signatures of kernels, and the program that runs the job's classes.
_DATA: Final = (".tsv", ".txt", ".java")


def main(arguments: Sequence[str]) -> int:
    """Write the zip and return the exit code."""
    parser = argparse.ArgumentParser(prog="statetool.jobs.package", description=__doc__)
    parser.add_argument("target", type=Path, help="a new file, whose name ends in .zip")
    target = parser.parse_args(arguments).target
    if target.suffix != ".zip":
        parser.error(f"{target} does not end in .zip, without which Spark does not put it on the path")
    if target.exists():
        parser.error(f"{target} already exists")
    print(f"{package(target)} modules in {target}")
    return 0


def package(target: Path) -> int:
    """Write the zip and return the number of its modules."""
    root = Path(statetool.__file__).parent
    modules = sorted([*root.rglob("*.py"), *root.parent.glob("pyspark_flink_state*.py")])
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(target, "w") as packed:
        for module in modules:
            name = module.relative_to(root.parent)
            compiled = py_compile.compile(str(module), f"{folder}/module.pyc", dfile=str(name), doraise=True)
            packed.write(module, name)
            packed.write(str(compiled), name.with_suffix(".pyc"))
        for file in sorted(f for suffix in _DATA for f in root.rglob(f"*{suffix}")):
            packed.write(file, Path(root.name) / file.relative_to(root))
    return len(modules)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
