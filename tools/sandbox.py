"""The folder in which the examples of the documentation run.

It holds the snapshots that the pages name:

* ``statetool/demo``: the bundled savepoints of the shop
* ``checkpoints``: three retained checkpoints of the shop, with more customers each
* ``new-job``: a savepoint of the next version of the shop, in which one state is wider and one operator is missing
* ``sql-job`` and ``plan.json``: a savepoint of a SQL job and its compiled plan
* ``pyflink-job``: a savepoint of a PyFlink job
* ``kafka-consumer``: a savepoint of a job with the Kafka consumer before FLIP-27
* ``paimon-job`` and ``paimon-table``: a savepoint of a job that writes to Paimon, and metadata of its table
* ``cdc-pipeline``: a savepoint of a CDC pipeline, with the schemas of its tables
* ``config.yaml``: a Flink configuration with a contradiction
* ``checkpoints.json``: the response of Flink's REST interface about the job's checkpoints

``python -m tools.sandbox DIR`` creates it, for readers who want to run the examples themselves.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tools.archives import unpack

ROOT: Final = Path(__file__).parents[1]
#: The path of the sandbox in outputs.
SHOWN: Final = "/data/flink-states"
_DEMO: Final = Path("statetool", "demo")
_CORPUS: Final = ROOT / "tests" / "corpus"
#: Snapshots in the test corpora: archive and folder.
_UNPACKED: Final[Mapping[str, tuple[str, str]]] = {
    "sql-job": ("public-sql-sources", "public/sql_group_agg_rocksdb/snapshot"),
    "pyflink-job": ("pyflink", "process-2.3.0-rocksdb-native/savepoint"),
    "kafka-consumer": ("connectors", "v1_20_5-flink-kafka-consumer/snapshot"),
    "paimon-job": ("lakes", "paimon-1.3.1/snapshot"),
    "paimon-table": ("lakes", "paimon-1.3.1/table"),
    "plan.json": ("sql-plans", "plans/sql_group_agg_rocksdb.json"),
}
#: Time of the first checkpoint, in epoch seconds.
_BEGIN_S: Final = 1_772_474_400
_CONFIG: Final = """\
state.backend.type: hashmap
execution.checkpointing.incremental: true
execution.checkpointing.interval: 10 s
execution.checkpointing.min-pause: 30 s
execution.checkpointing.dir: s3://bucket/checkpoints
"""


def create(folder: Path) -> Path:
    """Create the files of the sandbox in a folder and return it."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("savepoint", "next-day"):
        shutil.copytree(ROOT / _DEMO / name, folder / _DEMO / name)
    (folder / "config.yaml").write_text(_CONFIG, "utf-8")
    (folder / "checkpoints.json").write_text(json.dumps(_rest()), "utf-8")
    for name, (archive, inside) in _UNPACKED.items():
        _unpack(_CORPUS / f"{archive}.tar.xz", inside, folder / name)
    _write_checkpoints(folder / "checkpoints")
    _write_new_job(folder / "new-job")
    _write_pipeline(folder / "cdc-pipeline")
    return folder


@contextmanager
def fresh(source: Path) -> Iterator[Path]:
    """Yield a copy of a sandbox, in a folder whose path is as long as ``SHOWN``: columns of outputs keep their widths."""
    folder = Path(tempfile.mkdtemp(prefix="docs-", dir="/tmp"))
    try:
        shutil.copytree(source, folder, dirs_exist_ok=True)
        yield folder
    finally:
        shutil.rmtree(folder)


def without_folder(text: str, folder: Path) -> str:
    """Return a text with ``SHOWN`` in place of the sandbox's path, and with its beginning where a table has only that of a path."""
    path = str(folder)
    text = text.replace(path, SHOWN)
    return re.sub(rf"{_beginnings(path)}(?=…)", lambda found: SHOWN[: len(found[0])], text)


def _beginnings(path: str) -> str:
    """Return a pattern for all beginnings of a path in the folder for temporary files."""
    least = len("/tmp/d")
    return f"{re.escape(path[:least])}(?:{'|'.join(re.escape(path[least:n]) for n in range(len(path), least, -1))}|)"


def _unpack(archive: Path, inside: str, target: Path) -> None:
    with tempfile.TemporaryDirectory() as work:
        shutil.move(unpack(archive, Path(work), inside) / inside, target)


def _write_checkpoints(root: Path) -> None:
    import statetool
    from statetool.demo import SAVEPOINT

    sp = statetool.load(SAVEPOINT)
    reminders = sp["reminders"]
    state = reminders.to_arrow().sort_by("key")
    none = reminders.to_arrow("timers").slice(0, 0)
    for number, keys in ((41, 4), (42, 8), (43, 12)):
        change = statetool.bootstrap_keyed_state(state.slice(0, keys), like=reminders, timers=none)
        writer = statetool.SavepointWriter.from_existing(sp).with_operator("reminders", change)
        writer.with_checkpoint_id(number).write(str(root / f"chk-{number}"))
        time = _BEGIN_S + number * 60
        os.utime(root / f"chk-{number}" / "_metadata", (time, time))


def _write_new_job(target: Path) -> None:
    import statetool
    from statetool.demo import SAVEPOINT

    sp = statetool.load(SAVEPOINT)
    wider = statetool.bootstrap_keyed_state(
        sp["reminders"].to_arrow(),
        key="key",
        states={"due": statetool.map_of("STRING", "DATE"), "sent": statetool.value("BIGINT")},
        timers=sp["reminders"].to_arrow("timers"),
    )
    writer = statetool.SavepointWriter.from_existing(sp).with_operator("reminders", wider)
    writer.remove_operator("daily-sales").write(str(target))


def _write_pipeline(target: Path) -> None:
    from tests.support.connectors.pipelines import pipeline

    with tempfile.TemporaryDirectory() as work:
        shutil.move(pipeline(Path(work)).path, target)


def _rest() -> Mapping[str, object]:
    """Return a response of ``/jobs/<id>/checkpoints``, as Flink writes it."""
    history = [
        {
            "id": number,
            "status": "COMPLETED",
            "is_savepoint": False,
            "trigger_timestamp": (_BEGIN_S + number * 60) * 1000,
            "latest_ack_timestamp": (_BEGIN_S + number * 60) * 1000 + 9_000,
            "end_to_end_duration": 9_000,
            "state_size": 2_000_000_000,
            "checkpointed_size": 400_000_000,
            "checkpoint_type": "CHECKPOINT",
            "external_path": f"checkpoints/chk-{number}",
        }
        for number in (43, 42, 41)
    ]
    return {"counts": {"completed": 3, "failed": 0, "in_progress": 0, "total": 3, "restored": 0}, "history": history}


if __name__ == "__main__":
    create(Path(sys.argv[1]))
