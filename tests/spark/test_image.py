"""The image of Spark built from the package's ``Dockerfile``: workers and a driver run in it, and nothing is shipped to them."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import statetool
from tests.support.patience import PATIENCE_S
from tests.support.servers.cluster import SETTINGS, cluster
from tests.support.zoo import ZOO
from tools.image import HOME, MARK, Image, built_image

pytestmark = [pytest.mark.full, pytest.mark.timeout(3600)]

STATES = ["total", "joined"]
JOBS = "/opt/statetool/jobs"
#: Report of executors: the operating system, their user and statetool, and how often a kernel's code was cached and not cached.
LOOK = f"""
import json
from pyspark.sql import SparkSession

def look(_):
    import numpy as np, os, statetool
    from statetool.kernels.entries.walk import match_range
    seven, at = np.frombuffer(b"7", np.uint8), np.arange(2)
    match_range.compiled(seven, at[:1], at[1:], seven, np.zeros(1, np.uint8))
    kept = match_range.compiled.stats
    code = sum(kept.cache_hits.values()), sum(kept.cache_misses.values())
    yield open({MARK!r}).read(), os.getuid(), os.path.samefile({JOBS!r}, statetool.__path__[0] + "/jobs"), *code

spark = SparkSession.builder.getOrCreate()
print("seen", json.dumps(spark.sparkContext.parallelize(range(2), 2).mapPartitions(look).collect()))
"""


@pytest.fixture(scope="module")
def buildah(pytestconfig: pytest.Config) -> str:
    return str(pytestconfig.getoption("--buildah"))


@pytest.fixture(scope="module")
def image(buildah: str) -> Iterator[Image]:
    with built_image(buildah, "spark") as built:
        yield built


def submit(launcher: tuple[str, ...], master: str, *arguments: str) -> str:
    """Run a job whose driver is in the image too; return its output."""
    small = {"spark.statetool.localBytes": "0"}  # tasks read it nevertheless
    settings = [f"--conf={name}={value}" for name, value in {**SETTINGS, **small}.items()]
    command = [*launcher, f"{HOME}/bin/spark-submit", "--master", master, *settings, *arguments]
    process = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert process.returncode == 0, process.stdout[-1000:] + process.stderr[-3000:]
    return process.stdout


def test_the_image_has_all_that_jobs_need(image: Image, tmp_path: Path) -> None:
    tmp_path.chmod(0o777)  # for the image's user
    launcher = image.launcher(tmp_path)
    look = tmp_path / "look.py"
    look.write_text(LOOK)
    shutil.copytree(ZOO, tmp_path / "savepoint")
    with cluster(tmp_path, workers=2, cores=1, launcher=(*launcher, f"{HOME}/bin/spark-class")) as master:
        (seen,) = [line for line in submit(launcher, master, str(look)).splitlines() if line.startswith("seen")]
        assert json.loads(seen.removeprefix("seen ")) == [[image.mark, 185, True, 1, 0]] * 2
        submit(
            launcher, master, f"{JOBS}/export.py", str(tmp_path / "savepoint"), "--uid", "collections-by-string",
            "--states", ",".join(STATES), "--output", str(tmp_path / "rows"),
        )  # fmt: skip
    # Both workers, for both jobs. The master may replace an executor that ends before it knows that its job has.
    assert len(list(tmp_path.glob("work/app-*/[01]"))) == 4
    expected = statetool.load(ZOO)["collections-by-string"].to_arrow(states=STATES)
    assert sorted(map(repr, pq.read_table(tmp_path / "rows").to_pylist())) == sorted(map(repr, expected.to_pylist()))
