"""``spark-submit`` on a cluster whose Python has only the dependencies of statetool."""

from __future__ import annotations

from typing import Final

from tests.journeys.steps import Steps
from tests.support.servers.cluster import cluster, python_without_package, with_archives
from tests.support.snapshots.incremental import Job
from tools.packages import ROOT, SPARK

PACKAGES: Final = ("statetool",)
_SAVEPOINT: Final = ROOT / "statetool" / "demo" / "savepoint"
_JOBS: Final = ROOT / "statetool" / "jobs"


def run(steps: Steps) -> None:
    """Export a table, run a command, and follow checkpoints."""
    with Job(steps.folder / "checkpoints") as job:
        job.put("a", 1, b"x")
        job.checkpoint()
    python = str(python_without_package(steps.folder))
    variables = {"PYSPARK_PYTHON": python, "PYSPARK_DRIVER_PYTHON": python, "SPARK_LOCAL_IP": "127.0.0.1"}
    settings = [f"--conf={name}={value}" for name, value in with_archives().items()]
    with cluster(steps.folder, workers=2, cores=1) as master:
        submit = [str(SPARK / "bin" / "spark-submit"), "--master", master, *settings]
        steps.add_program("spark-submit", submit, **variables)
        steps.begin()
        steps.run("python -m statetool.jobs.package statetool.zip")
        submit_with = "spark-submit --py-files statetool.zip"
        exported = f"{_SAVEPOINT} --uid orders --table keyed_state --target $PWD/rows"
        in_tasks = "--conf spark.statetool.localBytes=0"
        assert "12 rows in" in steps.run(f"{submit_with} {in_tasks} {_JOBS}/export.py {exported}")
        assert '"orders"' in steps.run(f"{submit_with} {_JOBS}/run.py stats {_SAVEPOINT} --table operators --json")
        followed = "$PWD/checkpoints --uid op --target $PWD/lake --offsets $PWD/offsets --option uids=op --once"
        steps.run(f"{submit_with} {_JOBS}/follow.py {followed}")
    read = "import statetool.io, pyarrow.parquet as pq, glob; print(pq.read_table(glob.glob('lake/checkpoint-*')[0])['a'][0])"
    assert steps.run(f'python -c "{read}"') == "b'x'\n"
