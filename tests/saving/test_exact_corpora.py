"""Every keyed state of the corpora is written back unchanged in each possible way: bytes are equal, and refused states are listed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

import statetool as st
from statetool.errors import StatetoolError
from statetool.types import Scalar
from tests.support.quick import quick
from tests.support.snapshots.stored import stored_entries

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def like_arrow(sp: st.Savepoint, name: str, states: list[str], target: Path, **options: Any) -> st.Savepoint:
    op = sp[name]
    table = op.to_arrow(states=states, ttl="raw", key_group=True, **options)
    state = st.bootstrap_keyed_state(table, states=states, like=op, key_group="key_group")
    return st.SavepointWriter.from_existing(sp).with_operator(name, state).write(str(target))


def like_spark(sp: st.Savepoint, name: str, states: list[str], target: Path, **options: Any) -> st.Savepoint:
    op = sp[name]
    frame = op.keyed_state(states, ttl="raw", key_group=True, **options)
    state = st.bootstrap_keyed_state(frame, states=states, like=op, key_group="key_group")
    return st.SavepointWriter.from_existing(sp).with_operator(name, state).write(str(target))


def long_arrow(sp: st.Savepoint, name: str, states: list[str], target: Path, **options: Any) -> st.Savepoint:
    op = sp[name]
    tables = {state: op.to_arrow(state, ttl="raw", key_group=True, **options) for state in states}
    written = [st.bootstrap_state(n, table, like=op, key_group="key_group") for n, table in tables.items()]
    return st.SavepointWriter.from_existing(sp).with_operator(name, *written).write(str(target))


def transform(sp: st.Savepoint, name: str, states: list[str], target: Path, **options: Any) -> st.Savepoint:
    written: st.Savepoint = sp[name].transform(lambda table: table, states=states, **options).write(str(target))
    return written


def transform_sql(sp: st.Savepoint, name: str, states: list[str], target: Path, **options: Any) -> st.Savepoint:
    # Users who set a timestamp choose the handling of its nanoseconds.
    columns = sp[name].scan("keyed_state", states=states, ttl="raw").schema.names
    change = {state: f"`{state}`" for state in states}
    change |= {f"{state}_nanos": f"`{state}_nanos`" for state in states if f"{state}_nanos" in columns}
    written: st.Savepoint = sp[name].transform(change, **options).write(str(target))
    return written


ARROW: Final = (like_arrow, long_arrow, transform)
SPARK: Final = (like_spark, transform_sql)
#: Operators of a DataStream job that Spark writes back: those with the most types, and values with TTL.
OPERATORS: Final = ("composites-by-int", "collections-by-string", "with-ttl", "by-tuple")
SQL_CASES: Final = [
    "sql_changelog_normalize", "sql_dedup_topn", "sql_group_agg_hashmap", "sql_group_agg_rocksdb",
    "sql_group_agg_ttl_retract", "sql_interval_join", "sql_join_types", "sql_join_types_hashmap", "sql_join_unique_keys",
    "sql_over",
]  # fmt: skip
#: States refused by each way, with the reason. All others have the same bytes, including numbers of more than 38 digits as text.
REFUSED: Final[Mapping[str, str]] = {
    "pet": "a subclass of corpus.PublicTypes$Pet that the snapshot does not describe",
}


def bytes_of(op: st.Operator) -> Counter[Any]:
    """Return the entries; backends write different numbers of unread bytes after the flag of a null in a map."""
    maps = {name for name, (_, meta) in op.inventory.keyed_states.items() if meta.kind == "map"}
    found: Counter[Any] = Counter()
    for (name, group, key, value), n in stored_entries(op).items():
        found[(name, group, key, value[:1] if name in maps and value[:1] == b"\1" else value)] += n
    return found


def check(
    sp: st.Savepoint, ways: tuple[Any, ...], folder: Path, operators: Collection[str] | None = None
) -> tuple[dict[str, str], int]:
    """Write every operator in every way; return the refused states with the reasons, and the number of states written."""
    refused: dict[str, str] = {}
    same = 0
    for name, op in sp.operators.items():
        void = [
            n
            for n, (_, m) in op.inventory.keyed_states.items()
            if m.kind != "timers" and m.namespace is not None and m.namespace.logical == Scalar("null")
        ]
        if not void or (operators and name not in operators) or any(s.finished for s in op.inventory.state.subtasks):
            continue
        before = bytes_of(op)
        for way in ways:
            for group in [void, *([n] for n in void)]:
                target = folder / f"{way.__name__}-{name}-{len(list(folder.iterdir()))}"
                new = None
                for options in ({}, {"decimals": "string"}):
                    try:
                        new = way(sp, name, group, target, **options)
                        break
                    except StatetoolError as error:
                        reason = str(error)
                        if "decimals='string'" not in reason:
                            break
                if new is None:
                    # One at a time, so that each refused state is named with its reason.
                    if len(group) == 1 and group != void:
                        refused[f"{group[0]}"] = reason
                    elif len(void) == 1:
                        refused[group[0]] = reason
                    continue
                assert bytes_of(new[name]) == before, f"{way.__name__} changes {name} {group}"
                same += len(group)
                if group is void:
                    break
    return refused, same


CASES: Final = ["v2_3_0-hashmap-canonical"]


def assert_refused(refused: Mapping[str, str]) -> None:
    """Check that each refused state is listed, with the reason."""
    assert refused.keys() <= REFUSED.keys()
    assert all(REFUSED[name] in reason for name, reason in refused.items())


@pytest.mark.full
@pytest.mark.parametrize("name", CASES)
def test_every_state_comes_back_byte_for_byte(corpus: Path, tmp_path: Path, name: str) -> None:
    refused, same = check(st.load(str(corpus / name / "snapshot")), ARROW, tmp_path)
    assert_refused(refused)
    assert refused
    assert same > 200


@pytest.mark.parametrize("name", quick(SQL_CASES, "sql_over"))
def test_every_state_of_sql_comes_back_byte_for_byte(sql_corpus: Path, tmp_path: Path, name: str) -> None:
    refused, same = check(st.load(str(sql_corpus / name / "snapshot")), ARROW, tmp_path)
    assert not refused
    assert same >= 6


@pytest.mark.full
def test_every_state_comes_back_from_spark_byte_for_byte(
    corpus: Path, sql_corpus: Path, spark: SparkSession, tmp_path: Path
) -> None:
    case = corpus / "v2_3_0-hashmap-canonical" / "snapshot"
    refused, same = check(st.load(str(case), spark=spark), SPARK, tmp_path, OPERATORS)
    assert not refused
    assert same > 70
    refused, same = check(st.load(str(sql_corpus / "sql_over" / "snapshot"), spark=spark), SPARK, tmp_path)
    assert not refused
    assert same >= 6
