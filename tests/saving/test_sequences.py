"""Random sequences of all writing verbs: after each step, everything is as a plain model of the entries says.

A verb may refuse; then it must have written nothing. Operators that a verb does not concern keep their bytes. The snapshots are those of
DataStream jobs, of SQL jobs, and of jobs with sources and sinks.
"""

from __future__ import annotations

import os
import random
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import statetool as st
from statetool.errors import StatetoolError
from statetool.formats.operator_id import operator_id_for_uid
from statetool.formats.stream import Stream
from statetool.java.hashing.keys import decode_key
from statetool.migration.plan import MigrationPlan
from statetool.saving.streams.filters import key_bounds
from statetool.serializers.core.base import Serializer
from statetool.tables.scan import place_keys
from statetool.types import LogicalType, Scalar, StructType
from tests.support.checks.corpus_check import find_cases
from tests.support.compile import compile_java, files_of, make_jar
from tests.support.corpora.archives import HERE, unpack
from tests.support.corpora.kryo_classes import CLASSES
from tests.support.given_keys import given_key
from tests.support.quick import examples
from tests.support.snapshots.stored import databases, stream_bytes

#: Snapshots with in-flight data, which most verbs refuse, and one whose job had ended.
LEFT_OUT: Final = ("unaligned", "unaligned-inline", "finished")
UIDS: Final = (
    "timers", "with-ttl", "orders", "op-lists", "by-tuple", "collections-by-string", "win-count", "win-tumble-reduce",
    "keyed-broadcast",
)  # fmt: skip
#: The classes of the jobs, and a change to one that the values of three states contain.
SOURCE: Final = Path(__file__).parents[1] / "support" / "flink" / "java" / "corpus" / "PublicTypes.java"
FIELDS: Final = ("public Integer number;", "public Long number; public String country;")
#: Types that numbers are given, by their own.
NUMBERS: Final = {"int32": ("BIGINT", "STRING"), "int64": ("INT", "STRING")}
COLUMNS: Final = {"BIGINT": pa.int64(), "INT": pa.int32(), "STRING": pa.string()}
#: Steps after which a sequence begins again with another snapshot.
LENGTH: Final = 25
#: A long run has 500: ``STATETOOL_SEQUENCE_STEPS=500 pytest --full --timeout=0 tests/saving/test_sequences.py``.
STEPS: Final = int(os.environ.get("STATETOOL_SEQUENCE_STEPS", "0"))
VERBS_OF_CONNECTORS: Final = {"edit_source", "drop_transactions"}
#: Verbs that need keys, which few jobs have.
VERBS_OF_KEYS: Final = {
    "erase",
    "keep",
    "erase_where",
    "sample",
    "set_field",
    "rename_states",
    "drop_state",
    "catch_up",
}
VOID: Final = b"\0"
QUOTE: Final = "'"
T = TypeVar("T")


class Entry(NamedTuple):
    """An entry without its key group: ``before`` is the time of a timer, ``rest`` the namespace and user key."""

    state: str
    before: bytes
    key: bytes
    rest: bytes
    value: bytes


@dataclass
class Model:
    """What an operator has. ``stored`` are the bytes of its files."""

    entries: Counter[Entry]
    elements: Counter[tuple[str, bytes]]
    coordinator: bytes
    max_parallelism: int
    stored: list[bytes] = field(compare=False)

    def only(self, chosen: Callable[[Entry], bool]) -> Model:
        return replace(self, entries=Counter({e: n for e, n in self.entries.items() if chosen(e)}))

    def mapped(self, changed: Callable[[Entry], Entry]) -> Model:
        return replace(self, entries=Counter({changed(e): n for e, n in self.entries.items()}))

    def of_key(self, state: str, keys: Collection[bytes]) -> Model:
        """Return the model with only the entries of a state that keys have."""
        return self.only(lambda e: e.state == state and e.key in keys)

    @property
    def size(self) -> int:
        return self.entries.total() + self.elements.total()

    @property
    def has_state(self) -> bool:
        return self.size > 0 or self.coordinator != b""


def model_of(operator: st.Operator) -> Model:
    entries: Counter[Entry] = Counter()
    for source in operator.inventory.keyed.sources(raw=True):
        header = source.header()
        for batch in source.batches():
            raw = bytes(batch.data)
            start, end = key_bounds(header, batch)
            columns = (batch.state, batch.key, start, end, batch.key_end, batch.value, batch.value_end)
            for state, key, a, b, key_end, value, value_end in zip(*(c.tolist() for c in columns), strict=True):
                name = header.states[state].name
                entries[Entry(name, raw[key:a], raw[a:b], raw[b:key_end], raw[value:value_end])] += 1
    elements: Counter[tuple[str, bytes]] = Counter()
    for stream in operator.inventory.elements.streams:
        with stream.stream.open() as f:
            for name in stream.offsets:
                for a, b in stream.ranges(name):
                    elements[name, bytes(f.read_at(a, b - a))] += 1
    return Model(
        entries,
        elements,
        _content(operator.inventory.resolve(operator.inventory.state.coordinator)),
        operator.inventory.state.max_parallelism,
        [
            *stream_bytes(operator.inventory),
            *sorted(_content(stream) for d in databases(operator.inventory) for _, stream in d.files.files),
        ],
    )


def _content(stream: Stream | None) -> bytes:
    if stream is None:
        return b""
    with stream.open() as f:
        return bytes(f.read_at(0, stream.size_bytes))


class Refused(Exception):
    """A verb that does not apply to the current snapshot."""


@dataclass(frozen=True, kw_only=True)
class Start:
    """A snapshot with which sequences begin.

    Attributes
    ----------
    uids
        Uids of operators, which releases before 2.0 do not store.
    operators
        The operators that a sequence takes. If there are none: all that have state, and one without.
    least
        Operators and entries without which a sequence ends.
    has_classes
        Whether the jars have the classes of its job.
    """

    name: str
    path: str
    uids: Collection[str]
    operators: Collection[str]
    least: tuple[int, int]
    has_classes: bool


def starts_of_jobs(corpus: Path) -> list[Start]:
    """Return the snapshots of DataStream jobs."""
    cases = [c for c in find_cases(corpus, None) if c.folder.name.partition("-")[2] not in LEFT_OUT]
    return [
        Start(
            name=c.folder.name,
            path=str(c.metadata.parent),
            uids=list(c.expected["operators"]),
            operators=UIDS,
            least=(3, 50),
            has_classes=True,
        )
        for c in cases
    ]


def starts_below(folder: Path) -> list[Start]:
    """Return all snapshots below a folder."""
    paths = [metadata.parent for metadata in sorted(folder.rglob("_metadata"))]
    return [
        Start(
            name=str(path.relative_to(folder)),
            path=str(path),
            uids=(),
            operators=(),
            least=(1, 1),
            has_classes=False,
        )
        for path in paths
    ]


class Walk:
    """A sequence of verbs over snapshots of a corpus."""

    def __init__(self, starts: Sequence[Start], jars: Sequence[Path], work: Path, seed: int) -> None:
        self.random = random.Random(seed)
        self.jars = jars
        self.work = work
        self.starts = starts
        self.done: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        self.number = 0
        self.restart()

    def restart(self) -> None:
        self.start = self.random.choice(self.starts)
        self.path = self.target()
        #: Uids by operator id.
        self.uids = {operator_id_for_uid(uid): uid for uid in self.start.uids}
        chosen = self.start.operators or self.stateful()
        if left := [u for u in self.load(self.start.path).operators if u not in chosen]:
            st.drop(self.load(self.start.path), self.path, left)
        else:
            st.copy(self.start.path, self.path)
        self.models = self.read(self.path)
        self.first = dict(self.models)
        self.steps = 0
        #: The jar with whose classes values are read.
        self.jar = self.jars[0]

    def stateful(self) -> list[str]:
        """Return the operators of the first snapshot that have state, and one without."""
        models = self.read(self.start.path)
        empty = [uid for uid, model in models.items() if not model.has_state]
        return [*models.keys() - empty, *empty[:1]]

    def target(self) -> str:
        self.number += 1
        return str(self.work / f"step-{self.number}")

    def load(self, path: str) -> st.Savepoint:
        ids = (o.operator_id for o in st.load(path).inventory.metadata.operators)
        return st.load(path, uids=[self.uids[i] for i in ids if i in self.uids], declarations=CLASSES)

    def with_classes(self, path: str, jar: Path) -> st.Savepoint:
        return st.load(path, uids=list(self.models), jars=[jar]) if self.start.has_classes else self.load(path)

    def read(self, path: str) -> dict[str, Model]:
        return {uid: model_of(operator) for uid, operator in self.load(path).operators.items()}

    # ---- choices ------------------------------------------------------------------------------

    def choose(self, candidates: Iterable[T]) -> T:
        """Return one of some candidates.

        Raises
        ------
        Refused
            There are none.
        """
        candidates = list(candidates)
        if not candidates:
            raise Refused
        return self.random.choice(candidates)

    def keyed(self) -> str:
        """Return an operator with keys."""
        sp = self.load(self.path)
        return self.choose(
            uid
            for uid, op in sp.operators.items()
            if op.inventory.keyed_states and op.inventory.keyed.key is not None and self.models[uid].entries
        )

    def keys_of(self, uid: str, most: int) -> tuple[list[Any], set[bytes]]:
        """Return some plain keys of an operator, and their bytes."""
        inventory = self.load(self.path)[uid].inventory
        serializer = inventory.keyed.needed_key()
        raws = sorted({e.key for e in self.models[uid].entries})
        chosen = self.random.sample(raws, min(len(raws), self.random.randint(1, most)))
        keys = [given_key(_decode(serializer, raw), serializer.logical) for raw in chosen]
        places = place_keys(inventory, serializer, keys, exact=True)
        found = {raw for forms in places for raw, _ in forms}
        assert found >= set(chosen)
        return keys, found

    def value_state(self, is_wanted: Callable[[LogicalType], bool]) -> tuple[str, str]:
        """Return an operator and one of its value states without a namespace, by the type of its values."""
        sp = self.load(self.path)
        return self.choose(
            (uid, name)
            for uid, op in sp.operators.items()
            for name, (_, meta) in op.inventory.keyed_states.items()
            if meta.kind == "value" and is_wanted(meta.value.logical)
            if {e.rest for e in self.models[uid].entries if e.state == name} == {VOID}
        )

    def states_of(self, uid: str) -> list[str]:
        """Return the keyed states of an operator without its timers."""
        return [s for s in self.load(self.path)[uid].inventory.keyed_states if not s.startswith("_timer_state")]

    # ---- verbs: each returns the models that it expects, and the operators that it may change ----

    def rescale(self, dst: str) -> dict[str, Model]:
        uid = self.random.choice(list(self.models))
        limit = self.random.choice([64, 128, 300, 1000])
        st.rescale(self.load(self.path), dst, {uid: limit})
        return {uid: replace(self.models[uid], max_parallelism=limit)}

    def erase(self, dst: str) -> dict[str, Model]:
        uid = self.keyed()
        keys, gone = self.keys_of(uid, 3)
        st.erase(self.load(self.path), dst, keys, operators=[uid])
        return {uid: self.models[uid].only(lambda e: e.key not in gone)}

    def keep(self, dst: str) -> dict[str, Model]:
        uid = self.keyed()
        keys, kept = self.keys_of(uid, 9)
        st.keep(self.load(self.path), dst, keys, operators=[uid])
        return {uid: self.models[uid].only(lambda e: e.key in kept)}

    def erase_where(self, dst: str) -> dict[str, Model]:
        uid = self.keyed()
        key = self.load(self.path)[uid].inventory.keyed.needed_key()
        column, first = "key", key.logical
        if isinstance(first, StructType) and first.fields:  # the key of all rows has none
            column, first = f'key."{first.fields[0].name}"', first.fields[0].type
        if not isinstance(first, Scalar) or first.name not in ("int32", "int64", "string"):
            raise Refused
        firsts = {e.key: _first(_decode(key, e.key)) for e in self.models[uid].entries}
        known = sorted({value for value in firsts.values() if value is not None})
        chosen = self.random.sample(known, min(len(known), 2))
        texts = [f"'{value.replace(QUOTE, 2 * QUOTE)}'" if isinstance(value, str) else str(value) for value in chosen]
        st.erase(self.load(self.path), dst, where=f"{column} IN ({', '.join(texts)})", operators=[uid])
        return {uid: self.models[uid].only(lambda e: firsts[e.key] not in chosen)}

    def sample(self, dst: str) -> dict[str, Model]:
        uid = self.keyed()
        keys = {e.key for e in self.models[uid].entries}
        most = self.random.randint(1, len(keys))
        st.sample(self.load(self.path), dst, keys=most, seed=self.number, operators=[uid])
        kept = {e.key for e in self.read(dst)[uid].entries}
        assert kept <= keys
        assert len(kept) == most
        return {uid: self.models[uid].only(lambda e: e.key in kept)}

    def set_value(self, dst: str) -> dict[str, Model]:
        uid, state = self.value_state(_is_number)
        (key,), raws = self.keys_of(uid, 1)
        value = self.random.randint(-(1 << 31), (1 << 31) - 1)
        if not self.models[uid].of_key(state, raws).entries:
            raise Refused
        st.set_values(self.load(self.path), dst, uid, key, {state: value})
        return {
            uid: self.models[uid].mapped(
                lambda e: e._replace(value=_resized(value, len(e.value))) if e.state == state and e.key in raws else e
            )
        }

    def set_field(self, dst: str) -> dict[str, Model]:
        """Set a number inside of a value: a column of a row, a field of a class."""
        uid, state = self.value_state(lambda t: isinstance(t, StructType) and any(_is_number(f.type) for f in t.fields))
        operator = self.load(self.path)[uid]
        logical = operator.inventory.keyed_states[state][1].value.logical
        assert isinstance(logical, StructType)
        number = self.choose(f.name for f in logical.fields if _is_number(f.type))
        (key,), raws = self.keys_of(uid, 1)
        before = self.models[uid]
        if not before.of_key(state, raws).entries:
            raise Refused
        value = self.random.randint(-(1 << 31), (1 << 31) - 1)
        rows = [operator.to_arrow(states=[state]).to_pylist()]
        st.set_values(self.load(self.path), dst, uid, key, {f"{state}.{number}": value})
        rows.append(self.load(dst)[uid].to_arrow(states=[state]).to_pylist())
        old, new = (Counter(map(_text, r)) for r in rows)
        if old != new:
            (changed,) = (row for row in rows[0] if _text(row) in old - new)
            changed[state][number] = value
            assert list(new - old) == [_text(changed)]
        # Other entries keep their bytes.
        after = self.read(dst)[uid]
        others = before.only(lambda e: e.state != state or e.key not in raws)
        return {uid: replace(others, entries=others.entries + after.of_key(state, raws).entries)}

    def purge(self, dst: str) -> dict[str, Model]:
        uid = self.random.choice(list(self.models))
        model = self.models[uid]
        times = [
            _time(e)
            for e in model.entries
            if "event_user-timers" in e.state or e.state.startswith("_timer_state/event")
        ]
        if not times:
            raise Refused
        limit = int(median(times))
        st.purge(self.load(self.path), dst, event_timers_before_ms=limit, now_ms=0, operators=[uid])
        return {
            uid: model.only(lambda e: not (e.before and e.state.startswith("_timer_state/event") and _time(e) < limit))
        }

    def transform(self, dst: str) -> dict[str, Model]:
        uid, state = self.value_state(_is_number)

        def add(table: pa.Table) -> pa.Table:
            at = table.schema.get_field_index(state)
            return table.set_column(at, state, pc.add(table.column(at), pa.scalar(1, table.schema.types[at])))

        self.load(self.path)[uid].transform(add, states=[state]).write(dst)
        return {
            uid: self.models[uid].mapped(lambda e: e._replace(value=_increment(e.value)) if e.state == state else e)
        }

    def rename_states(self, dst: str) -> dict[str, Model]:
        uid = self.random.choice(
            [u for u, m in self.models.items() if any(not e.before for e in m.entries)] or list(self.models)
        )
        old = self.choose(self.states_of(uid))
        new = f"{old}-{self.number}"
        st.rename_states(self.load(self.path), dst, uid, {old: new})
        return {uid: self.models[uid].mapped(lambda e: e._replace(state=new) if e.state == old else e)}

    def change_uids(self, dst: str) -> dict[str, Model | None]:
        uid = self.random.choice(list(self.models))
        new = f"{uid.partition('~')[0]}~{self.number}"
        st.change_uids(self.load(self.path), dst, {uid: new})
        self.uids[operator_id_for_uid(new)] = new
        return {uid: None, new: self.models[uid]}

    def drop(self, dst: str) -> dict[str, Model | None]:
        uid = self.random.choice(list(self.models))
        st.drop(self.load(self.path), dst, [uid])
        return {uid: None}

    def drop_state(self, dst: str) -> dict[str, Model]:
        uid = self.random.choice(list(self.models))
        states = self.states_of(uid)
        if len(states) < 2:
            raise Refused
        gone = self.random.choice(states)
        st.drop(self.load(self.path), dst, states={uid: [gone]})
        return {uid: self.models[uid].only(lambda e: e.state != gone)}

    def graft(self, dst: str) -> dict[str, Model]:
        uid = self.choose(self.first)
        new = f"{uid}~g{self.number}"
        st.graft(self.load(self.path), self.load(self.start.path), dst, {uid: new})
        self.uids[operator_id_for_uid(new)] = new
        return {new: self.first[uid]}

    def split_and_merge(self, dst: str) -> dict[str, Model]:
        if len(self.models) < 2:
            raise Refused
        chosen = self.random.sample(list(self.models), self.random.randint(1, len(self.models) - 1))
        first, second = f"{dst}-first", f"{dst}-second"
        st.split(self.load(self.path), first, second, chosen)
        assert self.read(second).keys() == set(chosen)
        st.merge(self.load(first), self.load(second), dst)
        return {}

    def move_state(self, dst: str) -> dict[str, Model]:
        source = self.keyed()
        target = self.keyed()
        states = self.states_of(source)
        if source == target or len(states) < 2:
            raise Refused
        state = self.random.choice(states)
        new = f"{state}-moved-{self.number}"
        st.move_state(self.load(self.path), dst, source, target, {state: new})
        moved = Counter({e._replace(state=new): n for e, n in self.models[source].entries.items() if e.state == state})
        whole = self.models[target]
        return {
            source: self.models[source].only(lambda e: e.state != state),
            target: replace(whole, entries=whole.entries + moved),
        }

    def convert(self, dst: str) -> dict[str, Model]:
        st.convert(self.load(self.path), dst)
        return dict(self.models)

    def copy(self, dst: str) -> dict[str, Model]:
        st.copy(self.path, dst)
        return {}

    def new_type(self, dst: str) -> tuple[MigrationPlan, str | None, Callable[[Model], Model]]:
        """Return a plan that gives a state of numbers another type, its operator, and what it does to that; else a plan that does nothing."""
        sp = self.load(self.path)
        numbers = [
            (uid, name, meta.value.logical.name)
            for uid, op in sp.operators.items()
            for name, (_, meta) in op.inventory.keyed_states.items()
            if meta.kind == "value" and isinstance(meta.value.logical, Scalar) and meta.value.logical.name in NUMBERS
            if op.inventory.keyed.needed_key().logical in (Scalar("int64"), Scalar("string"))
        ]
        if not numbers:
            return st.plan_migration(sp, self.load(self.path)), None, lambda model: model
        uid, state, old = self.random.choice(numbers)
        new = self.random.choice(NUMBERS[old])
        key = sp[uid].inventory.keyed.needed_key().logical
        keys = pa.array([], pa.int64() if key == Scalar("int64") else pa.string())
        empty = pa.table({"key": keys, state: pa.array([], COLUMNS[new])})
        bootstrap = st.bootstrap_keyed_state(empty, states={state: st.value(new)})
        writer = st.SavepointWriter.new().with_operator(uid, bootstrap, parallelism=1)
        job = writer.write(f"{dst}-job", flink_version="2.3" if sp.metadata_version > 4 else "1.20")
        plan = st.plan_migration(self.load(self.path), job)
        assert [s.name for s in plan.states] == [f"{uid}.{state}"]
        plan = plan.accepting([row.step for row in plan.rows if row.needs == "acceptance"])

        def changed(model: Model) -> Model:
            return model.mapped(lambda e: e._replace(value=_with_type(e.value, new)) if e.state == state else e)

        return plan, uid, changed

    def migrate(self, dst: str) -> dict[str, Model]:
        plan, uid, changed = self.new_type(dst)
        st.migrate(self.load(self.path), dst, plan=plan, flink_version=self.random.choice([None, "2.3"]))
        return {} if uid is None else {uid: changed(self.models[uid])}

    def catch_up(self, dst: str) -> dict[str, Model | None]:
        """Give a state another type, while the job goes on."""
        plan, uid, changed = self.new_type(dst)
        before = self.load(self.path)
        st.migrate(before, f"{dst}-migrated", plan=plan, format="canonical")
        change = self.random.choice((type(self).erase, type(self).keep, type(self).set_value, type(self).transform))
        changes = change(self, f"{dst}-changed")
        writer = st.SavepointWriter.from_existing(self.load(f"{dst}-changed"))
        writer.with_checkpoint_id(before.checkpoint_id + 1).write(f"{dst}-later")
        later = self.load(f"{dst}-later")
        st.catch_up(f"{dst}-migrated", before, later, dst, plan=plan)
        st.migrate(later, f"{dst}-whole", plan=plan, format="canonical")
        whole = self.read(f"{dst}-whole")
        for name, model in self.read(dst).items():
            assert model.stored == whole[name].stored
        models: dict[str, Model | None] = {**changes}
        if uid is not None:
            models[uid] = changed(changes.get(uid, self.models[uid]))
        return models

    def upgrade(self, dst: str) -> dict[str, Model]:
        """Change a class, or Kryo's version."""
        source = self.with_classes(self.path, self.jar)
        jar = self.random.choice(self.jars)
        stored = [s for op in source.operators.values() for s in op.inventory.keyed.managed]
        choices: dict[str, Any] = {
            "other_jars": [jar],
            "flink_version": self.random.choice([None, "2.3"]),
            "backend": "rocksdb" if any(s.database for s in stored) else "heap",
            "config": f"{dst}.yaml",
        }
        Path(choices["config"]).write_text("state.backend.rocksdb.timer-service.factory: ROCKSDB\n")
        plan = st.upgrade(source, dst, dry_run=True, **choices).plan
        accepted = [row.step for row in plan.rows if row.needs == "acceptance"]
        assert st.upgrade(source, dst, accept=accepted, **choices).ok
        old, new = source, self.with_classes(dst, jar)
        models = {}
        for uid in {s.uid for s in plan.states}:
            states = {s.state for s in plan.states if s.uid == uid}
            assert _values(old[uid], states) == _values(new[uid], states)
            before, after = self.models[uid], model_of(new[uid])
            others = [[(e, n) for e, n in m.entries.items() if e.state not in states] for m in (before, after)]
            assert Counter(others[0]) == Counter(others[1])
            kept, changed = (
                Counter({e._replace(value=b""): n for e, n in m.entries.items() if e.state in states})
                for m in (before, after)
            )
            assert kept == changed
            models[uid] = replace(before, entries=after.entries)
        self.jar = jar
        return models

    def edit_source(self, dst: str) -> dict[str, Model]:
        """Let a source resume elsewhere, or remove a split."""
        sp = self.load(self.path)
        row = self.choose(row for row in sp.connector_rows("source_splits"))
        uid, before = row.operator, self.models[row.operator]
        if self.random.random() < 0.5:
            st.edit_source(sp, dst, uid, remove=[row.split_id])
            wanted = {**self.positions(sp, uid)}
            del wanted[row.split_id]
        else:
            position = self.random.choice(["earliest", "latest", "17"])
            st.edit_source(sp, dst, uid, positions={row.split_id: position})
            wanted = {**self.positions(sp, uid), row.split_id: position}
        assert self.positions(self.load(dst), uid) == wanted
        after = self.read(dst)[uid]
        return {uid: replace(before, elements=after.elements, coordinator=after.coordinator)}

    def positions(self, sp: st.Savepoint, uid: str) -> dict[str, str | None]:
        """Return where the splits of a source begin."""
        rows = sp.connector_rows("source_splits")
        return {r.split_id: r.position or r.marker for r in rows if r.operator == uid}

    def drop_transactions(self, dst: str) -> dict[str, Model]:
        sp = self.load(self.path)
        rows = [r for r in sp.connector_rows("transactions") if r.status != "open" and r.undecoded is None]
        row = self.choose(rows)
        lost = st.drop_transactions(sp, dst, row.operator, [row.name])
        assert {r.name for r in lost} == {row.name}
        left = [r for r in sp.connector_rows("transactions") if (r.operator, r.name) != (row.operator, row.name)]
        assert Counter(self.load(dst).connector_rows("transactions")) == Counter(left)
        after = self.read(dst)[row.operator]
        return {row.operator: replace(self.models[row.operator], elements=after.elements)}

    VERBS: Final = (
        rescale, erase, keep, erase_where, sample, set_value, set_field, purge, transform, rename_states, change_uids, drop, drop_state,
        graft, split_and_merge, move_state, convert, copy, migrate, catch_up, upgrade, edit_source, drop_transactions,
    )  # fmt: skip

    # ---- steps --------------------------------------------------------------------------------

    def step(self) -> None:
        verb = self.random.choice(self.VERBS)
        dst = self.target()
        name = f"{self.start.name}: {verb.__name__} of {self.path}"
        try:
            expected: Mapping[str, Model | None] = verb(self, dst)
        except Refused:
            return
        except StatetoolError as error:
            self.refused[f"{verb.__name__}: {error.message}"] += 1
            assert not Path(dst).exists(), f"{name}: {error}"
            return
        verification = st.verify(self.load(dst), deep=True, allow_unread=True)
        assert not [p for p in verification.problems if p.severity == "error"], f"{name}: {verification.problems[:3]}"
        found = self.read(dst)
        wanted = {**self.models, **expected}
        assert found.keys() == {uid for uid, model in wanted.items() if model is not None}, name
        for uid, model in found.items():
            assert model == wanted[uid], f"{name}: {uid}"
            if uid not in expected:
                assert model.stored == self.models[uid].stored, f"{name}: the bytes of {uid}"
        changed = {uid for uid in self.models.keys() | found if not _same(self.models.get(uid), found.get(uid))}
        comparison = self.load(self.path).diff(self.load(dst))
        different = {d.operator for d in comparison.structure if d.severity == "difference"}
        different |= {c.operator for c in comparison.summary() if c.added or c.removed or c.changed}
        if verb in (Walk.migrate, Walk.catch_up, Walk.upgrade):
            # Types differ even if an operator has no entries, and values that Kryo or a changed class wrote otherwise are the same.
            assert different <= expected.keys(), f"{name}: {different}"
        else:
            # A state without entries may be renamed or dropped.
            assert changed <= different <= changed | expected.keys(), f"{name}: {different}"
        self.path, self.models = dst, found
        self.done[verb.__name__] += 1
        self.steps += 1
        operators, entries = self.start.least
        if self.steps == LENGTH or len(found) < operators or sum(m.size for m in found.values()) < entries:
            self.restart()


def _same(one: Model | None, other: Model | None) -> bool:
    """Return True if two operators have the same state. An operator without state is like none."""
    if one is None or other is None:
        return not any(m is not None and m.has_state for m in (one, other))
    return (one.entries, one.elements, one.coordinator) == (other.entries, other.elements, other.coordinator)


def _is_number(logical: LogicalType) -> bool:
    return logical in (Scalar("int32"), Scalar("int64"))


def _decode(serializer: Serializer, raw: bytes) -> Any:
    return decode_key(serializer, np.frombuffer(raw, dtype=np.uint8), 0, len(raw))


def _first(key: Any) -> Any:
    """Return the first field of a key, or the key if it has none."""
    match key:
        case dict():
            return next(iter(key.values()))
        case tuple():
            return key[0]
    return key


def _time(entry: Entry) -> int:
    return int.from_bytes(entry.before, "big") - (1 << 63)


def _increment(value: bytes) -> bytes:
    return _resized(int.from_bytes(value, "big", signed=True) + 1, len(value))


def _with_type(value: bytes, name: str) -> bytes:
    number = int.from_bytes(value, "big", signed=True)
    if name != "STRING":
        return _resized(number, {"INT": 4, "BIGINT": 8}[name])
    text = str(number).encode()
    return bytes([len(text) + 1]) + text


def _resized(number: int, size: int) -> bytes:
    return (number & ((1 << 8 * size) - 1)).to_bytes(size, "big")


def _values(operator: st.Operator, states: Iterable[str]) -> list[str]:
    """Return the values of states without a namespace, without fields that are null, and with sorted maps."""
    return sorted(_text(row) for state in sorted(states) for row in operator.to_arrow(states=[state]).to_pylist())


def _text(value: Any) -> str:
    match value:
        case dict():
            return str({name: _text(v) for name, v in sorted(value.items()) if v is not None})
        case [tuple(), *_]:
            return str(sorted(map(_text, value)))
        case list() | tuple():
            return str([_text(v) for v in value])
    return repr(value)


@pytest.fixture(scope="module")
def jars(public_jar: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Jars with the classes of the jobs: the first ones, and one that changed."""
    folder = tmp_path_factory.mktemp("changed")
    source = folder / SOURCE.name
    source.write_text(SOURCE.read_text().replace(*FIELDS))
    return public_jar, make_jar(folder / "changed.jar", files_of(compile_java([source], folder / "classes")))


@pytest.fixture(scope="module")
def sql_jobs(sql_corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Start]:
    """Snapshots of SQL jobs and of sources."""
    more = [
        unpack(HERE / "corpus" / f"{name}.tar.xz", tmp_path_factory.mktemp(name))
        for name in ("sql-more", "sql-operators")
    ]
    return [start for folder in (sql_corpus, *more) for start in starts_below(folder)]


@pytest.fixture(scope="module")
def connector_jobs(connector_cases: Path) -> list[Start]:
    """Snapshots of jobs with sources and sinks."""
    return starts_below(connector_cases)


def run_some(walk: Walk, steps: int) -> None:
    while walk.done.total() < steps:
        walk.step()


def test_some_steps(corpus: Path, jars: Sequence[Path], tmp_path: Path) -> None:
    run_some(Walk(starts_of_jobs(corpus), jars, tmp_path, 1), examples(15))


def test_some_steps_of_sql_jobs(sql_corpus: Path, jars: Sequence[Path], tmp_path: Path) -> None:
    run_some(Walk(starts_below(sql_corpus), jars, tmp_path, 4), examples(6))


def test_some_steps_of_connectors(connector_cases: Path, jars: Sequence[Path], tmp_path: Path) -> None:
    run_some(Walk(starts_below(connector_cases), jars, tmp_path, 5), examples(6))


def run_many(walk: Walk, steps: int, verbs: set[str]) -> None:
    """Run a number of steps, and go on until they have all of some verbs."""
    while walk.done.total() < (STEPS or steps) or not walk.done.keys() >= verbs:
        walk.step()


@pytest.mark.full
@pytest.mark.parametrize("seed", [2, 3])
def test_many_steps(corpus: Path, jars: Sequence[Path], tmp_path: Path, seed: int) -> None:
    verbs = {verb.__name__ for verb in Walk.VERBS} - VERBS_OF_CONNECTORS
    run_many(Walk(starts_of_jobs(corpus), jars, tmp_path, seed), 150, verbs)


@pytest.mark.full
def test_many_steps_of_sql_jobs(sql_jobs: list[Start], jars: Sequence[Path], tmp_path: Path) -> None:
    run_many(Walk(sql_jobs, jars, tmp_path, 6), 80, VERBS_OF_KEYS)


@pytest.mark.full
def test_many_steps_of_connectors(connector_jobs: list[Start], jars: Sequence[Path], tmp_path: Path) -> None:
    run_many(Walk(connector_jobs, jars, tmp_path, 7), 60, VERBS_OF_CONNECTORS)


@pytest.mark.parametrize("name", ["hashmap-checkpoint", "rocksdb-native"])
def test_an_upgrade_is_read_without_the_new_jar(corpus: Path, jars: Sequence[Path], tmp_path: Path, name: str) -> None:
    """Operators keep their form, except where only the new jar tells the end of a value in the layout of the heap backend."""
    (start,) = (start for start in starts_of_jobs(corpus) if start.name == f"v1_20_5-{name}")
    walk = Walk([start], jars[1:], tmp_path, 1)
    walk.jar = jars[0]
    upgraded = str(tmp_path / "upgraded")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="operator orders becomes canonical")
        walk.upgrade(upgraded)
    assert walk.read(upgraded).keys() == walk.models.keys()
    before, after = (
        {uid: {s.layout() for s in op.inventory.keyed.managed} for uid, op in walk.load(path).operators.items()}
        for path in (walk.path, upgraded)
    )
    assert {uid for uid in before if before[uid] != after[uid]} == ({"orders"} if "hashmap" in name else set())
