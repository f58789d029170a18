"""Snapshots that corpora do not have: thousands of keys, large lists and maps, several handles per key group, and rescaled copies."""

from __future__ import annotations

import random
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

import statetool
from statetool.errors import StatetoolError
from statetool.formats.key_groups import range_for
from tests.support.corpora.kryo_classes import CLASSES
from tests.support.snapshots.build import LONG, simple
from tests.support.snapshots.canonical import Subtask, encoded, group_of, keyed, serializer
from tests.support.snapshots.incremental import Job
from tests.support.snapshots.native import native_savepoint

_BYTES: Final = simple("BytePrimitiveArray", "org.apache.flink.api.common.typeutils.base.array.")
_HOUR: Final = 3_600_000_000


def _text_keys(r: random.Random, count: int) -> list[str]:
    strange = ["007", "7", "7.0", "true", "null", " a", "a ", "a", "", "é", "1e3", "00", "-0", "[1]", '"q"', "x,y"]
    return strange + [f"user-{r.randrange(1 << 40)}" for _ in range(count - len(strange))]


def _large(
    r: random.Random, target: Path, keys: pa.Array, type: str, *, max_parallelism: int, parallelism: int
) -> None:
    """Write an operator with values, lists and maps of many elements, and timers."""
    n = len(keys)
    sizes = [r.choice((0, 1, 2, 5)) if r.random() < 0.99 else 400 for _ in range(n)]
    table = pa.table(
        {
            "key": keys,
            "amount": pa.array([r.choice((None, r.randrange(100))) for _ in range(n)], pa.int64()),
            "seen": pa.array(
                [r.randrange(48) * _HOUR + 1_767_200_000_000_000 for _ in range(n)], pa.timestamp("us", "UTC")
            ),
            "tags": pa.array(
                [[f"t{r.randrange(9)}" for _ in range(size)] or None for size in sizes], pa.list_(pa.string())
            ),
            "rates": pa.array(
                [[(f"m{i}", r.random()) for i in range(size)] or None for size in reversed(sizes)],
                pa.map_(pa.string(), pa.float64()),
            ),
        }
    )
    times = pa.table(
        {
            "domain": pa.array([r.choice(("event", "processing")) for _ in range(n)]),
            "service": pa.array(["user-timers"] * n),
            "timestamp": pa.array([r.randrange(-9, 1 << 40) for _ in range(n)], pa.int64()),
            "key": keys,
        }
    )
    state = statetool.bootstrap_keyed_state(
        table,
        key="key",
        key_type=type,
        states={
            "amount": statetool.value("BIGINT"),
            "seen": statetool.value("TIMESTAMP_LTZ"),
            "tags": statetool.list_of("STRING"),
            "rates": statetool.map_of("STRING", "DOUBLE"),
        },
        timers=times,
    )
    writer = statetool.SavepointWriter.new(max_parallelism=max_parallelism)
    writer.with_operator("large", state, parallelism=parallelism).write(str(target), flink_version="2.3")


def _databases(r: random.Random, target: Path, *, subtasks: int) -> None:
    """Write databases of which each has the keys of all others too, as after a job was rescaled."""
    key, value = serializer(LONG), serializer(_BYTES)
    entries = [
        (state, group_of(key, n, 128), encoded(key, n) + b"\0", encoded(value, b"%d" % (n % 9)))
        for state in ("a", "b")
        for n in r.sample(range(10_000), 3_000)
    ]
    parts = [[e for e in entries if e[1] in range_for(i, subtasks, 128)] for i in range(subtasks)]
    states = [keyed(name, "value", _BYTES) for name in ("a", "b")]
    target.mkdir()
    native_savepoint(target, [Subtask(key=LONG, states=states, entries=part) for part in parts], outside=entries)


def _old_versions(r: random.Random, target: Path) -> None:
    """Write incremental checkpoints of a database whose files have replaced and deleted versions of keys."""
    target.mkdir()
    with Job(target / "checkpoints", ("a", "b")) as job:
        for _ in range(4):
            for n in r.sample(range(600), 300):
                state = r.choice(("a", "b"))
                if r.random() < 0.3:
                    job.delete(state, n)
                else:
                    job.put(state, n, b"value %d" % r.randrange(9))
            job.checkpoint()


def derive(root: Path, target: Path, copies: int, seed: int) -> None:
    """Write derived snapshots below ``target``: large ones, databases, and ``copies`` of those in ``root``, rescaled or converted."""
    r = random.Random(seed)
    target.mkdir(exist_ok=True)
    made: Iterator[tuple[str, Any]] = iter(
        (
            ("texts-128", (pa.array(_text_keys(r, 2_000)), "STRING", 128, 3)),
            ("texts-1", (pa.array(_text_keys(r, 300)), "STRING", 1, 1)),
            ("numbers-32768", (pa.array(r.sample(range(-5_000, 5_000), 2_000), pa.int64()), "BIGINT", 32_768, 5)),
            ("ints-300", (pa.array(r.sample(range(-5_000, 5_000), 1_000), pa.int32()), "INT", 300, 7)),
        )
    )
    for name, (keys, type, most, parallelism) in made:
        _large(r, target / name, keys, type, max_parallelism=most, parallelism=parallelism)
    for subtasks in (1, 3):
        _databases(r, target / f"databases-{subtasks}", subtasks=subtasks)
    _old_versions(r, target / "old-versions")
    paths = sorted(p.parent for p in root.rglob("_metadata"))
    for number in range(copies):
        path = r.choice(paths)
        copy = target / f"copy-{number}-of-{path.relative_to(root).as_posix().replace('/', '-')}"
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)
                savepoint = statetool.load(str(path), declarations=CLASSES)
                if r.random() < 0.3:
                    statetool.convert(savepoint, str(copy))
                else:
                    numbers = {
                        o.operator_id: r.choice((1, 7, 128, 129, 32_768))
                        for o in savepoint.operators.values()
                        if o.inventory.listed_keyed
                    }
                    statetool.rescale(savepoint, str(copy), numbers, parallelism=1)
        except StatetoolError:
            continue
