"""What is published: licences, the bill of materials, pinned actions, and a wheel that two builds give with the same bytes."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Final

import pytest
import yaml
from packaging.utils import canonicalize_name

import statetool
from tools import licences

ROOT: Final = Path(__file__).parents[1]
WORKFLOWS: Final = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
#: Files that the wheel is built from.
SOURCES: Final = ("pyproject.toml", "README.md", "LICENSE", "NOTICE", "sbom", "statetool", "pyspark_flink_state.py", "pyspark_flink_state_metadata.py")  # fmt: skip
#: Licences whose terms a company would have to look at first.
COPYLEFT: Final = re.compile("GPL|SSPL|BUSL|Commons-Clause", re.IGNORECASE)


def test_each_dependency_has_a_known_licence() -> None:
    for extra, requirements in licences.extras().items():
        known = licences.table()[extra]
        assert {canonicalize_name(r.name) for r in requirements} <= known.keys(), (
            f"run: python -m tools.licences ({extra})"
        )
        assert "" not in known.values(), extra
    every = {text for known in licences.table().values() for text in known.values()}
    assert not [text for text in every if COPYLEFT.search(text)]


def test_the_bill_of_materials_names_what_pip_installs() -> None:
    document = json.loads(licences.SBOM.read_text())
    assert (document["bomFormat"], document["specVersion"]) == ("CycloneDX", "1.6")
    assert document["metadata"]["component"]["version"] == statetool.__version__
    required = {c["name"] for c in document["components"] if c["scope"] == "required"}
    assert required == {canonicalize_name(r.name) for r in licences.extras()[licences.CORE]}
    references = [c["bom-ref"] for c in document["components"]]
    assert len(references) == len(set(references))


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.stem)
def test_workflows_pin_actions_and_have_few_rights(file: Path) -> None:
    text = file.read_text()
    used = re.findall(r"uses: *(.*)", text)
    assert used
    assert not [action for action in used if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40} # v\d+(\.\d+)*", action)]
    assert yaml.safe_load(text)["permissions"] == {"contents": "read"}
    assert text.count("persist-credentials: false") == text.count("uses: actions/checkout@")


def built(folder: Path, moment: float) -> Path:
    """Return the wheel that is built in a folder from copies of the sources, all changed at a moment."""
    for name in SOURCES:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__", "*.kernel"))
        else:
            folder.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, folder / name)
    for path in folder.rglob("*"):
        os.utime(path, (moment, moment))
    command = [sys.executable, "-m", "build", "--wheel", "--outdir", str(folder / "dist"), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = (folder / "dist").glob("*.whl")
    return wheel


@pytest.mark.full
def test_two_builds_give_the_same_wheel_with_its_bill_of_materials(tmp_path: Path) -> None:
    first, second = (
        built(tmp_path / name, moment) for name, moment in (("a", 1_500_000_000), ("other/b", 1_700_000_000))
    )
    assert hashlib.sha256(first.read_bytes()).digest() == hashlib.sha256(second.read_bytes()).digest()
    with zipfile.ZipFile(first) as wheel:
        (name,) = [n for n in wheel.namelist() if ".dist-info/sboms/" in n]
        assert json.loads(wheel.read(name)) == json.loads(licences.SBOM.read_text())
