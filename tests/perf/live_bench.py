"""Reads beside live jobs: ``python -m tests.perf.live_bench [--reads 1000] [--version 2.3.0]``.

A standalone cluster runs two jobs with 100,000 keys each, on RocksDB with incremental checkpoints and on the heap. Both take a checkpoint
each second and retain one. The newest checkpoint is read by the URL of the job and in its directory, with ``load`` (all rows, up to half a
second after opening) and ``head``.
A line per way has the numbers of reads that saw no deletion, that continued with the next checkpoint, and whose next checkpoint was deleted,
too. Other errors are false alarms. Before them, a line compares ``head`` by the URL of the job and by the path of a copy of its checkpoint, as
processes of their own.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from statistics import median
from typing import Final

import statetool
from tests.support.flink.standalone.cluster import StandaloneCluster
from tests.support.flink.standalone.reads import BACKENDS, WAYS, head_seconds, read_newest, start_job
from tools.flink_jars import DEFAULT_VERSIONS

_HEADS: Final = 9


def _head_costs(cluster: StandaloneCluster, job: str, work: Path) -> str:
    """Return a line with the costs of ``head`` by URL and by path."""
    url, copied = f"flink://127.0.0.1:{cluster.port}/{job}", str(work / f"copy-of-{job}")
    statetool.copy(url, copied)
    texts = []
    for place, path in (("URL", url), ("path", copied)):
        duration, cpu = head_seconds(path, _HEADS)
        texts.append(f"{place} {duration:.2f} s, {cpu:.2f} CPU s")
    return f"head, {_HEADS} times each: " + "; ".join(texts)


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="tests.perf.live_bench")
    parser.add_argument("--reads", type=int, default=1000, help="reads of all ways together")
    parser.add_argument("--version", default=DEFAULT_VERSIONS[0], help="release of Flink")
    given = parser.parse_args()
    each = -(-given.reads // (len(BACKENDS) * len(WAYS)))
    with tempfile.TemporaryDirectory() as work, StandaloneCluster(given.version, Path(work), retained=1) as cluster:
        for backend in BACKENDS:
            job = start_job(cluster, backend)
            print(f"{backend:<22} {_head_costs(cluster, job, Path(work))}", flush=True)
            for way in WAYS:
                before = cluster.history(job)["counts"]["completed"]
                found = read_newest(cluster, job, way, each)
                print(
                    f"{backend:<22} {way:<16} {each:>4} reads: {found.at_once:>4} at once, {found.next_one:>4} of the next one, "
                    f"{found.later:>2} later, {len(found.errors)} errors; median {median(found.seconds):.2f} s, slowest "
                    f"{max(found.seconds):.1f} s; {cluster.history(job)['counts']['completed'] - before} checkpoints",
                    flush=True,
                )
                for error in dict.fromkeys(found.errors):
                    print(f"  {error}", flush=True)
            cluster.cancel(job)


if __name__ == "__main__":
    main()
