"""The image of the command line built from the package's ``Dockerfile``: it has no Spark, is not root, and writes nothing to its own files."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import statetool
from tests.support.patience import PATIENCE_S
from tests.support.zoo import ZOO
from tools.image import Image, built_image

pytestmark = [pytest.mark.full, pytest.mark.timeout(3600)]

MOST_BYTES = 300_000_000


@pytest.fixture(scope="module")
def buildah(pytestconfig: pytest.Config) -> str:
    return str(pytestconfig.getoption("--buildah"))


@pytest.fixture(scope="module")
def image(buildah: str) -> Iterator[Image]:
    with built_image(buildah, "cli") as built:
        yield built


def run(image: Image, shared: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [*image.launcher(shared), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)


def files_of(root: Path) -> dict[str, tuple[int, int]]:
    """Return size and time of all files of an image, without those that the system makes for each container."""
    given = ("etc/hosts", "etc/resolv.conf", "etc/hostname", "run", "proc", "sys", "dev")
    names = ((file, str(file.relative_to(root))) for file in root.rglob("*"))
    return {n: (f.lstat().st_size, f.lstat().st_mtime_ns) for f, n in names if not n.startswith(given) and f.is_file()}


def test_commands_run_without_spark_root_and_writable_files(image: Image, tmp_path: Path) -> None:
    tmp_path.chmod(0o777)  # for the image's user
    shutil.copytree(ZOO, tmp_path / "savepoint")
    (image.root / "tmp").chmod(0o755)  # the user can write nowhere but in the shared folder
    before = files_of(image.root)
    version = run(image, tmp_path, "statetool", "--version")
    assert (version.returncode, version.stdout) == (0, f"statetool, version {statetool.__version__}\n")
    info = run(image, tmp_path, "statetool", "info", str(tmp_path / "savepoint"), "--json")
    assert info.returncode == 0, info.stderr
    expected = statetool.load(ZOO)
    assert {o["operator_id"] for o in json.loads(info.stdout)["operators"]} == {
        expected[n].operator_id for n in expected
    }
    verified = run(image, tmp_path, "statetool", "verify", str(tmp_path / "savepoint"), "--deep")
    assert verified.returncode == 0, verified.stdout + verified.stderr
    rescaled = run(
        image,
        tmp_path,
        "statetool",
        "rescale",
        str(tmp_path / "savepoint"),
        str(tmp_path / "new"),
        "--max-parallelism",
        "256",
    )
    assert rescaled.returncode == 0, rescaled.stdout + rescaled.stderr
    assert files_of(image.root) == before
    look = "import importlib.util, os; print(os.getuid(), importlib.util.find_spec('pyspark'))"
    assert run(image, tmp_path, "python3", "-c", look).stdout == "65534 None\n"


def test_it_is_small(image: Image) -> None:
    assert image.compressed_bytes() <= MOST_BYTES


def test_it_starts_the_command_as_nobody(image: Image) -> None:
    config = json.loads(image.buildah("inspect", "--type", "image", "image"))["OCIv1"]["config"]
    assert (config["User"], config["Entrypoint"]) == ("65534:65534", ["statetool"])
