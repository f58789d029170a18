"""A real PyFlink job restores savepoints of statetool: an edited copy of its savepoint, and state written from scratch.

Not part of a normal run, because PyFlink takes a gigabyte::

    python3.11 -m venv /tmp/pyflink && /tmp/pyflink/bin/pip install apache-flink==2.3.0
    pytest tests/flink/pyflink --pyflink=/tmp/pyflink/bin/python
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import statetool
from statetool.pyflink import Types
from tests.support.corpora.pyflink_jobs import opened, told
from tests.support.flink.machine import OPENS

JOB = Path(__file__).parent / "job"
CASE = "process-2.3.0-hashmap"


@pytest.fixture
def pyflink(pytestconfig: pytest.Config) -> str:
    """Return the interpreter that has PyFlink."""
    return str(Path(pytestconfig.getoption("--pyflink")).absolute())


def restored(python: str, savepoint: Path, target: Path) -> dict[str, list[tuple[Any, Any]]]:
    """Start the job from a savepoint, and return by operator the keys and the content of their states."""
    java = shutil.which("java")
    assert java is not None
    env = {
        **os.environ,
        "PATH": f"{Path(python).parent}:{os.environ['PATH']}",
        "JAVA_HOME": str(Path(java).resolve().parents[1]),
        "JDK_JAVA_OPTIONS": " ".join(OPENS),
        "TZ": "UTC",
    }
    done = subprocess.run(
        [python, str(JOB), str(target), "--restore", savepoint.as_uri(), "--backend", "rocksdb"],
        env=env,
        capture_output=True,
        text=True,
        check=False,
        timeout=400,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    found: dict[str, list[tuple[Any, Any]]] = {}
    for file in (target / "probe").iterdir():
        for line in file.read_text().splitlines():
            operator, key, held = json.loads(line)
            found.setdefault(operator, []).append((key, held))
    return found


def put(table: pa.Table, name: str, column: Any) -> pa.Table:
    return table.set_column(table.schema.get_field_index(name), name, column)


def by_text(pairs: list[Any]) -> list[str]:
    return sorted(json.dumps(p, sort_keys=True) for p in pairs)


@pytest.mark.timeout(600)
def test_an_edited_savepoint_restores(pyflink: str, jobs: Path, tmp_path: Path) -> None:
    sp, expected = opened(jobs, CASE, unsafe_pickle=False), told(jobs, CASE)
    op, state = sp["everything"], "python-state-{}".format
    table = op.to_arrow(nanos="companion", ttl="raw")
    table = put(table, state("string"), pc.binary_join_element_wise(table[state("string")], "!", ""))
    table = put(table, state("total"), pc.add(table[state("total")], pa.scalar(1000, pa.int64())))
    for name, added in (("items", "new"), ("sizes", ("added", 1))):
        column = table[state(name)]
        table = put(table, state(name), pa.array([[*(v or ()), added] for v in column.to_pylist()], column.type))
    writer = statetool.SavepointWriter.from_existing(sp).with_operator(
        "everything", statetool.bootstrap_keyed_state(table, like=op, timers=op.to_arrow("timers"))
    )
    keyed = ("key-long", "key-row", "key-pickled", "key-tuple")
    for uid in keyed:
        counts = sp[uid].to_arrow()
        counts = put(counts, state("count"), pc.add(counts[state("count")], pa.scalar(5000, pa.int64())))
        writer = writer.with_operator(uid, statetool.bootstrap_keyed_state(counts, like=sp[uid]))
    writer.write(str(tmp_path / "edited"))

    found = restored(pyflink, tmp_path / "edited", tmp_path / "job")
    assert len(found["everything"]) == 60
    for key, held in found["everything"]:
        wanted = expected["everything"][str(key)]
        wanted |= {
            "string": wanted["string"] + "!",
            "total": wanted["total"] + 1000,
            "items": [*wanted["items"], "new"],
            "sizes": {**wanted["sizes"], "added": 1},
            "average": wanted["average"][0] / wanted["average"][1],
        }
        # Shown as decimal(38, 18), which adds zeros.
        assert Decimal(held.pop("bigdec")) == Decimal(wanted.pop("bigdec"))
        assert held == wanted
    for name in keyed:
        assert by_text(found[name]) == by_text([[k, n + 5000] for k, n in expected[name]])


@pytest.mark.timeout(600)
def test_state_made_from_nothing_restores(pyflink: str, tmp_path: Path) -> None:
    keys = list(range(60))
    table = pa.table(
        {
            "id": pa.array(keys, pa.int64()),
            "string": [f"s{n}" for n in keys],
            "long": pa.array([n * 7 for n in keys], pa.int64()),
            "tuple": [{"f0": n, "f1": "t", "f2": n % 2 == 0} for n in keys],
            "items": [[f"a{i}" for i in range(n % 3)] for n in keys],
            "sizes": pa.array([[(f"m{i}", i) for i in range(n % 3)] for n in keys], pa.map_(pa.string(), pa.int64())),
            "ttl_value": [f"v{n}" for n in keys],
        }
    )
    states = {
        "string": statetool.value(Types.STRING()),
        "long": statetool.value(Types.LONG()),
        "tuple": statetool.value(Types.TUPLE([Types.LONG(), Types.STRING(), Types.BOOLEAN()])),
        "items": statetool.list_of(Types.STRING()),
        "sizes": statetool.map_of(Types.STRING(), Types.LONG()),
        "ttl_value": statetool.value(Types.STRING(), ttl=True, last_access_ms=1_760_000_000_000),
    }
    counts = pa.table(
        {"key": pa.array([2**40 + n for n in range(7)], pa.int64()), "count": pa.array(range(7), pa.int64())}
    )
    statetool.SavepointWriter.new(max_parallelism=16).with_operator(
        "everything", statetool.bootstrap_keyed_state(table, key="id", states=states)
    ).with_operator(
        "key-long", statetool.bootstrap_keyed_state(counts, states={"count": statetool.value(Types.LONG())})
    ).write(str(tmp_path / "new"), flink_version="2.3")

    found = restored(pyflink, tmp_path / "new", tmp_path / "job")
    assert len(found["everything"]) == 60
    for n, held in found["everything"]:
        wanted = {
            "string": f"s{n}",
            "long": n * 7,
            "tuple": [n, "t", n % 2 == 0],
            "items": [f"a{i}" for i in range(n % 3)],
            "sizes": {f"m{i}": i for i in range(n % 3)},
            "ttl_value": f"v{n}",
        }
        assert {k: held[k] for k in wanted} == wanted
    assert by_text(found["key-long"]) == by_text([[2**40 + n, n] for n in range(7)])
