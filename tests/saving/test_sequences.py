"""Random sequences of all writing verbs: after each step, everything is as a plain model of the entries says.

A verb may refuse; then it must have written nothing. Operators that a verb does not concern keep their bytes.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import statetool as st
from statetool.errors import StatetoolError
from statetool.formats.operator_id import operator_id_for_uid
from statetool.hashing.keys import decode_key
from statetool.saving.streams.filters import key_bounds
from statetool.tables.scan import encode_keys
from statetool.types import Scalar
from tests.support.checks.corpus_check import find_cases
from tests.support.compile import compile_java, files_of, make_jar
from tests.support.corpora.kryo_classes import CLASSES
from tests.support.quick import examples
from tests.support.snapshots.stored import stream_bytes

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


class Entry(NamedTuple):
    """An entry without its key group: ``before`` is the time of a timer, ``rest`` the namespace and user key."""

    state: str
    before: bytes
    key: bytes
    rest: bytes
    value: bytes


@dataclass
class Model:
    """What an operator has."""

    entries: Counter[Entry]
    elements: Counter[tuple[str, bytes]]
    max_parallelism: int
    streams: list[bytes] = field(compare=False)

    def only(self, chosen: Callable[[Entry], bool]) -> Model:
        return Model(
            Counter({e: n for e, n in self.entries.items() if chosen(e)}), self.elements, self.max_parallelism, []
        )

    def mapped(self, changed: Callable[[Entry], Entry]) -> Model:
        return Model(Counter({changed(e): n for e, n in self.entries.items()}), self.elements, self.max_parallelism, [])

    def with_limit(self, max_parallelism: int) -> Model:
        return Model(self.entries, self.elements, max_parallelism, [])


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
    return Model(entries, elements, operator.inventory.state.max_parallelism, stream_bytes(operator.inventory))


class Refused(Exception):
    """A verb that does not apply to the current snapshot."""


class Walk:
    """A sequence of verbs over snapshots of a corpus."""

    def __init__(self, corpus: Path, jars: Sequence[Path], work: Path, seed: int) -> None:
        self.random = random.Random(seed)
        self.jars = jars
        self.work = work
        self.starts = [c for c in find_cases(corpus, None) if c.folder.name.partition("-")[2] not in LEFT_OUT]
        self.done: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        self.number = 0
        self.restart()

    def restart(self) -> None:
        case = self.random.choice(self.starts)
        self.pristine, self.path = str(case.metadata.parent), self.target()
        #: Uids by operator id. Releases before 2.0 do not store them.
        self.uids = {operator_id_for_uid(uid): uid for uid in case.expected["operators"]}
        self.name = case.folder.name
        st.drop(self.load(self.pristine), self.path, [u for u in self.load(self.pristine).operators if u not in UIDS])
        self.models = self.read(self.path)
        self.first = dict(self.models)
        self.steps = 0
        #: The jar with whose classes values are read.
        self.jar = self.jars[0]

    def target(self) -> str:
        self.number += 1
        return str(self.work / f"step-{self.number}")

    def load(self, path: str) -> st.Savepoint:
        ids = (o.operator_id for o in st.load(path).inventory.metadata.operators)
        return st.load(path, uids=[self.uids[i] for i in ids if i in self.uids], declarations=CLASSES)

    def with_classes(self, path: str, jar: Path) -> st.Savepoint:
        return st.load(path, uids=list(self.models), jars=[jar])

    def read(self, path: str) -> dict[str, Model]:
        return {uid: model_of(operator) for uid, operator in self.load(path).operators.items()}

    # ---- choices ------------------------------------------------------------------------------

    def keyed(self, kinds: Iterable[str] = ("int32", "int64", "string")) -> str:
        sp = self.load(self.path)
        wanted = [
            uid
            for uid, op in sp.operators.items()
            if op.inventory.keyed_states
            and (key := op.inventory.keyed.key) is not None
            and isinstance(key.logical, Scalar)
            and key.logical.name in kinds
            and self.models[uid].entries
        ]
        if not wanted:
            raise Refused
        return self.random.choice(wanted)

    def keys_of(self, uid: str, most: int) -> dict[Any, set[bytes]]:
        """Return some plain keys of an operator with their bytes."""
        inventory = self.load(self.path)[uid].inventory
        serializer = inventory.keyed.needed_key()
        raws = sorted({e.key for e in self.models[uid].entries})
        plain = [
            decode_key(serializer, np.frombuffer(raw, dtype=np.uint8), 0, len(raw))
            for raw in self.random.sample(raws, min(len(raws), self.random.randint(1, most)))
        ]
        return {key: set(encode_keys(inventory, serializer, [key])[0]) for key in plain}

    # ---- verbs: each returns the models that it expects, and the operators that it may change ----

    def rescale(self, dst: str) -> dict[str, Model]:
        uid = self.random.choice(list(self.models))
        limit = self.random.choice([64, 128, 300, 1000])
        st.rescale(self.load(self.path), dst, {uid: limit})
        return {uid: self.models[uid].with_limit(limit)}

    def erase(self, dst: str) -> dict[str, Model]:
        uid = self.keyed()
        keys = self.keys_of(uid, 3)
        gone = set().union(*keys.values())
        st.erase(self.load(self.path), dst, list(keys), operators=[uid])
        return {uid: self.models[uid].only(lambda e: e.key not in gone)}

    def keep(self, dst: str) -> dict[str, Model]:
        uid = self.keyed()
        keys = self.keys_of(uid, 9)
        kept = set().union(*keys.values())
        st.keep(self.load(self.path), dst, list(keys), operators=[uid])
        return {uid: self.models[uid].only(lambda e: e.key in kept)}

    def erase_where(self, dst: str) -> dict[str, Model]:
        uid = self.keyed(("int32", "int64"))
        keys = self.keys_of(uid, 2)
        gone = set().union(*keys.values())
        where = f"key IN ({', '.join(map(str, keys))})"
        st.erase(self.load(self.path), dst, where=where, operators=[uid])
        return {uid: self.models[uid].only(lambda e: e.key not in gone)}

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
        uid = self.with_number("timers", "registered")
        (key, raws), *_ = self.keys_of(uid, 1).items()
        value = self.random.randint(-(1 << 31), (1 << 31) - 1)
        st.set_values(self.load(self.path), dst, uid, key, {"registered": value}, new_key=True)
        before = self.models[uid]
        changed = before.mapped(
            lambda e: e._replace(value=_resized(value, len(e.value))) if e.state == "registered" and e.key in raws else e
        )  # fmt: skip
        if not any(e.state == "registered" and e.key in raws for e in before.entries):
            raise Refused
        return {uid: changed}

    def with_number(self, uid: str, state: str) -> str:
        """Return the operator if it still has a state of numbers under its first name."""
        found = self.load(self.path)[uid].inventory.keyed_states if uid in self.models else {}
        if state not in found or found[state][1].value.logical == Scalar("string"):
            raise Refused
        return uid

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
        uid = self.with_number("timers", "registered")

        def add(table: pa.Table) -> pa.Table:
            at = table.schema.get_field_index("registered")
            return table.set_column(at, "registered", pc.add(table.column(at), pa.scalar(1, table.schema.types[at])))

        self.load(self.path)[uid].transform(add, states=["registered"]).write(dst)
        return {
            uid: self.models[uid].mapped(
                lambda e: e._replace(value=_increment(e.value)) if e.state == "registered" else e
            )
        }

    def rename_states(self, dst: str) -> dict[str, Model]:
        uid = self.random.choice(
            [u for u, m in self.models.items() if any(not e.before for e in m.entries)] or list(self.models)
        )
        states = [s for s in self.load(self.path)[uid].inventory.keyed_states if not s.startswith("_timer_state")]
        if not states:
            raise Refused
        old = self.random.choice(states)
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
        states = [s for s in self.load(self.path)[uid].inventory.keyed_states if not s.startswith("_timer_state")]
        if len(states) < 2:
            raise Refused
        gone = self.random.choice(states)
        st.drop(self.load(self.path), dst, states={uid: [gone]})
        return {uid: self.models[uid].only(lambda e: e.state != gone)}

    def graft(self, dst: str) -> dict[str, Model]:
        uid = self.random.choice([u for u in UIDS if u in self.first])
        new = f"{uid}~g{self.number}"
        st.graft(self.load(self.path), self.load(self.pristine), dst, {uid: new})
        self.uids[operator_id_for_uid(new)] = new
        return {new: self.first[uid]}

    def split_and_merge(self, dst: str) -> dict[str, Model]:
        if len(self.models) < 3:
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
        states = [s for s in self.load(self.path)[source].inventory.keyed_states if not s.startswith("_timer_state")]
        if source == target or len(states) < 2:
            raise Refused
        state = self.random.choice(states)
        new = f"{state}-moved-{self.number}"
        st.move_state(self.load(self.path), dst, source, target, {state: new})
        moved = Counter({e._replace(state=new): n for e, n in self.models[source].entries.items() if e.state == state})
        whole = self.models[target]
        return {
            source: self.models[source].only(lambda e: e.state != state),
            target: Model(whole.entries + moved, whole.elements, whole.max_parallelism, []),
        }

    def convert(self, dst: str) -> dict[str, Model]:
        st.convert(self.load(self.path), dst)
        return {uid: Model(m.entries, m.elements, m.max_parallelism, []) for uid, m in self.models.items()}

    def copy(self, dst: str) -> dict[str, Model]:
        st.copy(self.path, dst)
        return {}

    def new_type(self, dst: str) -> tuple[st.MigrationPlan, dict[str, Model], Callable[[Model], Model]]:
        """Return a plan that gives a state of numbers another type, and what it does to the operator."""
        sp = self.load(self.path)
        numbers = [
            (uid, name, meta.value.logical.name)
            for uid, op in sp.operators.items()
            for name, (_, meta) in op.inventory.keyed_states.items()
            if meta.kind == "value" and isinstance(meta.value.logical, Scalar) and meta.value.logical.name in NUMBERS
            if isinstance(op.inventory.keyed.needed_key().logical, Scalar)
        ]
        if not numbers:
            raise Refused
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

        return plan, {uid: changed(self.models[uid])}, changed

    def migrate(self, dst: str) -> dict[str, Model]:
        plan, models, _ = self.new_type(dst)
        st.migrate(self.load(self.path), dst, plan=plan, flink_version=self.random.choice([None, "2.3"]))
        return models

    def catch_up(self, dst: str) -> dict[str, Model | None]:
        """Give a state another type, while the job goes on."""
        plan, models, changed = self.new_type(dst)
        (uid,) = models
        before = self.load(self.path)
        st.migrate(before, f"{dst}-migrated", plan=plan)
        change = self.random.choice((type(self).erase, type(self).keep, type(self).set_value, type(self).transform))
        changes = change(self, f"{dst}-changed")
        writer = st.SavepointWriter.from_existing(self.load(f"{dst}-changed"))
        writer.with_checkpoint_id(before.checkpoint_id + 1).write(f"{dst}-later")
        later = self.load(f"{dst}-later")
        st.catch_up(f"{dst}-migrated", before, later, dst, plan=plan)
        st.migrate(later, f"{dst}-whole", plan=plan)
        whole = self.read(f"{dst}-whole")
        for name, model in self.read(dst).items():
            assert model.streams == whole[name].streams
        return {**changes, uid: changed(changes.get(uid, self.models[uid]))}

    def upgrade(self, dst: str) -> dict[str, Model]:
        """Change a class, or Kryo's version."""
        source, jar = self.with_classes(self.path, self.jar), self.random.choice(self.jars)
        stored = [s for op in source.operators.values() for s in op.inventory.keyed.managed]
        choices: dict[str, Any] = {
            "other_jars": [jar],
            "flink_version": self.random.choice([None, "2.3"]),
            "backend": "rocksdb" if any(s.database for s in stored) else "heap",
        }
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
            models[uid] = Model(after.entries, before.elements, before.max_parallelism, [])
        self.jar = jar
        return models

    VERBS: Final = (
        rescale, erase, keep, erase_where, sample, set_value, purge, transform, rename_states, change_uids, drop, drop_state, graft,
        split_and_merge, move_state, convert, copy, migrate, catch_up, upgrade,
    )  # fmt: skip

    # ---- steps --------------------------------------------------------------------------------

    def step(self) -> None:
        verb = self.random.choice(self.VERBS)
        dst = self.target()
        name = f"{self.name}: {verb.__name__} of {self.path}"
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
                assert model.streams == self.models[uid].streams, f"{name}: the bytes of {uid}"
        changed = {uid for uid in self.models.keys() | found if not _same(self.models.get(uid), found.get(uid))}
        comparison = self.load(self.path).diff(self.load(dst))
        different = {d.operator for d in comparison.structure if d.severity == "difference"}
        different |= {c.operator for c in comparison.summary() if c.added or c.removed or c.changed}
        if verb in (Walk.migrate, Walk.catch_up, Walk.upgrade):
            # Types differ even if an operator has no entries, and values that Kryo or a changed class wrote otherwise are the same.
            assert different <= expected.keys(), f"{name}: {different}"
        else:
            assert different == changed, f"{name}: {different}"
        self.path, self.models = dst, found
        self.done[verb.__name__] += 1
        self.steps += 1
        if self.steps == LENGTH or len(found) < 3 or sum(len(m.entries) for m in found.values()) < 50:
            self.restart()


def _same(one: Model | None, other: Model | None) -> bool:
    """Return True if two operators have the same state."""
    if one is None or other is None:
        return one is other
    return (one.entries, one.elements) == (other.entries, other.elements)


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


@pytest.mark.parametrize("seed", [1])
def test_some_steps(corpus: Path, jars: Sequence[Path], tmp_path: Path, seed: int) -> None:
    walk = Walk(corpus, jars, tmp_path, seed)
    steps = examples(24)
    for _ in range(steps):
        walk.step()
    assert walk.done.total() > steps // 3, (walk.done, walk.refused)


@pytest.mark.full
@pytest.mark.parametrize("seed", [2, 3])
def test_many_steps(corpus: Path, jars: Sequence[Path], tmp_path: Path, seed: int) -> None:
    walk = Walk(corpus, jars, tmp_path, seed)
    while walk.done.total() < 250 or walk.done.keys() != {verb.__name__ for verb in Walk.VERBS}:
        walk.step()
