"""A PyFlink job that uses every kind of state and stops with a savepoint; with ``--restore`` it reports the state that it finds.

This folder runs in another Python that has ``apache-flink`` (1.17 to 2.3), and is shipped to PyFlink's workers as a unit: in both places
its modules import each other by their bare names. The state is defined by ``cases``, ``state_functions`` and the two jobs, the expected
content by ``expectations``, and the report of a restored job by ``reports``.

``tests/corpus/pyflink.tar.xz`` has one folder for each of::

    python job process-2.3.0-hashmap
    python job process-2.3.0-rocksdb-native --backend rocksdb --format NATIVE
    python job process-1.20.5-rocksdb --backend rocksdb
    python job process-1.17.2-hashmap
    python job thread-2.3.0-hashmap --mode thread
    python job thread-1.17.2-hashmap --mode thread
    python job table-2.3.0-rocksdb --job table --backend rocksdb --seconds 45
    python job table-1.20.5-rocksdb-native --job table --backend rocksdb --format NATIVE --seconds 45

with the PyFlink of that release: its savepoint, and ``expected.json`` with the operators' values, computed by their rules without reading
state. Up to 1.17, Java 17 needs the ``--add-opens`` of Flink's scripts in ``JDK_JAVA_OPTIONS``.

Limits of PyFlink: in thread mode it cannot write states of merging and count windows (they have no namespace, but it assigns one). On the
heap backend, a Python GROUP BY changes the keys of existing entries, so that its savepoints contain wrong keys.
"""

import argparse
import json
import time
from pathlib import Path

import datastream_job
import table_job
from cases import IN_THREADS, KEPT_NUMBERS, KEYS, STATES, key_operator
from expectations import expected_of_datastream_job, expected_of_table_job
from pyflink.common import Configuration
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.java_gateway import get_gateway
from pyflink.version import __version__ as flink_version
from reports import count_told_keys

MOST_SECONDS = 240


def main():
    args = arguments()
    report_folder = args.target / "probe"
    report_folder.mkdir(parents=True, exist_ok=True)
    state_names = list(STATES if args.mode == "process" else IN_THREADS)
    env = StreamExecutionEnvironment.get_execution_environment(configuration(args))
    env.set_parallelism(1)
    env.set_max_parallelism(16)
    first_number = KEPT_NUMBERS if args.restore else 0
    keys_to_tell = {}
    if args.job == "datastream":
        client = datastream_job.submit(
            env, mode=args.mode, state_names=state_names, report_folder=str(report_folder), first_number=first_number
        )
        # They only report numbers after those they store: one key proves that all stored numbers were processed.
        keys_to_tell = dict.fromkeys(("everything", *map(key_operator, KEYS)), 1)
        if args.restore:
            keys_to_tell["everything"] = KEPT_NUMBERS
    else:
        client = table_job.submit(env, first_number)
    java_client = client._j_job_client
    wait_for_reports(java_client, report_folder, keys_to_tell)
    time.sleep(args.seconds)
    if args.restore:
        java_client.cancel().get()
        return
    stop_with_savepoint(java_client, args.target, args.format)
    expected = expected_of_table_job() if args.job == "table" else expected_of_datastream_job(state_names)
    case = {"job": args.job, "mode": args.mode, "backend": args.backend, "format": args.format}
    with (args.target / "expected.json").open("w") as file:
        told = {"flink": flink_version, **case, "expected": expected}
        json.dump(told, file, indent=1, sort_keys=True, ensure_ascii=False)


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("target", type=lambda text: Path(text).absolute())
    parser.add_argument("--job", choices=["datastream", "table"], default="datastream")
    parser.add_argument("--mode", choices=["process", "thread"], default="process")
    parser.add_argument("--backend", choices=["hashmap", "rocksdb"], default="hashmap")
    parser.add_argument("--format", choices=["CANONICAL", "NATIVE"], default="CANONICAL")
    parser.add_argument(
        "--restore", help="a savepoint to start from: tells in TARGET/probe what is found, and writes no savepoint"
    )
    parser.add_argument("--seconds", type=float, default=4, help="how long to run on when all operators have told")
    return parser.parse_args()


def configuration(args):
    conf = Configuration()
    conf.set_string("python.files", str(Path(__file__).parent.absolute()))  # for the workers
    conf.set_string("python.execution-mode", args.mode)
    conf.set_string("python.fn-execution.bundle.time", "300")
    conf.set_string("state.backend.type", args.backend)
    conf.set_string("state.backend", args.backend)  # its name up to 1.17
    conf.set_string("execution.checkpointing.interval", "365 d")
    conf.set_string("state.backend.rocksdb.log.dir", "/tmp")
    conf.set_string("rest.bind-port", "0")
    conf.set_string("restart-strategy.type", "disable")
    conf.set_string("taskmanager.memory.managed.size", "256m")
    conf.set_string("taskmanager.numberOfTaskSlots", "4")
    if args.restore:
        option = "execution.state-recovery.path" if flink_version >= "2" else "execution.savepoint.path"
        conf.set_string(option, args.restore)
    return conf


def wait_for_reports(java_client, report_folder, keys_to_tell):
    """Wait until each operator has reported this number of keys; raise the exception of a job that ended or takes too long."""
    deadline = time.time() + MOST_SECONDS
    while True:
        keys_told = {operator: count_told_keys(report_folder, operator) for operator in keys_to_tell}
        if all(keys_told[operator] >= count for operator, count in keys_to_tell.items()):
            return
        if time.time() > deadline or java_client.getJobStatus().get().isTerminalState():
            print("ended early", keys_told)
            java_client.getJobExecutionResult().get()
        time.sleep(0.3)


def stop_with_savepoint(java_client, target, format_name):
    """Stop the job with a savepoint in ``TARGET/savepoint``."""
    savepoint_format = getattr(get_gateway().jvm.org.apache.flink.core.execution.SavepointFormatType, format_name)
    try:
        location = java_client.stopWithSavepoint(False, f"file://{target}", savepoint_format).get()
    except Exception:
        java_client.getJobExecutionResult().get()
        raise
    Path(location.removeprefix("file:")).rename(target / "savepoint")


if __name__ == "__main__":
    main()
